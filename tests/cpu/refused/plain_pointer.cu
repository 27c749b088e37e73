/* refused: plain_pointer.cu:4 */
__global__ void first_element(Global<float> to)
{
    float *unseen = to;
    unseen[0] = 0.0f;
}
