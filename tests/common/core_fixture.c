#include "common/core_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

uint32_t random_bits(struct rng *rng)
{
    uint64_t z = rng->state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return (uint32_t)(z >> 32);
}

int random_int(struct rng *rng, int low, int high)
{
    const uint64_t choices = (uint64_t)((int64_t)high - low + 1);
    return (int)(low + (int64_t)(random_bits(rng) * choices >> 32));
}

float random_value(struct rng *rng)
{
    const uint32_t bits = random_bits(rng);
    const float magnitude = ldexpf((float)(bits >> 9 | 1u << 23), (bits & 1) ? -24 : -23);
    return bits & 2 ? -magnitude : magnitude;
}

float *random_values(struct rng *rng, size_t count)
{
    float *values = malloc(count * sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < count; i++)
        values[i] = random_value(rng);
    return values;
}

bool same_bits(float a, float b)
{
    /* NOLINTNEXTLINE: the bits matter, not the values */
    return memcmp(&a, &b, sizeof a) == 0;
}

struct hbm_tensor new_tensor(struct gpu *gpu, const char *name, enum dtype dtype, int planes,
                             int rows, int cols)
{
    struct hbm_tensor t;
    struct error error = {0};
    if (hbm_alloc(&t, gpu, name, dtype, planes, rows, cols, &error) != STATUS_OK)
        fail_msg("%s", error.text);
    return t;
}

size_t tensor_size(const struct hbm_tensor *t)
{
    return (size_t)t->planes * (size_t)t->rows * (size_t)t->cols;
}

float *upload_random(struct hbm_tensor *t, struct rng *rng)
{
    float *values = random_values(rng, tensor_size(t));
    hbm_upload(t, values);
    dtype_round(values, t->dtype, values, tensor_size(t));
    return values;
}

float *downloaded(const struct hbm_tensor *t)
{
    float *values = malloc(tensor_size(t) * sizeof *values);
    assert_non_null(values);
    hbm_download(values, t);
    return values;
}

void launch_ok(struct gpu *gpu, const struct launch *launch)
{
    struct error error = {0};
    if (gpu_launch(gpu, launch, &error) != STATUS_OK)
        fail_msg("%s", error.text);
}

void run_one_block(struct gpu *gpu, block_function *block, const void *args)
{
    const int threads = omp_get_max_threads();
    omp_set_num_threads(1); /* a team of more would only wait: slow on a busy machine */
    launch_ok(gpu, &(struct launch){.name = "one_block",
                                    .grid = {1, 1, 1},
                                    .block = block,
                                    .args = args,
                                    .reduces = true});
    omp_set_num_threads(threads);
}

struct tile_move random_move(struct rng *rng, enum direction direction, struct hbm_tensor *t)
{
    struct tile_move move = {
        .direction = direction, .tensor = t, .dtype = DTYPE_F32, .values = NULL};
    move.plane = random_int(rng, 0, t->planes - 1);
    move.row = random_int(rng, 0, t->rows - 1);
    move.rows = random_int(rng, 1, t->rows + 5);
    /* As kernels do: whole rows, or some columns; sometimes wider than the tensor. */
    const bool whole_rows = random_int(rng, 0, 2) == 0;
    move.col = whole_rows ? 0 : random_int(rng, 0, t->cols - 1);
    move.cols = whole_rows ? t->cols : random_int(rng, 1, t->cols + 5);
    if (random_int(rng, 0, 3) == 0)
        move.dtype = t->dtype;
    return move;
}

void move_block(struct thread_block *b, const void *args)
{
    const struct tile_move *move = args;
    const size_t bytes = (size_t)move->rows * (size_t)move->cols * sizeof(float);
    struct tile tile;
    tile_alloc(&tile, b, LEVEL_SRAM, "tile", move->dtype, move->rows, move->cols);
    const bool load = move->direction == DIRECTION_READ;
    if (!load && tile.data)
        memcpy(tile_writable(&tile), move->values, bytes);
    if (load)
        tile_load(&tile, move->tensor, move->plane, move->row, move->col);
    else if (move->direction == DIRECTION_WRITE)
        tile_store(move->tensor, move->plane, move->row, move->col, &tile);
    else
        tile_reduce_add(move->tensor, move->plane, move->row, move->col, &tile);
    if (load && tile.data)
        memcpy(move->values, tile.data, bytes);
}
