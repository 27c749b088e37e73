# Bandwidth against occupancy, by the loads that each thread has in flight.
load plots."style.gp"
set title "H200: a vector of 4 GiB, read with 1 to 8 loads of 16 bytes a thread in flight"
set xrange [0:105]
set xtics 12.5 format "%g"
set yrange [0:5.4]
set xlabel "occupancy, % of an SM's 64 warps"
set ylabel "bandwidth, TB/s"
tb(loads) = (strcol("sweep") eq "loads" && column("independent") == loads) ? \
    column("measured") / 1e12 : NaN
set arrow from 0, 4.8 to 105, 4.8 nohead lw 3 dt 2 lc rgb grey
set label "4.8 TB/s, the datasheet" at 103, 5.0 right tc rgb grey
first(loads) = column("warps") == 8 ? tb(loads) : NaN
plot csv using (100 * column("occupancy")):(tb(1)) with linespoints pt 7 ps dot lw 4 lc rgb black, \
     csv using (100 * column("occupancy")):(tb(2)) with linespoints pt 5 ps dot lw 4 dt 2 lc rgb orange, \
     csv using (100 * column("occupancy")):(tb(4)) with linespoints pt 9 ps 1.3 * dot lw 4 lc rgb blue, \
     csv using (100 * column("occupancy")):(tb(8)) with linespoints pt 13 ps 1.3 * dot lw 4 dt 4 lc rgb green, \
     csv using (12.5):(first(1)):("1 load") with labels right offset -1.5,0 tc rgb black, \
     csv using (12.5):(first(2)):("2 loads") with labels right offset -1.5,0 tc rgb orange, \
     csv using (12.5):(first(4)):("4 loads") with labels right offset -1.5,0 tc rgb blue, \
     csv using (12.5):(first(8)):("8 loads") with labels right offset -1.5,0 tc rgb green
