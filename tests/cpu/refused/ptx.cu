/* refused: inline PTX does not run on the CPU */
__global__ void lane_numbers(int *to)
{
    unsigned lane;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    to[threadIdx.x] = (int)lane;
}
