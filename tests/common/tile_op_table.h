/* The operations of sim/ops as a table: shapes of their operands, FLOPs and call.
 *
 * Every operation works on extents r (rows), c (columns) and d (an inner extent that tiles have
 * exactly). A shape is two letters for a tile's rows and columns, for the extents or "1"; the
 * operations write their first operand, or the first two. The tests walk this table to check
 * values, padding, FLOPs, counts-only mode, and what each operation refuses.
 */
#ifndef FLASHLAB_TESTS_TILE_OP_TABLE_H
#define FLASHLAB_TESTS_TILE_OP_TABLE_H

#include "ops/tile_ops.h"

enum { MOST_OPERANDS = 4 };

struct extents {
    int r, c, d;
};

struct tile_op {
    const char *name;
    const char *shape[MOST_OPERANDS]; /* NULL: fewer operands */
    int written;                      /* operands that the operation writes, the first ones */
    /* FLOPs: matrix_rcd * r * c * d matrix, other_rc * r * c + other_r * r other, and so on. */
    int matrix_rcd, other_rc, other_r, exp_rc, exp_r;
    void (*call)(struct tile *const *t, const struct extents *e);
};

/* The constants that the calls use. */
extern const float tile_op_scale;     /* of tile_scores */
extern const enum dtype tile_op_cast; /* of tile_round */

/* The table and its length. tile_fill, tile_copy and tile_mask, whose arguments differ, are not
 * in it. */
const struct tile_op *tile_op_table(int *count);

/* How many tiles the operation takes. */
int tile_op_operands(const struct tile_op *op);

/* Value of a shape's letter. */
int tile_op_extent(char letter, const struct extents *e);

#endif
