# What share of the moved bytes a warp's request asked for, against its stride: model and H200.
load plots."style.gp"
set title "One request of a warp, 32 lanes: useful share of the bytes that move"
set xrange [1:41]
set xtics (1, 2, 4, 8, 16, 24, 33)
set yrange [0:108]
set ytics 25
set xlabel "stride between lanes, in elements"
set ylabel "useful bytes, percent"
of(size, name) = column("bytes") == size ? column(name) : NaN
set label "16 bytes a lane" at 34, 50 tc rgb green
set label "8 bytes" at 34, 25 tc rgb blue
set label "4 bytes" at 34, 12.5 tc rgb orange
set label "lines: predicted\nmarks: counted on an H200" at 20, 88
plot csv using "stride":(of(4, "useful_percent")) with lines lw 4 lc rgb orange, \
     csv using "stride":(of(8, "useful_percent")) with lines lw 4 dt 2 lc rgb blue, \
     csv using "stride":(of(16, "useful_percent")) with lines lw 4 dt 4 lc rgb green, \
     csv using "stride":(of(4, "measured_useful_percent")) with points pt 7 ps dot lc rgb orange, \
     csv using "stride":(of(8, "measured_useful_percent")) with points pt 5 ps dot lc rgb blue, \
     csv using "stride":(of(16, "measured_useful_percent")) with points pt 9 ps 1.3*dot lc rgb green
