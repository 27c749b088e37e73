# Pij goes to the place of Kj while others still read that.
s:__syncthreads\(\); /\* all have read Kj \*/::
