/* Closed forms of HBM traffic.
 *
 * Every tensor moves in tiles of whole rows, except S and P of tiled standard attention
 * (sub-tiles, in io_subtiles.c). So a tensor's traffic is a sum over its tiles of (how often
 * the tile moves) x (bytes, sectors of one move), and over planes. Bytes of a move are plain.
 * Sectors depend on where the tile starts, modulo 32 bytes; that is where planes differ, so
 * planes are gathered by their offset.
 */
#include "models/io.h"

#include "models/io_tiles.h"

static int min(int a, int b)
{
    return a < b ? a : b;
}

/* How often each tile of a tensor moves in one plane. */
typedef int64_t times_function(const struct attention *a, int tile);

static int64_t once(const struct attention *a, int tile)
{
    (void)a, (void)tile;
    return 1;
}

static int64_t once_per_q_tile(const struct attention *a, int tile)
{
    (void)tile;
    return attention_tiles_q(a);
}

static int64_t once_per_k_tile(const struct attention *a, int tile)
{
    (void)tile;
    return attention_tiles_k(a);
}

/* Q tile i meets the K/V tiles that it may see. */
static int64_t visits_of_q_tile(const struct attention *a, int i)
{
    return attention_visited_tiles(a, i);
}

/* K/V tile j meets the Q tiles that may see it: by bisection, as later Q tiles see more. */
static int64_t visits_of_k_tile(const struct attention *a, int j)
{
    int low = 0, high = attention_tiles_q(a); /* the first Q tile that visits j is in between */
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (attention_visited_tiles(a, middle) > j)
            high = middle;
        else
            low = middle + 1;
    }
    return attention_tiles_q(a) - low;
}

/* FlashAttention-1's first pass meets every Q tile. */
static int64_t passes_of_q_tile(const struct attention *a, int i)
{
    const int visited = attention_visited_tiles(a, i);
    return visited > 0 ? visited : 1;
}

static int64_t later_passes_of_q_tile(const struct attention *a, int i)
{
    return passes_of_q_tile(a, i) - 1;
}

static int64_t once_if_any_q_tile_visits(const struct attention *a, int j)
{
    return j == 0 || visits_of_k_tile(a, j) > 0;
}

/* One algorithm's prediction under way. */
struct prediction {
    const struct attention *a;
    bool tma;
    struct account account;
};

/* Adds a tensor's moves: in tiles of block rows, tile t moved times(a, t) times in each plane,
 * each plane used by users query planes. */
static void add(struct prediction *p, enum direction direction, struct io_tensor tensor,
                int block, times_function *times)
{
    const int tiles = (int)(((int64_t)tensor.rows + block - 1) / block);
    struct amount *sum = &account_tensor(&p->account, tensor.name)->of[direction];
    const bool box = p->tma && tensor.cols > 1;
    for (int offset = 0; offset < SECTOR_BYTES; offset++) {
        const int64_t planes = io_planes_at_offset(&tensor, offset) * tensor.users;
        if (planes == 0)
            continue;
        for (int t = 0; t < tiles; t++) {
            const struct amount move = io_tile_move(&tensor, offset, block, t, box, direction);
            const int64_t moves = planes * times(p->a, t);
            sum->bytes += moves * move.bytes;
            sum->sectors += moves * move.sectors;
        }
    }
}

/* The tensors of the problem, as io_tiles.h describes them. */
static struct io_tensor query_side(const struct attention *a, const char *name, int cols)
{
    return (struct io_tensor){name, dtype_bytes(a->dtype), attention_planes_q(a),
                              1,    a->seqlen_q,           cols};
}

static struct io_tensor key_side(const struct attention *a, const char *name, int cols)
{
    return (struct io_tensor){name,
                              dtype_bytes(a->dtype),
                              attention_planes_kv(a),
                              a->heads_q / a->heads_kv,
                              a->seqlen_k,
                              cols};
}

static struct io_tensor statistic(const struct attention *a, const char *name)
{
    return (struct io_tensor){
        name, dtype_bytes(DTYPE_F32), attention_planes_q(a), 1, a->seqlen_q, 1};
}

