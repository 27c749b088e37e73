# What moves on each way of an Ascend's AI cores, and of a GPU, for the same problem and tiles.
load plots."style.gp"
figure = "ways"
load plots."ascend_bars.gp"
set title sprintf("Bytes on each way: one head, N = %s, d = %s, %s, tiles of %s x %s", field(4), \
    field(5), field(8), field(6), field(7))
set ylabel "MB (10^6)"
set arrow from 1.5, graph 0 to 1.5, graph 1 nohead lw 2 dt 2 lc rgb grey
set label "GPU" at 0.5, graph 0.95 center tc rgb grey
set label "Ascend 910B" at 6, graph 0.95 center tc rgb grey
plot @BARS
