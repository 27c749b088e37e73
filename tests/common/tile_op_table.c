#include "common/tile_op_table.h"

const float tile_op_scale = 0.3f;
const enum dtype tile_op_cast = DTYPE_F16;

static void call_round(struct tile *const *t, const struct extents *e)
{
    tile_round(t[0], tile_op_cast, e->r, e->c);
}

static void call_scores(struct tile *const *t, const struct extents *e)
{
    tile_scores(t[0], t[1], t[2], e->r, e->c, tile_op_scale);
}

static void call_add_product(struct tile *const *t, const struct extents *e)
{
    tile_add_product(t[0], t[1], t[2], e->r, e->c);
}

static void call_row_max(struct tile *const *t, const struct extents *e)
{
    tile_row_max(t[0], t[1], t[2], e->r, e->c);
}

static void call_exp(struct tile *const *t, const struct extents *e)
{
    tile_exp(t[0], t[1], e->r, e->c);
}

static void call_correction(struct tile *const *t, const struct extents *e)
{
    tile_correction(t[0], t[1], t[2], e->r);
}

static void call_exp_sum(struct tile *const *t, const struct extents *e)
{
    tile_exp_sum(t[0], t[2], t[1], t[3], e->r, e->c);
}

static void call_scale_rows(struct tile *const *t, const struct extents *e)
{
    tile_scale_rows(t[0], t[1], e->r, e->c);
}

static void call_add(struct tile *const *t, const struct extents *e)
{
    tile_add(t[0], t[1], e->r, e->c);
}

static void call_divide_rows(struct tile *const *t, const struct extents *e)
{
    tile_divide_rows(t[0], t[1], e->r, e->c);
}

static void call_log_sum_exp(struct tile *const *t, const struct extents *e)
{
    tile_log_sum_exp(t[0], t[1], t[2], e->r);
}

/* clang-format off */
/* tile_exp_sum: S, l, then m and c. */
static const struct tile_op table[] = {
    /*                                              written  matrix other    exp    */
    /* name               shapes                             rcd    rc  r    rc  r  */
    {"tile_round",       {"rc"},                    1,       0,     0,  0,   0,  0, call_round},
    {"tile_scores",      {"rc", "rd", "cd"},        1,       2,     1,  0,   0,  0, call_scores},
    {"tile_add_product", {"rd", "rc", "cd"},        1,       2,     0,  0,   0,  0, call_add_product},
    {"tile_row_max",     {"r1", "r1", "rc"},        1,       0,     1,  0,   0,  0, call_row_max},
    {"tile_exp",         {"rc", "r1"},              1,       0,     1,  0,   1,  0, call_exp},
    {"tile_exp_sum",     {"rc", "r1", "r1", "r1"},  2,       0,     2,  1,   1,  0, call_exp_sum},
    {"tile_correction",  {"r1", "r1", "r1"},        1,       0,     0,  1,   0,  1, call_correction},
    {"tile_scale_rows",  {"rc", "r1"},              1,       0,     1,  0,   0,  0, call_scale_rows},
    {"tile_add",         {"rc", "rc"},              1,       0,     1,  0,   0,  0, call_add},
    {"tile_divide_rows", {"rc", "r1"},              1,       0,     1,  0,   0,  0, call_divide_rows},
    {"tile_log_sum_exp", {"r1", "r1", "r1"},        1,       0,     0,  2,   0,  0, call_log_sum_exp},
};
/* clang-format on */

const struct tile_op *tile_op_table(int *count)
{
    *count = (int)(sizeof table / sizeof table[0]);
    return table;
}

int tile_op_operands(const struct tile_op *op)
{
    int count = 0;
    while (count < MOST_OPERANDS && op->shape[count])
        count++;
    return count;
}

int tile_op_extent(char letter, const struct extents *e)
{
    return letter == 'r' ? e->r : letter == 'c' ? e->c : letter == 'd' ? e->d : 1;
}
