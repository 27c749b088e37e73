# The statistics and O leave shared memory before all threads have put theirs there.
/tile_put_rows\(sl, l\);/{n; s:__syncthreads\(\);::}
