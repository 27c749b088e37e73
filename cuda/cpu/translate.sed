# What CUDA adds to C++ and no header can stand in for; run with sed -E -z. Lines keep their
# numbers: messages name those of the .cu file.
#   kernel<A, B> <<<grid, block, bytes, stream>>>(   ->   cpu_launch("kernel", kernel<A, B>, ...)(
#   extern __shared__ float shared[];                ->   Shared<float> shared = the block's memory;
#   __shared__ float tile[32][33];                   ->   SharedRows<float> tile = ...;
#   __shared__ float sums[8];                        ->   Shared<float> sums = ...;
s/([A-Za-z_][A-Za-z_0-9]*)(<[A-Za-z_0-9, ]+>)?([ \n]*)<<<([^;]*)>>>\(/cpu_launch("\1", \1\2, [\&](auto \&...x) __attribute__((always_inline)) { \1\2(x...); },\3 \4)(/g
s/(__shared__) __align__\([0-9]+\)/\1/g
s/extern __shared__ ([a-z_0-9 ]+) ([A-Za-z_0-9]+)\[\];/Shared<\1> \2 = (\1 *)cpu_shared_dynamic();/g
s/__shared__ ([a-z_0-9 ]+) ([A-Za-z_0-9]+)\[([^];]*)\]\[([^];]*)\];/SharedRows<\1> \2 = cpu_shared_rows<\1>("\2", \3, \4);/g
s/__shared__ ([a-z_0-9 ]+) ([A-Za-z_0-9]+)\[([^];]*)\];/Shared<\1> \2 = cpu_shared_array<\1>("\2", \3);/g
