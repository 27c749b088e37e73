# K and V are loaded while others still read the previous Pij and Vj.
s:__syncthreads\(\); /\* all have read the previous Pij and Vj \*/::
