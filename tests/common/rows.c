#include "common/rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

static int extent(const struct csv *table, int row, const char *column)
{
    return (int)csv_int(table, row, column);
}

struct attention attention_of_row(const struct csv *table, int row)
{
    struct attention a = {.batch = extent(table, row, "batch"),
                          .heads_q = extent(table, row, "heads_q"),
                          .heads_kv = extent(table, row, "heads_kv"),
                          .seqlen_q = extent(table, row, "seqlen_q"),
                          .seqlen_k = extent(table, row, "seqlen_k"),
                          .head_dim = extent(table, row, "head_dim"),
                          .head_dim_v = extent(table, row, "head_dim_v"),
                          .dtype = DTYPE_F32,
                          .block_q = extent(table, row, "block_q"),
                          .block_k = extent(table, row, "block_k")};
    a.scale = 1.0f / sqrtf((float)a.head_dim);
    if (!mask_parse(&a.mask, csv_text(table, row, "mask")))
        fail_msg("row %d: mask %s", row, csv_text(table, row, "mask"));
    return a;
}
