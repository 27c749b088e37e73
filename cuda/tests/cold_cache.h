/* A GPU's L2 made cold: full of what no one asks for, and clean.
 *
 * Interface:
 *   struct cold_cache cold;
 *   cold_cache_open(&cold, &error);
 *   cold_cache_fill(&cold, &error);      on the default stream
 *   cold_cache_close(&cold);
 */
#ifndef FLASHLAB_CUDA_TESTS_COLD_CACHE_H
#define FLASHLAB_CUDA_TESTS_COLD_CACHE_H

#include "cuda/device.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cold_cache {
    void *memory; /* device, owned */
    int64_t bytes;
};

enum status cold_cache_open(struct cold_cache *cold, struct error *error);
void cold_cache_close(struct cold_cache *cold);

/* Reads memory of 8 times the size of L2: what was there leaves, dirty lines are written back,
 * and as nothing is written, none are dirty afterwards. */
enum status cold_cache_fill(const struct cold_cache *cold, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
