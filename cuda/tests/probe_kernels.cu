/* PTX, so that each access is the one instruction that is asked for. What is loaded is stored
 * if it is a number that memory does not have: else the load would be dropped. */
#include "probe_kernels.h"

#include "cuda/error.h"

/* In the launch's arguments, which lie in the constant bank: reading them is no global load. */
struct probe_lanes {
    int slot[PROBE_LANES];
    int lanes;
};

static const float NOT_THERE = 12345.0f;

template <int BYTES> static __device__ float global_load(const char *address)
{
    float x = 0, y = 0, z = 0, w = 0;
    if constexpr (BYTES == 4)
        asm volatile("ld.global.f32 %0, [%1];" : "=f"(x) : "l"(address));
    else if constexpr (BYTES == 8)
        asm volatile("ld.global.v2.f32 {%0, %1}, [%2];" : "=f"(x), "=f"(y) : "l"(address));
    else
        asm volatile("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(x), "=f"(y), "=f"(z), "=f"(w)
                     : "l"(address));
    return x + y + z + w;
}

template <int BYTES> static __device__ void global_store(char *address, float x)
{
    if constexpr (BYTES == 4)
        asm volatile("st.global.f32 [%0], %1;" : : "l"(address), "f"(x));
    else if constexpr (BYTES == 8)
        asm volatile("st.global.v2.f32 [%0], {%1, %1};" : : "l"(address), "f"(x));
    else
        asm volatile("st.global.v4.f32 [%0], {%1, %1, %1, %1};" : : "l"(address), "f"(x));
}

template <int BYTES> static __device__ float shared_load(unsigned address)
{
    float x = 0, y = 0, z = 0, w = 0;
    if constexpr (BYTES == 4)
        asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(address));
    else if constexpr (BYTES == 8)
        asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x), "=f"(y) : "r"(address));
    else
        asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(x), "=f"(y), "=f"(z), "=f"(w)
                     : "r"(address));
    return x + y + z + w;
}

template <int BYTES> static __device__ void shared_store(unsigned address, float x)
{
    if constexpr (BYTES == 4)
        asm volatile("st.shared.f32 [%0], %1;" : : "r"(address), "f"(x));
    else if constexpr (BYTES == 8)
        asm volatile("st.shared.v2.f32 [%0], {%1, %1};" : : "r"(address), "f"(x));
    else
        asm volatile("st.shared.v4.f32 [%0], {%1, %1, %1, %1};" : : "r"(address), "f"(x));
}

template <int MATRICES> static __device__ float matrix_load(unsigned address)
{
    unsigned x = 0, y = 0, z = 0, w = 0;
    if constexpr (MATRICES == 1)
        asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
                     : "=r"(x)
                     : "r"(address));
    else if constexpr (MATRICES == 2)
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                     : "=r"(x), "=r"(y)
                     : "r"(address));
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x), "=r"(y), "=r"(z), "=r"(w)
                     : "r"(address));
    return __uint_as_float(x ^ y ^ z ^ w);
}

/* SIZE: bytes a lane, of PROBE_MATRIX_LOAD how many matrices. */
template <int ACCESS, int SIZE>
static __global__ void probe_kernel(const __grid_constant__ struct probe_lanes p, char *memory)
{
    extern __shared__ __align__(16) char shared[];
    constexpr int BYTES = ACCESS == PROBE_MATRIX_LOAD ? 16 : SIZE;
    const int lane = (int)threadIdx.x, offset = p.slot[lane] * BYTES;
    const unsigned inside = (unsigned)__cvta_generic_to_shared(shared) + (unsigned)offset;
    float x = 0;
    if constexpr (ACCESS == PROBE_MATRIX_LOAD)
        x = matrix_load<SIZE>(inside);
    else if (lane < p.lanes) {
        if constexpr (ACCESS == PROBE_GLOBAL_LOAD)
            x = global_load<SIZE>(memory + offset);
        else if constexpr (ACCESS == PROBE_GLOBAL_STORE)
            global_store<SIZE>(memory + offset, 1.0f);
        else if constexpr (ACCESS == PROBE_SHARED_LOAD)
            x = shared_load<SIZE>(inside);
        else
            shared_store<SIZE>(inside, 1.0f);
    }
    if (x == NOT_THERE)
        *(float *)memory = x;
}

typedef void kernel(const struct probe_lanes p, char *memory);

template <int ACCESS> static kernel *kernel_of(int bytes)
{
    return bytes == 4   ? probe_kernel<ACCESS, 4>
           : bytes == 8 ? probe_kernel<ACCESS, 8>
                        : probe_kernel<ACCESS, 16>;
}

static kernel *kernel_of_probe(const struct probe *probe)
{
    switch (probe->access) {
    case PROBE_GLOBAL_LOAD:
        return kernel_of<PROBE_GLOBAL_LOAD>(probe->bytes);
    case PROBE_GLOBAL_STORE:
        return kernel_of<PROBE_GLOBAL_STORE>(probe->bytes);
    case PROBE_SHARED_LOAD:
        return kernel_of<PROBE_SHARED_LOAD>(probe->bytes);
    case PROBE_SHARED_STORE:
        return kernel_of<PROBE_SHARED_STORE>(probe->bytes);
    default:
        return probe->lanes == 8    ? probe_kernel<PROBE_MATRIX_LOAD, 1>
               : probe->lanes == 16 ? probe_kernel<PROBE_MATRIX_LOAD, 2>
                                    : probe_kernel<PROBE_MATRIX_LOAD, 4>;
    }
}

enum status launch_probe(const struct probe *probe, void *memory, struct error *error)
{
    struct probe_lanes lanes;
    probe_slots(lanes.slot, probe);
    lanes.lanes = probe->lanes;
    kernel_of_probe(probe)<<<1, PROBE_LANES, PROBE_SHARED_BYTES>>>(lanes, (char *)memory);
    CUDA_TRY(cudaGetLastError(), error);
    return STATUS_OK;
}
