/* Tiles: what a thread block may hold on chip, and the table it gets when that is too much. */
#include "core/on_chip.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/memory.h"

static const char *const level_names[LEVEL_COUNT] = {
    [LEVEL_SRAM] = "SRAM",   [LEVEL_REGISTERS] = "registers",
    [LEVEL_L1] = "L1",       [LEVEL_L0A] = "L0A",
    [LEVEL_L0B] = "L0B",     [LEVEL_L0C] = "L0C",
    [LEVEL_UB] = "UB, both",
};

void on_chip_free(struct on_chip_storage *storage)
{
    for (int i = 0; i < MAX_TILES; i++)
        free(storage->slot[i].data);
    *storage = (struct on_chip_storage){0};
}

/* Makes the message that lists every tile, what each level needs and what it has. It is made
 * again at each tile after the first that does not fit, so that it ends up complete. */
static void refuse_tiles(struct thread_block *b)
{
    char table[1536];
    size_t at = 0;
    for (int i = 0; i < b->tile_count && at < sizeof table; i++)
        at += (size_t)snprintf(table + at, sizeof table - at, "\n  %-12s %-10s %12" PRId64,
                               b->tiles[i].name, level_names[b->tiles[i].level],
                               b->tiles[i].bytes);
    for (int k = 0; k < LEVEL_COUNT && at < sizeof table; k++) {
        const int64_t left = b->capacity[k] - b->used[k];
        if (b->capacity[k] == 0 && b->used[k] == 0)
            continue; /* another machine's */
        at += (size_t)snprintf(table + at, sizeof table - at,
                               "\n  all in %-15s %12" PRId64 " of %" PRId64 ": %s %" PRId64,
                               level_names[k], b->used[k], b->capacity[k],
                               left < 0 ? "too much by" : "left", left < 0 ? -left : left);
    }
    error_format(
        &b->error, STATUS_ON_CHIP_FULL,
        "%s: the tiles of one thread block do not fit on chip on %s.\n"
        "  %-12s %-10s %12s%s\n"
        "Use smaller blocks, a smaller head dimension, a smaller dtype or another machine.",
        b->launch->name, b->gpu->machine->name, "tile", "level", "bytes", table);
}

/* The host floats behind tile number slot, at least count of them; NULL without memory. */
static float *slot_floats(struct on_chip_storage *storage, int slot, size_t count)
{
    const size_t bytes = (count * sizeof(float) + 63) / 64 * 64;
    if (storage->slot[slot].bytes < bytes) {
        free(storage->slot[slot].data);
        storage->slot[slot].data = aligned_alloc(64, bytes);
        storage->slot[slot].bytes = storage->slot[slot].data ? bytes : 0;
    }
    return storage->slot[slot].data;
}

/* A kernel that uses what it never loaded gets NaN, not what was there before. */
static void fill_with_nan(struct tile *t)
{
    const size_t count = (size_t)t->rows * (size_t)t->cols;
    for (size_t i = 0; i < count; i++)
        t->own[i] = NAN;
}

void tile_alloc(struct tile *t, struct thread_block *b, enum level level, const char *name,
                enum dtype dtype, int rows, int cols)
{
    CHECK(rows > 0 && cols > 0, "%s: tile %s of %d x %d", b->launch->name, name, rows, cols);
    CHECK(b->tile_count < MAX_TILES, "%s: more than %d tiles", b->launch->name, MAX_TILES);
    const int slot = b->tile_count++;
    const size_t count = (size_t)rows * (size_t)cols;
    *t = (struct tile){b, name, level, dtype, rows, cols, (int64_t)count, NULL, NULL};
    b->tiles[slot] = (struct tile_entry){name, level, (int64_t)count * dtype_bytes(dtype)};
    b->used[level] += b->tiles[slot].bytes;
    if (b->used[level] > b->capacity[level] || b->error.status == STATUS_ON_CHIP_FULL) {
        refuse_tiles(b);
        return;
    }
    if (b->gpu->mode == GPU_COUNTS || block_failed(b))
        return;
    t->data = t->own = slot_floats(b->storage, slot, count);
    if (!t->own) {
        error_format(&b->error, STATUS_OUT_OF_MEMORY,
                     "%s: the host has no memory for tile %s of %d x %d floats",
                     b->launch->name, name, rows, cols);
        return;
    }
    fill_with_nan(t);
}

void tile_shape(struct tile *t, int rows, int cols)
{
    CHECK(rows > 0 && cols > 0 && (int64_t)rows * cols <= t->room,
          "tile %s made for %lld elements becomes %d x %d", t->name, (long long)t->room, rows,
          cols);
    t->rows = rows;
    t->cols = cols;
    if (!t->data)
        return;
    t->data = t->own;
    fill_with_nan(t);
}
