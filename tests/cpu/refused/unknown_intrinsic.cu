/* refused: __nanosleep */
__global__ void wait_long()
{
    __nanosleep(100);
}
