#include "common/transpose_banks.h"

#include <string.h>

#include "common/results_table.h"
#include "cuda/cpu/cpu.h"
#include "models/banks.h"

enum { TILE = TRANSPOSE_TILE, FLOAT_BYTES = 4 };

static int place(enum transpose_layout layout, int row, int col)
{
    switch (layout) {
    case TRANSPOSE_PADDED:
        return row * (TILE + 1) + col;
    case TRANSPOSE_SWIZZLED:
        return row * TILE + (col ^ row);
    default:
        return row * TILE + col;
    }
}

static int predict(enum transpose_layout layout)
{
    int wavefronts = 0;
    for (int col = 0; col < TILE; col++) {
        uint32_t offset[BANK_LANES];
        for (int lane = 0; lane < BANK_LANES; lane++)
            offset[lane] = (uint32_t)(place(layout, lane, col) * FLOAT_BYTES);
        wavefronts += bank_wavefronts(offset, UINT32_MAX, FLOAT_BYTES, true);
    }
    return wavefronts;
}

/* The probe in the row is a load of a column of such a tile: lane k reads the float at
 * k * a + b, or k * a + (k xor b). */
static bool is_column(const struct results_table *t, int row, enum transpose_layout layout)
{
    double bytes, lanes, a, b;
    const char *access = results_table_text(t, row, "access");
    const char *pattern = results_table_text(t, row, "pattern");
    const int pitch = layout == TRANSPOSE_PADDED ? TILE + 1 : TILE;
    return access && pattern && strcmp(access, "shared_load") == 0 &&
           strcmp(pattern, layout == TRANSPOSE_SWIZZLED ? "swizzle" : "stride") == 0 &&
           results_table_number(&bytes, t, row, "bytes") && bytes == FLOAT_BYTES &&
           results_table_number(&lanes, t, row, "lanes") && lanes == BANK_LANES &&
           results_table_number(&a, t, row, "a") && a == pitch &&
           results_table_number(&b, t, row, "b");
}

static enum status read_probes(struct transpose_banks *banks, enum transpose_layout layout,
                               struct error *error)
{
    struct results_table t;
    double sum = 0, wavefronts;
    if (results_table_read(&t, FLASHLAB_ROOT "/cuda/results/h200_probes.csv", error))
        return error->status;
    for (int row = 0; row < t.rows; row++) {
        if (is_column(&t, row, layout) &&
            results_table_number(&wavefronts, &t, row, "shared_load_wavefronts")) {
            sum += wavefronts;
            banks->probes++;
        }
    }
    results_table_free(&t);
    if (banks->probes > 0)
        banks->measured = (int)(sum * TILE / banks->probes);
    return STATUS_OK;
}

static void execute(struct transpose_banks *banks, enum transpose_layout layout)
{
    static float src[TILE * TILE], dst[TILE * TILE];
    for (int i = 0; i < TILE * TILE; i++)
        src[i] = (float)i;
    cpu_begin(&(struct cpu_options){0});
    cpu_array("src", src, sizeof src, CPU_FILLED);
    cpu_array("dst", dst, sizeof dst, CPU_UNWRITTEN);
    launch_transpose_tiles(dst, src, TILE, TILE, layout);
    banks->on_cpu = (int)cpu_counts()->launch[0].shared[CPU_LOAD].wavefronts;
    cpu_end();
    banks->transposed = true;
    for (int row = 0; row < TILE; row++)
        for (int col = 0; col < TILE; col++)
            banks->transposed &= dst[col * TILE + row] == src[row * TILE + col];
}

enum status transpose_banks_count(struct transpose_banks *banks, enum transpose_layout layout,
                                  struct error *error)
{
    *banks = (struct transpose_banks){.predicted = predict(layout)};
    execute(banks, layout);
    return read_probes(banks, layout, error);
}