/* Elements of S that tiles compute, and rows of tiles, if Q tile i meets the first
 * times(a, i) K/V tiles; all planes. */
struct work {
    int64_t scores, rows;
};

static struct work work_of(const struct attention *a, times_function *times)
{
    struct work work = {0, 0};
    for (int i = 0; i < attention_tiles_q(a); i++) {
        const int rows = min(a->block_q, a->seqlen_q - i * a->block_q);
        const int64_t tiles = times(a, i);
        const int64_t keys = tiles * a->block_k;
        work.scores += rows * (keys < a->seqlen_k ? keys : a->seqlen_k);
        work.rows += rows * tiles;
    }
    work.scores *= attention_planes_q(a);
    work.rows *= attention_planes_q(a);
    return work;
}

static struct account predict_naive(const struct attention *a, bool tma)
{
    struct attention rows = *a; /* a tile is one row */
    rows.block_q = rows.block_k = 1;
    struct prediction p = {.a = &rows, .tma = tma};
    add(&p, DIRECTION_READ, query_side(a, "Q", a->head_dim), 1, visits_of_q_tile);
    add(&p, DIRECTION_READ, key_side(a, "K", a->head_dim), 1, visits_of_k_tile);
    add(&p, DIRECTION_READ, key_side(a, "V", a->head_dim_v), 1, visits_of_k_tile);
    add(&p, DIRECTION_WRITE, query_side(a, "O", a->head_dim_v), 1, once);
    add(&p, DIRECTION_WRITE, statistic(a, "LSE"), 1, once);
    const int64_t pairs = work_of(&rows, visits_of_q_tile).scores;
    const int64_t queries = (int64_t)attention_planes_q(a) * a->seqlen_q;
    p.account.flops.matrix = 2 * pairs * (a->head_dim + a->head_dim_v);
    /* a pair: scale, max, s - m, sum and its rescaling, m - m_new, and O's rescaling */
    p.account.flops.other = pairs * (6 + a->head_dim_v) + queries * (a->head_dim_v + 2);
    p.account.flops.exp = 2 * pairs;
    return p.account;
}

static struct account predict_flash1(const struct attention *a, bool tma)
{
    struct prediction p = {.a = a, .tma = tma};
    const int dv = a->head_dim_v;
    add(&p, DIRECTION_READ, key_side(a, "K", a->head_dim), a->block_k,
        once_if_any_q_tile_visits);
    add(&p, DIRECTION_READ, key_side(a, "V", dv), a->block_k, once_if_any_q_tile_visits);
    add(&p, DIRECTION_READ, query_side(a, "Q", a->head_dim), a->block_q, passes_of_q_tile);
    const struct io_tensor state[] = {query_side(a, "O", dv), statistic(a, "l"),
                                      statistic(a, "m")};
    for (int k = 0; k < 3; k++) {
        add(&p, DIRECTION_READ, state[k], a->block_q, later_passes_of_q_tile);
        add(&p, DIRECTION_WRITE, state[k], a->block_q, passes_of_q_tile);
    }
    const struct work work = work_of(a, passes_of_q_tile);
    p.account.flops.matrix = 2 * work.scores * (a->head_dim + dv);
    /* a score: scale, max, s - m, sum; a row: m - m_new, c l, and O times l, times c, over l */
    p.account.flops.other = 4 * work.scores + work.rows * (2 + 3 * (int64_t)dv);
    p.account.flops.exp = work.scores + work.rows;
    return p.account;
}

static struct account predict_flash2(const struct attention *a, bool tma)
{
    struct prediction p = {.a = a, .tma = tma};
    const int dv = a->head_dim_v;
    add(&p, DIRECTION_READ, query_side(a, "Q", a->head_dim), a->block_q, once);
    add(&p, DIRECTION_READ, key_side(a, "K", a->head_dim), a->block_k, visits_of_k_tile);
    add(&p, DIRECTION_READ, key_side(a, "V", dv), a->block_k, visits_of_k_tile);
    add(&p, DIRECTION_WRITE, query_side(a, "O", dv), a->block_q, once);
    add(&p, DIRECTION_WRITE, statistic(a, "LSE"), a->block_q, once);
    const struct work work = work_of(a, visits_of_q_tile);
    const int64_t queries = (int64_t)attention_planes_q(a) * a->seqlen_q;
    p.account.flops.matrix = 2 * work.scores * (a->head_dim + dv);
    /* a score: scale, max, s - m, sum; a row of a tile: m - m_new, c l, c O; a query: O / l, L
     */
    p.account.flops.other = 4 * work.scores + work.rows * (2 + dv) + queries * (dv + 2);
    p.account.flops.exp = work.scores + work.rows;
    return p.account;
}

