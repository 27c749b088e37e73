# Bytes that matrix products read, from what lanes ask for down to DRAM: models and an H200.
load plots."style.gp"
field(n) = system(sprintf("awk -F, 'NR == 2 { print $%d }' '%s'", n, csv))
set title sprintf("C = A B, N = %s, fp32: bytes read at each level of memory", field(3))
set logscale y
set xrange [-0.35:4.1]
set xtics ("lanes ask for" 0, "of sectors" 1, "from L2" 2, "from DRAM" 3)
set xlabel "level of memory"
set ylabel "GB (10^9 bytes)"
of(name, tile, value) = (strcol("kernel") eq name && column("tile") == tile) ? column(value) : NaN
end(name, tile) = column("level") == 3 ? of(name, tile, "model_gb") : NaN
set label "filled: model\nhollow: measured" at graph 0.02, 0.12 tc rgb grey
plot csv using "level":(of("matmul_naive", 0, "model_gb")) \
         with linespoints pt 7 ps dot lw 4 lc rgb black, \
     csv using "level":(of("matmul_shared", 32, "model_gb")) \
         with linespoints pt 5 ps dot lw 4 lc rgb orange, \
     csv using "level":(of("matmul_tiled", 64, "model_gb")) \
         with linespoints pt 9 ps dot lw 4 lc rgb blue, \
     csv using "level":(of("matmul_naive", 0, "measured_gb")) \
         with points pt 6 ps 2.2 * dot lw 4 lc rgb black, \
     csv using "level":(of("matmul_shared", 32, "measured_gb")) \
         with points pt 4 ps 2.2 * dot lw 4 lc rgb orange, \
     csv using "level":(of("matmul_tiled", 64, "measured_gb")) \
         with points pt 8 ps 2.2 * dot lw 4 lc rgb blue, \
     csv using "level":(end("matmul_naive", 0)):("naive") \
         with labels left offset 2,0 tc rgb black, \
     csv using "level":(end("matmul_shared", 32)):("shared memory,\nT = 32") \
         with labels left offset 2,0 tc rgb orange, \
     csv using "level":(end("matmul_tiled", 64)):("registers,\nT = 64") \
         with labels left offset 2,0.9 tc rgb blue
