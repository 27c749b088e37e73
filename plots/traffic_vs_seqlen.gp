# HBM traffic against the sequence length: all four algorithms, and the compulsory floor.
load plots."style.gp"
# the problem, from the CSV's first row
field(n) = system(sprintf("awk -F, 'NR == 2 { print $%d }' '%s'", n, csv))
set title sprintf("Bytes requested from HBM, forward, one head: d = %s, Br = %s, Bc = %s, %s", \
    field(8), field(9), field(10), field(4))
set logscale xy
set xrange [64:65536*7]
set xtics ("64" 64, "256" 256, "1K" 1024, "4K" 4096, "16K" 16384, "64K" 65536)
set format y "10^{%T}"
set xlabel "sequence length N"
set ylabel "bytes"
compulsory(name) = bytes_of("seqlen", name) > 0 ? column("compulsory_bytes") : NaN
# the last point of each curve carries its label; three curves end within a factor of 2, so
# their labels are pushed apart
ends(value) = column("seqlen") == 65536 ? value : NaN
plot csv using "seqlen":(bytes_of("seqlen", "naive")) with lines lw 4 lc rgb black, \
     csv using "seqlen":(bytes_of("seqlen", "standard")) with lines lw 4 lc rgb orange, \
     csv using "seqlen":(bytes_of("seqlen", "flash1")) with lines lw 4 lc rgb blue, \
     csv using "seqlen":(bytes_of("seqlen", "flash2")) with lines lw 4 lc rgb green, \
     csv using "seqlen":(compulsory("flash2")) with lines lw 3 dt 2 lc rgb grey, \
     csv using "seqlen":(ends(bytes_of("seqlen", "naive"))):("naive") \
         with labels left offset 1,0 tc rgb black, \
     csv using "seqlen":(ends(bytes_of("seqlen", "standard"))):("standard") \
         with labels left offset 1,0.9 tc rgb orange, \
     csv using "seqlen":(ends(bytes_of("seqlen", "flash1"))):("FlashAttention-1") \
         with labels left offset 1,0 tc rgb blue, \
     csv using "seqlen":(ends(bytes_of("seqlen", "flash2"))):("FlashAttention-2") \
         with labels left offset 1,-0.9 tc rgb green, \
     csv using "seqlen":(ends(compulsory("flash2"))):("Q, K, V, O once") \
         with labels left offset 1,0 tc rgb grey