/* Adds S or P: written once and read a few times, in strips of whole rows or in tiles. */
static void add_scores(struct prediction *p, const char *name, int reads)
{
    const struct attention *a = p->a;
    const struct io_tensor matrix = query_side(a, name, a->seqlen_k);
    const bool box = p->tma && a->block_k > 1;
    if (!a->tiled_gemm) {
        add(p, DIRECTION_READ, matrix, a->block_q, once);
        add(p, DIRECTION_WRITE, matrix, a->block_q, once);
        return;
    }
    struct amount *of = account_tensor(&p->account, name)->of;
    of[DIRECTION_WRITE] =
        io_subtile_pass(&matrix, a->block_q, a->block_k, box, DIRECTION_WRITE);
    of[DIRECTION_READ] = io_subtile_pass(&matrix, a->block_q, a->block_k, box, DIRECTION_READ);
    of[DIRECTION_READ].bytes *= reads;
    of[DIRECTION_READ].sectors *= reads;
}

static struct account predict_standard(const struct attention *a, bool tma)
{
    struct prediction p = {.a = a, .tma = tma};
    const bool tiled = a->tiled_gemm;
    const int block_k = tiled ? a->block_k : a->seqlen_k; /* K and V: in tiles, or whole */
    add(&p, DIRECTION_READ, query_side(a, "Q", a->head_dim), a->block_q,
        tiled ? once_per_k_tile : once);
    add(&p, DIRECTION_READ, key_side(a, "K", a->head_dim), block_k,
        tiled ? once_per_q_tile : once);
    add(&p, DIRECTION_READ, key_side(a, "V", a->head_dim_v), block_k,
        tiled ? once_per_q_tile : once);
    add(&p, DIRECTION_WRITE, query_side(a, "O", a->head_dim_v), a->block_q, once);
    add(&p, DIRECTION_WRITE, statistic(a, "LSE"), a->block_q, once);
    add_scores(&p, "S",
               tiled ? 2 : 1); /* tiled softmax reads S twice: for m and l, and for P */
    add_scores(&p, "P", 1);
    const int64_t queries = (int64_t)attention_planes_q(a) * a->seqlen_q;
    const int64_t scores = queries * a->seqlen_k;
    const int64_t rows = queries * (tiled ? attention_tiles_k(a) : 1);
    p.account.flops.matrix = 2 * scores * (a->head_dim + a->head_dim_v);
    /* a score: scale, max, s - m (twice if tiled), sum, P / l; a row: m - m_new, c l; L */
    p.account.flops.other = (tiled ? 6 : 5) * scores + 2 * rows + 2 * queries;
    p.account.flops.exp = (tiled ? 2 : 1) * scores + rows;
    return p.account;
}

struct account io_predict(enum algorithm algorithm, const struct attention *a, bool tma)
{
    switch (algorithm) {
    case ALGORITHM_NAIVE:
        return predict_naive(a, tma);
    case ALGORITHM_STANDARD:
        return predict_standard(a, tma);
    case ALGORITHM_FLASH1:
        return predict_flash1(a, tma);
    case ALGORITHM_FLASH2:
        return predict_flash2(a, tma);
    case ALGORITHM_COUNT:
        break;
    }
    CHECK(false, "algorithm %d", (int)algorithm);
}

int64_t io_compulsory_bytes(const struct attention *a)
{
    const int64_t queries = (int64_t)attention_planes_q(a) * a->seqlen_q;
    const int64_t keys = (int64_t)attention_planes_kv(a) * a->seqlen_k;
    return (queries + keys) * (a->head_dim + a->head_dim_v) * dtype_bytes(a->dtype);
}
