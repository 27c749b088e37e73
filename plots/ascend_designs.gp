# What crosses between global memory and the cores: on a GPU, on an Ascend 910B, and with what a
# designer would change.
load plots."style.gp"
figure = "designs"
load plots."ascend_bars.gp"
set title sprintf("One head, N = %s, d = %s, %s: bytes between memory and cores", field(4), \
    field(5), field(8))
set ylabel "MB (10^6)"
plot @BARS
