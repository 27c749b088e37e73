# Stacked bars of the Ascend's figures: Q, K, V and O at the bottom, S and P above, then Oij. What a
# segment is stands in it, if there is room. The rows are those of the column "figure"; set figure
# first. `plot @BARS` draws them.
field(n) = system(sprintf("awk -F, 'NR == 2 { print $%d }' '%s'", n, csv))
here(value) = strcol("figure") eq figure ? value : NaN
mb(name) = column(name) / 1e6
bottom(x) = here(mb("qkvo_bytes"))
middle(x) = here(mb("qkvo_bytes") + mb("scores_bytes"))
top(x) = here(mb("qkvo_bytes") + mb("scores_bytes") + mb("products_bytes"))
stats csv using (top(0)) nooutput
room = STATS_max * 0.055
# the middle of a segment from low to high, NaN if its label would not fit
within(low, high) = high - low > room ? (low + high) / 2 : NaN
two_lines(text) = strstrt(text, " ") ? text[1:strstrt(text, " ") - 1]."\n".text[strstrt(text, " ") + 1:*] : text
at(x) = here(column("bar"))
set style fill pattern border lt -1
set boxwidth 0.8
set xrange [-0.6:*]
set yrange [0:STATS_max * 1.15]
set grid noxtics
unset xtics
set bmargin 4
BARS = "csv using (at(0)):(top(0)) with boxes fs pattern 2 lc rgb green, ".\
    "csv using (at(0)):(middle(0)) with boxes fs solid 1 fc rgb '#ffffff' lc rgb black, ".\
    "csv using (at(0)):(middle(0)) with boxes fs pattern 4 lc rgb orange, ".\
    "csv using (at(0)):(bottom(0)) with boxes fs solid 1 lc rgb blue, ".\
    "csv using (at(0)):(within(0, bottom(0))):('QKVO') with labels tc rgb 'white', ".\
    "csv using (at(0)):(within(bottom(0), middle(0))):('S, P') with labels boxed tc rgb black, ".\
    "csv using (at(0)):(within(middle(0), top(0))):('Oij') with labels boxed tc rgb black, ".\
    "csv using (at(0)):(0):(two_lines(strcol('label'))) with labels offset 0,-1.6, ".\
    "csv using (at(0)):(top(0)):(sprintf('%.0f', top(0))) with labels offset 0,0.7 tc rgb black"
set style textbox opaque noborder margins 0.6,0.4 fillcolor rgb "white"
