# The next Qi, Oi, l and m are loaded while others still read and store these.
s:__syncthreads\(\); /\* the previous Qi, .*$::
