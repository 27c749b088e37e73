# The warps' maxima are read before all warps have written theirs.
/^__device__ __forceinline__ float block_max/,/^}/s:__syncthreads\(\);::
