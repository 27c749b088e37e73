/* For the tests of sim/core and sim/ops: seeded numbers, tensors of known contents, launches.
 *
 * Functions that can fail end the test. Block functions run on OpenMP threads and must not call
 * them, nor any CMocka assert: they leave what they saw in memory for the test to judge.
 */
#ifndef FLASHLAB_TESTS_CORE_FIXTURE_H
#define FLASHLAB_TESTS_CORE_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/launch.h"
#include "core/memory.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

/* A stream of numbers that depends on its seed only (splitmix64). */
struct rng {
    uint64_t state;
};

uint32_t random_bits(struct rng *rng);

/* A whole number from low to high, both included. */
int random_int(struct rng *rng, int low, int high);

/* A value whose magnitude is from 0.5 to 2, of either sign: never 0, and never a constant. */
float random_value(struct rng *rng);

/* count floats of random_value(); free() them. */
float *random_values(struct rng *rng, size_t count);

/* The same bits: NaN equals itself and 0 differs from -0. */
bool same_bits(float a, float b);

/* hbm_alloc() that must succeed. Free with hbm_free(). */
struct hbm_tensor new_tensor(struct gpu *gpu, const char *name, enum dtype dtype, int planes,
                             int rows, int cols);

/* Elements of all planes. */
size_t tensor_size(const struct hbm_tensor *t);

/* Uploads random values; returns them as the tensor holds them, rounded. free() them. */
float *upload_random(struct hbm_tensor *t, struct rng *rng);

/* The tensor's elements; free() them. */
float *downloaded(const struct hbm_tensor *t);

/* gpu_launch() that must succeed. */
void launch_ok(struct gpu *gpu, const struct launch *launch);

/* One thread block, on a new record of the GPU. It may reduce. */
void run_one_block(struct gpu *gpu, block_function *block, const void *args);

/* One tile_load(), tile_store() or tile_reduce_add(). */
struct tile_move {
    enum direction direction;
    struct hbm_tensor *tensor;
    int plane, row, col;
    enum dtype dtype; /* of the tile */
    int rows, cols;   /* of the tile */
    float *values;    /* [rows][cols], what a load found or a store shall write */
};

/* A move of a tile that overlaps the tensor somewhere, often over its edge; values NULL. */
struct tile_move random_move(struct rng *rng, enum direction direction, struct hbm_tensor *t);

/* The block that makes the one struct tile_move at args. */
void move_block(struct thread_block *b, const void *args);

#endif
