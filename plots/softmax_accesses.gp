# Accesses an element of three softmaxes against the length of rows: requested, and of DRAM.
load plots."style.gp"
set title "Softmax of 67,108,864 scores, f32, on an H200: accesses an element"
fills_l2 = system(sprintf("awk -F, 'NR == 2 { print $8 }' '%s'", csv)) + 0
set arrow from fills_l2, graph 0 to fills_l2, graph 0.33 nohead lw 2 dt 2 lc rgb grey
set label "all rows being worked on\nat once fill L2" at 1.25*fills_l2, 1.2 tc rgb grey
set logscale x 2
set xrange [50:4194304*8]
set xtics ("64" 64, "256" 256, "1K" 1024, "4K" 4096, "16K" 16384, "64K" 65536, "256K" 262144, \
    "1M" 1048576, "4M" 4194304)
set yrange [0:4.6]
set ytics 1
set xlabel "length of a row, in elements"
set ylabel "accesses an element"
of(name, value) = strcol("kernel") eq name ? column(value) : NaN
set label "requested by the SMs (lines: predicted, marks: counted)" at 70, 4.3 tc rgb grey
set label "moved by DRAM (counted)" at 70, 1.6 tc rgb grey
set label "safe" at 6e6, 4 tc rgb orange
set label "online" at 6e6, 3.12 tc rgb blue
set label "naive" at 6e6, 2.85 tc rgb green
plot csv using "cols":(of("safe", "predicted_accesses")) with lines lw 3 lc rgb orange, \
     csv using "cols":(of("online", "predicted_accesses")) with lines lw 3 lc rgb blue, \
     csv using "cols":(of("safe", "requested_accesses")) with points pt 6 ps 1.6*dot lw 3 lc rgb orange, \
     csv using "cols":(of("online", "requested_accesses")) with points pt 4 ps 1.6*dot lw 3 lc rgb blue, \
     csv using "cols":(of("safe", "dram_accesses")) with linespoints pt 7 ps dot lw 4 lc rgb orange, \
     csv using "cols":(of("online", "dram_accesses")) with linespoints pt 5 ps dot lw 4 dt 2 lc rgb blue, \
     csv using "cols":(of("naive", "dram_accesses")) with linespoints pt 9 ps 1.3*dot lw 4 dt 4 lc rgb green
