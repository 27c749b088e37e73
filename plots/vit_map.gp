# A picture with the patch that looks, and what it looks at: without training, and trained; below,
# head by head.
load plots."style.gp"
rows(kind, head) = sprintf("< grep '^%s,%s,' '%s'", kind, head, csv)
field(n) = int(system(sprintf("awk -F, '$1 == \"patch\" { print $%d }' '%s'", n, csv)))
patch_row = field(3); patch_column = field(4)
count(kind) = int(system(sprintf("awk -F, '$1 == \"%s\" { n++ } END { print n + 0 }' '%s'", kind, csv)))
is_trained = count("trained") > 0; heads = count("head") / 196
# the most of all patches but the one that looks, which would outshine the rest
most(kind, head) = real(system(sprintf("awk -F, '$1 == \"%s\" && $2 == %s && !($3 == %d && $4 == %d) && $5 > m { m = $5 } END { print m + 1e-9 }' '%s'", \
    kind, head, patch_row, patch_column, csv)))
unset border; unset grid; unset tics; unset xlabel; unset ylabel
set size square
# from dark to light, so that it reads in grey too
set palette defined (0 "#00204d", 0.25 "#31446b", 0.5 "#7c7b78", 0.75 "#bcaf6f", 1 "#ffea46")
set cbtics nomirror out offset 0, 0.5
set format cb "%.1f %%"
# viewers of SVG would smooth so small an image
map_style = is_svg ? "image pixels" : "image"
panels = is_trained ? 3 : 2
left(i) = (3 - panels) / 6.0 + i / 3.0 + 0.03; right(i) = left(i) + 1 / 3.0 - 0.06
set multiplot title sprintf("What patch %d,%d looks at: its row of softmax(QK^T/√d), mean of the heads", \
    patch_row, patch_column) offset 0, 0.2
set tmargin at screen 0.865; set bmargin at screen 0.43
set lmargin at screen left(0); set rmargin at screen right(0)
set xrange [0:224]
set yrange [224:0]
set object 1 rect from 16 * patch_column, 16 * patch_row to 16 * (patch_column + 1), \
    16 * (patch_row + 1) front fs empty border lc rgb "white" lw 4
set title "14 × 14 patches of 16 × 16" offset 0, -0.7
set label 1 (is_trained ? "below: the trained heads,\neach on its own scale" : \
    "below: six heads,\neach on its own scale") at screen left(0), 0.39
plot rows("pixel", "") using ($4 + 0.5):($3 + 0.5):6:7:8 with rgbimage
unset label 1
set xrange [-0.5:13.5]
set yrange [13.5:-0.5]
set object 1 rect from patch_column - 0.5, patch_row - 0.5 to patch_column + 0.5, \
    patch_row + 0.5 front fs empty border lc rgb "white" lw 4
do for [i = 1:panels - 1] {
    kind = i == 1 ? "alike" : "trained"
    set lmargin at screen left(i); set rmargin at screen right(i)
    set colorbox horizontal user origin screen left(i) + 0.02, 0.39 size 1 / 3.0 - 0.1, 0.02
    m = most(kind, "0")
    set cbrange [0:m]
    set cbtics m / 2
    set title i == 1 ? "random weights: what looks alike" : "trained weights" offset 0, -0.7
    plot rows(kind, "0") using 4:3:5 with @map_style
}
unset colorbox
set object 1 rect from patch_column - 0.5, patch_row - 0.5 to patch_column + 0.5, \
    patch_row + 0.5 front fs empty border lc rgb "white" lw 2
set tmargin at screen 0.22; set bmargin at screen 0.01
do for [i = 0:heads - 1] {
    head = sprintf("%d", i)
    set lmargin at screen i / 6.0 + 0.01; set rmargin at screen (i + 1) / 6.0 - 0.01
    set cbrange [0:most("head", head)]
    set title "head ".head offset 0, -0.8
    plot rows("head", head) using 4:3:5 with @map_style
}
unset multiplot
