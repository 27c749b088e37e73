# TFLOP/s of the ladder's steps beside PyTorch's attention, and what cuBLAS reaches.
load plots."style.gp"
set title "Attention forward, bf16, d = 128, N = 4096, batch 4, 16 heads, H200"
set style fill solid
set boxwidth 0.38
set xrange [-0.6:*]
set grid noxtics
set ylabel "TFLOP/s"
# names below one another, without their underscores
name(text) = (text[1:1] eq "P") ? "PyTorch\n".text[9:*] : text[1:2]."\n".text[4:*]
set xtics font ",18" noenhanced
set bmargin 3.5
cublas = system(sprintf("awk -F, 'NR == 2 { print $4 }' '%s'", csv)) + 0
set yrange [0:1.12 * cublas]
set arrow from graph 0, first cublas to graph 1, first cublas nohead lw 3 dt 2 lc rgb grey
set label sprintf("cuBLAS bf16 8192^3: %.0f", cublas) \
    at graph 0.01, first cublas offset 0,0.6 noenhanced \
    tc rgb grey
set label "all keys" at 0.1, cublas * 0.8 tc rgb blue
set label "causal" at 0.1, cublas * 0.73 tc rgb orange
plot csv using ($0 - 0.2):"full":xtic(name(strcol(1))) with boxes lc rgb blue, \
     csv using ($0 + 0.2):"causal" with boxes fs pattern 4 lc rgb orange, \
     csv using ($0 - 0.2):"full":(sprintf("%.0f", column("full"))) with labels offset 0,0.6 \
         font ",18" tc rgb blue, \
     csv using ($0 + 0.2):"causal":(sprintf("%.0f", column("causal"))) with labels offset 0,0.6 \
         font ",18" tc rgb orange
