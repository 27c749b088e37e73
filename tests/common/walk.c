#include "common/walk.h"

#include "common/reference.h"

/* A walk under way. */
struct walk {
    const struct attention *a;
    bool tma;
    struct account account;
};

/* One tile moves: rows x columns at that row and column of a tensor. Past the tensor's edge
 * nothing is moved, except that the copy engine reads boxes whole. */
struct place {
    int row, column;
    int rows, columns;
    int last_row, last_column; /* of the tensor, exclusive */
};

static void move(struct walk *w, const char *name, enum direction direction, int element_bytes,
                 struct place p)
{
    if (!w->tma || direction == DIRECTION_WRITE || p.columns == 1) {
        if (p.row + p.rows > p.last_row)
            p.rows = p.last_row - p.row;
        if (p.column + p.columns > p.last_column)
            p.columns = p.last_column - p.column;
    }
    account_tensor(&w->account, name)->of[direction].bytes +=
        (int64_t)p.rows * p.columns * element_bytes;
}

/* Tile i of Q or O; of K or V; of a statistic, in fp32; tile (i, j) of S or P. */
static void move_q(struct walk *w, const char *name, enum direction direction, int i)
{
    const struct attention *a = w->a;
    const int d = name[0] == 'Q' ? a->head_dim : a->head_dim_v;
    move(w, name, direction, dtype_bytes(a->dtype),
         (struct place){i * a->block_q, 0, a->block_q, d, a->seqlen_q, d});
}

static void move_k(struct walk *w, const char *name, int j, int Bc)
{
    const struct attention *a = w->a;
    const int d = name[0] == 'K' ? a->head_dim : a->head_dim_v;
    move(w, name, DIRECTION_READ, dtype_bytes(a->dtype),
         (struct place){j * Bc, 0, Bc, d, a->seqlen_k, d});
}

static void move_statistic(struct walk *w, const char *name, enum direction direction, int i)
{
    const struct attention *a = w->a;
    move(w, name, direction, 4,
         (struct place){i * a->block_q, 0, a->block_q, 1, a->seqlen_q, 1});
}

static void move_s(struct walk *w, const char *name, enum direction direction, int i, int j,
                   int Bc)
{
    const struct attention *a = w->a;
    move(w, name, direction, dtype_bytes(a->dtype),
         (struct place){i * a->block_q, j * Bc, a->block_q, Bc, a->seqlen_q, a->seqlen_k});
}

/* True if a query of Q tile i sees a key of K/V tile j. */
static bool tiles_meet(const struct attention *a, int i, int j)
{
    for (int row = i * a->block_q; row < (i + 1) * a->block_q && row < a->seqlen_q; row++)
        for (int key = j * a->block_k; key < (j + 1) * a->block_k && key < a->seqlen_k; key++)
            if (reference_sees(a, row, key))
                return true;
    return false;
}

/* Dao 2023, Algorithm 1. Naive attention is the same by single rows, with Q read for each key.
 */
static void walk_q_outside(struct walk *w, bool naive)
{
    const struct attention *a = w->a;
    for (int i = 0; i * a->block_q < a->seqlen_q; i++) {
        if (!naive)
            move_q(w, "Q", DIRECTION_READ, i);
        for (int j = 0; j * a->block_k < a->seqlen_k; j++) {
            if (!tiles_meet(a, i, j))
                continue;
            if (naive)
                move_q(w, "Q", DIRECTION_READ, i);
            move_k(w, "K", j, a->block_k);
            move_k(w, "V", j, a->block_k);
        }
        move_q(w, "O", DIRECTION_WRITE, i);
        move_statistic(w, "LSE", DIRECTION_WRITE, i);
    }
}

/* Dao et al. 2022, Algorithm 1. Its first pass meets every Q tile, and finds no state to read.
 */
static void walk_k_outside(struct walk *w)
{
    const struct attention *a = w->a;
    for (int j = 0; j * a->block_k < a->seqlen_k; j++) {
        bool met = false;
        for (int i = 0; i * a->block_q < a->seqlen_q; i++) {
            if (j > 0 && !tiles_meet(a, i, j))
                continue;
            met = true;
            move_q(w, "Q", DIRECTION_READ, i);
            for (int way = j > 0 ? DIRECTION_READ : DIRECTION_WRITE; way <= DIRECTION_WRITE;
                 way++) {
                move_q(w, "O", (enum direction)way, i);
                move_statistic(w, "l", (enum direction)way, i);
                move_statistic(w, "m", (enum direction)way, i);
            }
        }
        if (met) {
            move_k(w, "K", j, a->block_k);
            move_k(w, "V", j, a->block_k);
        }
    }
}

/* Dao et al. 2022, Algorithm 0: an operand once a launch, or once for each tile of S or O that
 * needs it, and then the softmax reads S twice. Masks save nothing. */
static void walk_through_s(struct walk *w)
{
    const struct attention *a = w->a;
    const int Bc = a->tiled_gemm ? a->block_k : a->seqlen_k;
    for (int i = 0; i * a->block_q < a->seqlen_q; i++) {
        for (int j = 0; j * Bc < a->seqlen_k; j++) {
            if (a->tiled_gemm || j == 0)
                move_q(w, "Q", DIRECTION_READ, i);
            if (a->tiled_gemm || i == 0) {
                move_k(w, "K", j, Bc);
                move_k(w, "V", j, Bc);
            }
            move_s(w, "S", DIRECTION_WRITE, i, j, Bc);
            move_s(w, "S", DIRECTION_READ, i, j, Bc);
            if (a->tiled_gemm)
                move_s(w, "S", DIRECTION_READ, i, j, Bc);
            move_s(w, "P", DIRECTION_WRITE, i, j, Bc);
            move_s(w, "P", DIRECTION_READ, i, j, Bc);
        }
        move_q(w, "O", DIRECTION_WRITE, i);
        move_statistic(w, "LSE", DIRECTION_WRITE, i);
    }
}

struct account walk_bytes(enum algorithm algorithm, const struct attention *a, bool tma)
{
    struct attention blocks = *a;
    if (algorithm == ALGORITHM_NAIVE)
        blocks.block_q = blocks.block_k = 1;
    struct walk w = {.a = &blocks, .tma = tma};
    if (algorithm == ALGORITHM_STANDARD)
        walk_through_s(&w);
    else if (algorithm == ALGORITHM_FLASH1)
        walk_k_outside(&w);
    else
        walk_q_outside(&w, algorithm == ALGORITHM_NAIVE);
    for (int t = 0; t < w.account.tensor_count; t++) /* so far one head's */
        for (int k = 0; k < DIRECTION_COUNT; k++)
            w.account.tensor[t].traffic.of[k].bytes *= (int64_t)a->batch * a->heads_q;
    return w.account;
}
