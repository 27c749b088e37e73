# What all figures share: terminal by the output's ending, type large enough for a lecture hall,
# colours that stay apart in grey and for colour-blind eyes (Okabe and Ito's set), curves labelled
# where they end.
if (is_svg) set terminal svg size 1200,750 dynamic font "DejaVu Sans,24" background rgb "white"
if (!is_svg) set terminal pngcairo size 1600,1000 font "DejaVu Sans,22" background rgb "white"
set output output_file
set encoding utf8
set datafile separator ","
set datafile missing "NaN"
set border 3 linewidth 2
set tics nomirror out
set grid linecolor rgb "#cccccc" linewidth 1
unset key
# points of the svg terminal are about three times as large
dot = is_svg ? 0.5 : 1.5
black = "#000000"; orange = "#d55e00"; blue = "#0072b2"; green = "#009e73"; grey = "#777777"
# matrix bytes of the rows of one sweep and algorithm; NaN leaves a row out
bytes_of(sweep, name) = (strcol("sweep") eq sweep && strcol("algorithm") eq name) ? \
    column("matrix_bytes") : NaN
