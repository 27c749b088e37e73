/* Attention on a real GPU: the launchers of the kernels, and a run from host array to host
 * array.
 *
 * Interface:
 *   struct attention a = {...};                       core/attention.h; dtype DTYPE_F32
 *   attention_on_device(ALGORITHM_FLASH2, &a, q, k, v, o, lse, &error);
 * or, to launch again and again on memory that stays on the device:
 *   struct device_tensors t;
 *   device_tensors_alloc(&t, ALGORITHM_FLASH2, &a, &error);
 *   device_upload(t.Q, q, bytes, &error); ...         cuda/device.h
 *   attention_launchers[ALGORITHM_FLASH2](&a, &t, &error);
 *   device_tensors_free(&t);
 *
 * Shapes are those of kernels/attention_kernels.h, fp32, row-major. Standard attention runs on
 * real tiles: its simulated twin is the one with tiled_gemm.
 */
#ifndef FLASHLAB_CUDA_ATTENTION_H
#define FLASHLAB_CUDA_ATTENTION_H

#include "cuda/problem.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the kernels can do: tiles of up to 64 rows (compiled for 16, 32, 64), O rows of up to
 * 256 columns (compiled for 64, 128, 256). */
enum { MAX_BLOCK = 64, MAX_HEAD_DIM = 256 };

/* Device addresses, each a multiple of 256 bytes. */
struct device_tensors {
    float *Q, *K, *V, *O, *LSE;
    float *S, *P; /* standard attention only: (planes_q, seqlen_q, seqlen_k) */
    float *l, *m; /* flash1 only: (planes_q, seqlen_q); it leaves LSE as it is */
    void *steps;  /* trace_launchers only: a struct step_buffer; not owned */
    void *stream; /* a cudaStream_t; NULL: the default stream */
};

/* Puts one run of the algorithm on the stream and returns; the message of a refusal names the
 * option, its value and what is allowed, or the bytes of shared memory needed and allowed. */
typedef enum status attention_launcher(const struct attention *a,
                                       const struct device_tensors *t, struct error *error);

attention_launcher launch_naive_attention;
attention_launcher launch_standard_attention;
attention_launcher launch_flash1_forward;
attention_launcher launch_flash2_forward;

/* By enum algorithm. */
extern attention_launcher *const attention_launchers[ALGORITHM_COUNT];

/* The same of the tracing build, whose kernels write step records to t->steps: see steps.h. */
attention_launcher trace_naive_attention;
attention_launcher trace_standard_attention;
attention_launcher trace_flash1_forward;
attention_launcher trace_flash2_forward;
extern attention_launcher *const trace_launchers[ALGORITHM_COUNT];

/* Allocates what the algorithm needs, elements NaN; frees it (also after a failure). */
enum status device_tensors_alloc(struct device_tensors *t, enum algorithm algorithm,
                                 const struct attention *a, struct error *error);
void device_tensors_free(struct device_tensors *t);

/* Arrays as attention_simulate() takes them. After FlashAttention-1, which leaves l and m in
 * HBM, lse <- m + log l on the host, as the simulator does it. */
enum status attention_upload(const struct device_tensors *t, const struct attention *a,
                             const float *q, const float *k, const float *v,
                             struct error *error);
enum status attention_download(float *o, float *lse, enum algorithm algorithm,
                               const struct attention *a, const struct device_tensors *t,
                               struct error *error);

/* One run; arrays as attention_simulate() takes them. */
enum status attention_on_device(enum algorithm algorithm, const struct attention *a,
                                const float *q, const float *k, const float *v, float *o,
                                float *lse, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
