# Bandwidth against the bytes in flight, whatever they are made of, beside Little's law.
load plots."style.gp"
is_load(value) = strcol("sweep") eq "loads" ? value : NaN
stats csv using (is_load(column("predicted") / column("in_flight"))) name "slope" nooutput
stats csv using (is_load(column("predicted"))) name "law" nooutput
least(a, b) = a < b ? a : b
set title "H200: the same launches, by what they have in flight"
set logscale x 2
set logscale y 10
set xrange [3:220]
set xtics 4, 2, 128
set samples 1000
set yrange [1:6]
set ytics (1, 2, 3, 4, 5)
set xlabel "in flight an SM, KB (1024 bytes): warps x 32 lanes x loads x 16 bytes"
set ylabel "bandwidth, TB/s"
tb(loads) = (strcol("sweep") eq "loads" && column("independent") == loads) ? \
    column("measured") / 1e12 : NaN
kb = 1024.0
set label "Little's law:\nin flight / latency,\nat most 4.8 TB/s" at 3.2, 4.9 tc rgb grey
set label "marks: loads of a thread in flight" at 23, 1.5
set label "1" at 27, 1.3 point pt 7 ps 1.2 * dot lw 3 lc rgb black offset 1.5,0 tc rgb black
set label "2" at 38, 1.3 point pt 5 ps 1.2 * dot lw 3 lc rgb orange offset 1.5,0 tc rgb orange
set label "4" at 54, 1.3 point pt 9 ps 1.5 * dot lw 3 lc rgb blue offset 1.5,0 tc rgb blue
set label "8" at 76, 1.3 point pt 12 ps 2 * dot lw 3 lc rgb green offset 1.5,0 tc rgb green
plot least(law_max, slope_max * kb * x) / 1e12 with lines lw 4 dt 2 lc rgb grey, \
     csv using (column("in_flight") / kb):(tb(1)) with points pt 7 ps 1.2 * dot lw 3 lc rgb black, \
     csv using (column("in_flight") / kb):(tb(2)) with points pt 5 ps 1.2 * dot lw 3 lc rgb orange, \
     csv using (column("in_flight") / kb):(tb(4)) with points pt 9 ps 1.5 * dot lw 3 lc rgb blue, \
     csv using (column("in_flight") / kb):(tb(8)) with points pt 12 ps 2 * dot lw 3 lc rgb green
