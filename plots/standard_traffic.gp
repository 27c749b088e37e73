# Standard attention's HBM traffic against the sequence length: S and P beside Q, K, V and O.
load plots."style.gp"
field(n) = system(sprintf("awk -F, 'NR == 2 { print $%d }' '%s'", n, csv))
set title sprintf("Standard attention, forward, one head: d = %s, %s", field(2), field(3))
set logscale xy
set xrange [16:16384*5]
set xtics ("16" 16, "64" 64, "256" 256, "1K" 1024, "4K" 4096, "16K" 16384)
set format y "10^{%T}"
set xlabel "sequence length N"
set ylabel "bytes requested from HBM"
ends(value) = column("seqlen") == 16384 ? value : NaN
# where the two curves cross, N = d
set arrow from field(2), graph 0 to field(2), graph 0.75 nohead lw 2 dt 2 lc rgb grey
set label "N = d" at field(2), graph 0.8 center tc rgb grey
plot csv using "seqlen":"scores_bytes" with lines lw 4 lc rgb orange, \
     csv using "seqlen":"other_bytes" with lines lw 4 lc rgb blue, \
     csv using "seqlen":(ends(column("scores_bytes"))):("S and P: 4 N^2") \
         with labels left offset 1,0 tc rgb orange, \
     csv using "seqlen":(ends(column("other_bytes"))):("Q, K, V, O: 4 N d") \
         with labels left offset 1,0 tc rgb blue
