# FLOPs of attention and of the projections before it, against the number of tokens.
load plots."style.gp"
rows(kind) = sprintf("< grep '^%s,' '%s'", kind, csv)
set title "One layer of ViT-B: width 768, 12 heads"
set logscale xy
set xrange [16:16384*6]
set xtics ("16" 16, "64" 64, "256" 256, "1K" 1024, "4K" 4096, "16K" 16384)
set format y "10^{%T}"
set xlabel "tokens N"
set ylabel "matrix FLOPs"
ends(value) = column(9) == 16384 ? value : NaN
set arrow from 196, graph 0 to 196, graph 0.75 nohead lw 2 dt 2 lc rgb grey
set label "N = 196" at 196, graph 0.8 center tc rgb grey
set arrow from 1152, graph 0 to 1152, graph 0.88 nohead lw 2 dt 2 lc rgb grey
set label "N = 3D/2 = 1152" at 1152, graph 0.93 center tc rgb grey
plot rows("cost") using 9:10 with lines lw 4 lc rgb blue, \
     rows("cost") using 9:11 with lines lw 4 lc rgb orange, \
     rows("cost") using 9:(ends(column(10))):("Q, K, V: 6 N D^2") \
         with labels left offset 1,0 tc rgb blue, \
     rows("cost") using 9:(ends(column(11))):("attention: 4 N^2 D") \
         with labels left offset 1,0 tc rgb orange
