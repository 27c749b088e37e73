# HBM traffic against the block size, with the points that the FlashAttention paper prints.
load plots."style.gp"
set title "Batch 64, 16 heads, N = 1024, d = 64, fp16, forward, tiles that fit an A100"
set logscale x 2
set xrange [14:1100]
set xtics 16, 2, 512
set yrange [0:*]
set xlabel "block size B (Bc in FlashAttention-1, Br in FlashAttention-2)"
set ylabel "bytes requested from HBM, GB (10^9)"
gb(name) = bytes_of("block", name) / 1e9
set label "FlashAttention-1" at 17.5, 26.5 tc rgb blue
set label "FlashAttention-2" at 17.5, 6.6 tc rgb green
set label "circles: printed in Dao et al. 2022,\nFigure 2 (middle)" at 90, 13 tc rgb orange
set label "Q, K, V, O once" at 17.5, 1.5 tc rgb grey
plot csv using "block_k":(gb("flash1") > 0 ? column("compulsory_bytes") / 1e9 : NaN) \
         with lines lw 3 dt 2 lc rgb grey, \
     csv using "block_k":(gb("flash1")) with linespoints pt 7 ps dot lw 4 lc rgb blue, \
     csv using "block_q":(gb("flash2")) with linespoints pt 5 ps dot lw 4 lc rgb green, \
     csv using "block_k":"paper_gb" with points pt 6 ps 2.5 * dot lw 4 lc rgb orange, \
     csv using "block_k":"paper_gb":(sprintf("%.3f", column("paper_gb"))) \
         with labels left offset 2,0.7 tc rgb orange
