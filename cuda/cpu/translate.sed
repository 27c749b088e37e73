# CUDA's two additions to C++ that no header can stand in for; run with sed -E -z. Lines keep
# their numbers: messages name those of the .cu file.
#   kernel<A, B> <<<grid, block, bytes, stream>>>(   ->   cpu_launch("kernel", kernel<A, B>, ...)(
#   extern __shared__ float shared[];                ->   float *shared = the block's memory;
s/([A-Za-z_][A-Za-z_0-9]*)(<[A-Za-z_0-9, ]+>)?([ \n]*)<<<([^;]*)>>>\(/cpu_launch("\1", \1\2,\3 \4)(/g
s/extern __shared__ ([a-z_0-9]+) ([A-Za-z_0-9]+)\[\];/\1 *\2 = (\1 *)cpu_now.shared;/g
