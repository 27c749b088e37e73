# A roofline by levels: the ceilings of a machine, and kernels as measured, at their intensity at
# HBM (discs) and at L2 (triangles), joined; rings are the model's times. Where nothing was
# measured all are the model's. Variables that a script may set before it loads this one:
#   panel        which rows of the file; those of its first row
#   from_x       the least intensity drawn, and label_x, where slopes are labelled
#   decades      of TFLOP/s below the peak
#   chart_title  what stands above
#   shift(name)  by what a kernel's label is moved up, as a factor
load plots."style.gp"
set termoption noenhanced
if (!exists("panel")) panel = system(sprintf("awk -F, 'NR == 2 { print $1 }' '%s'", csv))
if (!exists("from_x")) from_x = 0.05; label_x = 0.2; decades = 3
if (!exists("GPFUN_shift")) shift(name) = name eq "flash1" ? 0.8 : name eq "flash2" ? 1.15 : 1
field(format) = system(sprintf(format, panel, csv))
peak = field("awk -F, -v p=%s '$1 == p && $2 == \"ceiling\" && $6 > most { most = $6 } END { print most }' '%s'") + 0
if (exists("chart_title")) set title chart_title
set logscale xy
set xrange [from_x:60000]
set yrange [2 * peak / 10 ** decades:3 * peak]
set xtics ("0.1" 0.1, "1" 1, "10" 10, "100" 100, "1000" 1000)
set format y "%g"
set xlabel "FLOPs a byte"
set ylabel "TFLOP/s"
measured = field("awk -F, -v p=%s '$1 == p && $2 == \"kernel\" && $7 != \"NaN\"' '%s' | wc -l") + 0
speed = measured > 0 ? 7 : 6
# the ceilings' names, with "_" for " "
names = field("awk -F, -v p=%s '$1 == p && $2 == \"ceiling\" { print $3 }' '%s' | uniq | tr ' ' '_'")
name(i) = system(sprintf("echo '%s' | tr '_' ' '", word(names, i)))
is_l2(i) = strstrt(word(names, i), "L2") == 1
is_peak(i) = !is_l2(i) && strstrt(word(names, i), "HBM") != 1
ceiling(i, value) = (strcol(1) eq panel && strcol(2) eq "ceiling" && strcol(3) eq name(i)) ? value : NaN
kernel(value) = (strcol(1) eq panel && strcol(2) eq "kernel") ? value : NaN
# TFLOP/s at a ceiling's first point over FLOPs a byte there: TB/s of a slope
first(i) = system(sprintf("awk -F, -v p=%s -v n='%s' '$1 == p && $3 == n { print $6 / $4; exit }' '%s'", panel, name(i), csv)) + 0
do for [i = 1:words(names)] {
    if (is_peak(i)) { set label name(i) at 5000, peak right offset 0,1 }
    else { if (is_l2(i)) { set label name(i) at 4 * label_x, 4 * label_x * first(i) right offset -2,0.8 }
    else { set label name(i) at label_x, label_x * first(i) left offset 2,-0.5 } }
}
dash(i) = is_l2(i) ? 2 : 1
set label (measured > 0 ? "disc: measured; ring: the model\ntriangle: the same run, a byte\nthat the SMs ask L2 for" : \
           "disc: the model, a byte of HBM\ntriangle: a byte that\nthe SMs ask L2 for") at graph 0.98, graph 0.17 right tc rgb grey
plot for [i = 1:words(names)] csv using 4:(ceiling(i, column(6))) with lines lw 4 dt dash(i) lc rgb black, \
     csv using 5:(kernel(column(speed))):(kernel(column(4) - column(5))):(0) \
         with vectors nohead lw 2 dt 3 lc rgb grey, \
     csv using 5:(kernel(column(speed))) with points pt 9 ps 1.5 * dot lc rgb orange, \
     csv using 4:(kernel(column(speed))) with points pt 7 ps 1.5 * dot lc rgb blue, \
     csv using 4:(kernel(column(6))) with points pt 6 ps 2 * dot lw 3 lc rgb green, \
     csv using 4:(kernel(shift(strcol(3)) * column(speed))):3 \
         with labels noenhanced left offset 1.5,0 tc rgb blue
