# TFLOP/s of the ladder's steps beside PyTorch's attention, and what cuBLAS reaches.
load plots."style.gp"
set title "Attention forward, bf16, d = 128, N = 4096, batch 4, 16 heads, H200"
set style fill solid
set yrange [*:*] reverse
set offsets 0, 0, 0.7, 0.5
set grid xtics noytics
set xlabel "TFLOP/s"
set ytics font ",18" noenhanced
cublas = system(sprintf("awk -F, 'NR == 2 { print $4 }' '%s'", csv)) + 0
set xrange [0:1.12 * cublas]
set arrow from first cublas, graph 0 to first cublas, graph 1 nohead lw 3 dt 2 lc rgb grey
set label sprintf("cuBLAS\n8192^3\n%.0f", cublas) at first cublas, graph 0.97 offset 1,0 \
    noenhanced font ",18" tc rgb grey
set label "all keys" at first 0.62 * cublas, first 1 tc rgb blue
set label "causal" at first 0.62 * cublas, first 2.2 tc rgb orange
half = 0.4 # of the height that two bars take
plot csv using (0):($0 - half / 2):(0):"full":($0 - half):($0):ytic(1) with boxxy \
         lc rgb blue, \
     csv using (0):($0 + half / 2):(0):"causal":($0):($0 + half) with boxxy fs pattern 4 \
         lc rgb orange, \
     csv using "full":($0 - half / 2):(sprintf("%.0f", column("full"))) with labels left \
         offset 0.5,0 font ",15" tc rgb blue, \
     csv using "causal":($0 + half / 2):(sprintf("%.0f", column("causal"))) with labels left \
         offset 0.5,0 font ",15" tc rgb orange
