# Half of the block's threads reach the barrier.
s:__syncthreads\(\); /\* all have read the previous Pij and Vj \*/:if (threadIdx.x < 64) __syncthreads();:
