#include "models/kernel_work.h"

#include <math.h>

#include "models/io.h"
#include "models/occupancy.h"

/* Of cuda/tile.h: a block's threads as they lie over a tile. */
enum { THREADS = 128, WARPS = THREADS / 32, ROW_THREADS = 8, COL_THREADS = 16, TILES = 3 };

/* Instructions a lane, in PTX: of an element that is copied between HBM and shared memory; of a
 * score in the softmax, exp among them; of an element of a row in the softmax kernels, all
 * passes; of a key in naive_attention. */
enum { COPY = 29, SCORE = 18, SOFTMAX_SAFE = 56, SOFTMAX_ONLINE = 58, NAIVE_KEY = 230 };

/* What a block alone waits for in a step, in clocks; see docs/time.md. */
static const double TILE_STEP = 3000, NAIVE_STEP = 1400, SOFTMAX_STEP = 600;

/* Registers a thread by tile (16, 32, 64) and row of O (64, 128, 256), as nvcc 13.0 compiles
 * for sm_90a: cuda/results/h200_occupancy.csv. */
static const int registers_flash1[TILES][3] = {{108, 96, 128}, {96, 128, 168}, {192, 239, 255}};
static const int registers_flash2[TILES][3] = {{96, 96, 126}, {96, 128, 168}, {168, 236, 255}};
static const int registers_output[TILES][3] = {{80, 92, 118}, {92, 124, 168}, {128, 168, 255}};
static const int registers_scores[TILES] = {62, 62, 95};
static const int registers_softmax[TILES] = {77, 92, 137};
static const int registers_matmul[TILES] = {54, 56, 96};

static int odd_pitch(int cols)
{
    return cols | 1;
}

static int wide_pitch(int cols)
{
    return (cols + 15) / 32 * 32 + 16;
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

static double ceil_divide(double a, double b)
{
    return ceil(a / b);
}

/* The compiled sizes that hold a problem's tiles. */
struct sizes {
    int tile, dv;
    int tile_index, dv_index;
};

static struct sizes sizes_of(int rows, int cols)
{
    const int t = rows <= 16 ? 0 : rows <= 32 ? 1 : 2, c = cols <= 64 ? 0 : cols <= 128 ? 1 : 2;
    return (struct sizes){16 << t, 64 << c, t, c};
}

/* Blocks that an SM holds; by shared memory alone where nobody knows the machine's rules. */
static int resident(const struct machine *machine, int threads, int registers,
                    int64_t shared_bytes)
{
    const struct sm_limits *sm = sm_limits_of_machine(machine->name);
    const struct block_needs needs = {threads, registers, shared_bytes};
    enum { MOST = 16 };
    if (sm)
        return occupancy_of(sm, &needs).blocks;
    if (shared_bytes > machine->sram_bytes_per_block)
        return 0;
    const int64_t fit = machine->sram_bytes_per_sm / (shared_bytes + 1);
    return fit < MOST ? (int)fit : MOST;
}

/* times x an element copied between HBM and shared memory, by requests of 32. */
static void add_copy(struct time_work *w, double elements)
{
    w->amount[TIME_ISSUE] += COPY * elements;
    w->amount[TIME_L1] += 2 * elements / WARP_LANES;
}

/* Elements of registers put into shared memory or got from there. */
static void add_put(struct time_work *w, double elements)
{
    w->amount[TIME_ISSUE] += elements;
    w->amount[TIME_L1] += elements / WARP_LANES;
}

/* tile_put_rows() or tile_get_rows(): a pass of every warp for each of its rows. */
static void add_rows(struct time_work *w, double times, int tile)
{
    const int rows = tile / ROW_THREADS;
    w->amount[TIME_ISSUE] += times * THREADS * rows;
    w->amount[TIME_L1] += times * WARPS * rows;
}

/* tile_scores(): times x a tile x tile of products over depth columns. */
static void add_scores(struct time_work *w, double times, int tile, int depth)
{
    const int operands = tile / ROW_THREADS + tile / COL_THREADS;
    const double loads = (double)WARPS * depth * operands;
    w->amount[TIME_ISSUE] += times * ((double)tile * tile * depth + WARP_LANES * loads);
    w->amount[TIME_L1] += times * loads;
}

/* tile_add_product(): times x a tile of rows x cols over depth columns, four at a time; their
 * loads of 16 bytes take two passes. */
static void add_product(struct time_work *w, double times, int rows, int cols, double depth)
{
    const double fours = ceil_divide(depth, 4);
    const int r = rows / ROW_THREADS, c = cols / COL_THREADS;
    w->amount[TIME_ISSUE] +=
        times * fours * (4.0 * rows * cols + WARP_LANES * WARPS * (r + 4 * c));
    w->amount[TIME_L1] += times * fours * WARPS * (2 * r + 4 * c);
}

/* online_softmax() of a tile x tile, with its scaling and mask. */
static void add_softmax(struct time_work *w, double times, int tile)
{
    w->amount[TIME_ISSUE] += times * SCORE * tile * tile;
    w->amount[TIME_EXP2] += times * tile * (tile + COL_THREADS);
}

static double total_bytes(const struct account *account)
{
    const struct traffic total = account_total(account);
    double bytes = 0;
    for (int i = 0; i < DIRECTION_COUNT; i++)
        bytes += (double)total.of[i].bytes;
    return bytes;
}

/* Tiles that the problem's blocks visit, in all heads, and the most of one Q tile. */
struct visits {
    double planes, total, most, first; /* first: at least one a Q tile, as flash1 does */
};

static struct visits visits_of(const struct attention *a)
{
    struct visits v = {.planes = attention_planes_q(a)};
    for (int i = 0; i < attention_tiles_q(a); i++) {
        const double visited = attention_visited_tiles(a, i);
        v.total += visited;
        v.first += visited > 0 ? visited : 1;
        v.most = visited > v.most ? visited : v.most;
    }
    return v;
}

static struct time_work tiled_work(const char *name)
{
    return (struct time_work){.name = name, .overlap = OVERLAP_NONE, .step_clocks = TILE_STEP};
}

static struct time_work flash2_work(const struct attention *a, const struct machine *machine)
{
    const struct sizes s = sizes_of(larger(a->block_q, a->block_k), a->head_dim_v);
    const struct visits v = visits_of(a);
    const double d = a->head_dim, dv = a->head_dim_v, tiles = v.planes * v.total;
    const double queries = v.planes * a->seqlen_q, Bc = a->block_k;
    const int64_t floats =
        s.tile * (int64_t)(odd_pitch(a->head_dim) + wide_pitch(s.dv) +
                           larger(odd_pitch(a->head_dim), wide_pitch(s.tile)));
    struct time_work w = tiled_work("flash2_forward");
    w.blocks = v.planes * attention_tiles_q(a);
    w.blocks_per_sm =
        resident(machine, THREADS, registers_flash2[s.tile_index][s.dv_index], 4 * floats);
    w.steps = tiles + w.blocks; /* and the loads of Q, which nothing hides either */
    w.most_steps = v.most + 1;
    add_copy(&w, queries * (d + dv + 1) + tiles * Bc * (d + dv));
    add_rows(&w, w.blocks, s.tile);
    add_scores(&w, tiles, s.tile, a->head_dim);
    add_softmax(&w, tiles, s.tile);
    add_put(&w, tiles * s.tile * s.tile + w.blocks * s.tile * s.dv);
    add_product(&w, tiles, s.tile, s.dv, Bc);
    return w;
}

static struct time_work flash1_work(const struct attention *a, const struct machine *machine)
{
    const struct sizes s = sizes_of(larger(a->block_q, a->block_k), a->head_dim_v);
    const struct visits v = visits_of(a);
    const double d = a->head_dim, dv = a->head_dim_v, tiles = v.planes * v.first;
    const double keys = v.planes * a->seqlen_k, Br = a->block_q;
    const double later = tiles - v.planes * attention_tiles_q(a); /* O, l and m are there */
    const int64_t floats = s.tile * (int64_t)(2 * odd_pitch(a->head_dim) +
                                              2 * wide_pitch(s.dv) + wide_pitch(s.tile) + 2);
    struct time_work w = tiled_work("flash1_forward");
    w.blocks = v.planes;
    w.blocks_per_sm =
        resident(machine, THREADS, registers_flash1[s.tile_index][s.dv_index], 4 * floats);
    w.steps = tiles;
    w.most_steps = v.first;
    add_copy(&w, keys * (d + dv) + tiles * Br * (d + dv + 2) + later * Br * (dv + 2));
    add_rows(&w, 2 * tiles + 2 * later, s.tile);
    add_scores(&w, tiles, s.tile, a->head_dim);
    add_softmax(&w, tiles, s.tile);
    add_put(&w, tiles * s.tile * (s.tile + s.dv) + later * s.tile * s.dv);
    add_product(&w, tiles, s.tile, s.dv, a->block_k);
    return w;
}

/* Tensors that a launch moves once each way, in elements of 4 bytes. */
static void set_bytes(struct time_work *w, double requested, double least)
{
    w->amount[TIME_L2] = 4 * requested;
    w->amount[TIME_HBM] = 4 * least;
}

static int standard_work(struct time_work w[KERNEL_WORK_LAUNCHES], const struct attention *a,
                         const struct machine *machine)
{
    const struct sizes s = sizes_of(larger(a->block_q, a->block_k), a->head_dim_v);
    const double planes = attention_planes_q(a), d = a->head_dim, dv = a->head_dim_v;
    const double Tr = attention_tiles_q(a), Tc = attention_tiles_k(a);
    const double N = a->seqlen_q, M = a->seqlen_k, S = planes * N * M, tiles = planes * Tr * Tc;
    const int64_t s_bytes = INT64_C(4) * s.tile * wide_pitch(s.tile);
    w[0] = tiled_work("standard_scores");
    w[0].blocks = w[0].steps = tiles;
    w[0].most_steps = 1;
    w[0].blocks_per_sm = resident(machine, THREADS, registers_scores[s.tile_index],
                                  8 * s.tile * odd_pitch(a->head_dim) + s_bytes);
    add_copy(&w[0], planes * (Tc * N + Tr * M) * d + S);
    add_scores(&w[0], tiles, s.tile, a->head_dim);
    add_put(&w[0], tiles * s.tile * s.tile);
    set_bytes(&w[0], planes * (Tc * N + Tr * M) * d + S, planes * (N + M) * d + S);
    w[1] = tiled_work("standard_softmax");
    w[1].blocks = planes * Tr;
    w[1].steps = 2 * tiles;
    w[1].most_steps = 2 * Tc;
    w[1].blocks_per_sm =
        resident(machine, THREADS, registers_softmax[s.tile_index], s_bytes + 4 * s.tile);
    add_copy(&w[1], 3 * S + planes * N);
    add_rows(&w[1], w[1].blocks, s.tile);
    add_softmax(&w[1], 2 * tiles, s.tile);
    add_put(&w[1], 3 * tiles * s.tile * s.tile);
    set_bytes(&w[1], 3 * S, 2 * S);
    w[2] = tiled_work("standard_output");
    w[2].blocks = planes * Tr;
    w[2].steps = tiles;
    w[2].most_steps = Tc;
    w[2].blocks_per_sm = resident(machine, THREADS, registers_output[s.tile_index][s.dv_index],
                                  s_bytes + INT64_C(4) * s.tile * wide_pitch(s.dv));
    add_copy(&w[2], S + planes * (Tr * M + N) * dv);
    add_put(&w[2], w[2].blocks * s.tile * s.dv);
    add_product(&w[2], tiles, s.tile, s.dv, a->block_k);
    set_bytes(&w[2], S + planes * (Tr * M + N) * dv, S + planes * (M + N) * dv);
    return 3;
}

/* One warp a query row: a key is a step, of three requests of a warp to L1 for 32 columns. */
static struct time_work naive_work(const struct attention *a, const struct machine *machine)
{
    enum { ROWS = 4 };
    struct time_work w = {
        .name = "naive_attention", .overlap = OVERLAP_NONE, .step_clocks = NAIVE_STEP};
    const double planes = attention_planes_q(a);
    double keys = 0, most = 0;
    for (int row = 0; row < a->seqlen_q; row++) {
        const double visible = attention_visible_keys(a, row);
        keys += visible;
        most = visible > most ? visible : most;
    }
    w.blocks = planes * ceil_divide(a->seqlen_q, ROWS);
    w.blocks_per_sm = resident(machine, THREADS, 64, 0);
    w.steps = planes * keys / ROWS; /* four rows of a block at once */
    w.most_steps = most;
    w.amount[TIME_ISSUE] = planes * keys * WARP_LANES * NAIVE_KEY;
    w.amount[TIME_EXP2] = planes * keys * WARP_LANES * 2;
    w.amount[TIME_L1] =
        planes * keys *
        (2 * ceil_divide(a->head_dim, WARP_LANES) + ceil_divide(a->head_dim_v, WARP_LANES));
    return w;
}

int kernel_work_attention(struct time_work work[KERNEL_WORK_LAUNCHES], enum algorithm algorithm,
                          const struct attention *a, const struct machine *machine)
{
    if (algorithm == ALGORITHM_STANDARD)
        return standard_work(work, a, machine);
    const struct account account = io_predict(algorithm, a, false);
    work[0] = algorithm == ALGORITHM_NAIVE    ? naive_work(a, machine)
              : algorithm == ALGORITHM_FLASH1 ? flash1_work(a, machine)
                                              : flash2_work(a, machine);
    /* naive: what L1 holds of a row of K or V for the block's other three rows is not known */
    work[0].amount[TIME_L2] = algorithm == ALGORITHM_NAIVE ? 0 : total_bytes(&account);
    work[0].amount[TIME_HBM] = (double)roofline_least_bytes(algorithm, a);
    return 1;
}

struct time_work kernel_work_matmul_naive(const struct io_matmul *shape,
                                          const struct machine *machine)
{
    const struct roofline_point least = roofline_matmul(shape, DTYPE_F32);
    const double warps = shape->rows * ceil_divide(shape->cols, WARP_LANES);
    struct time_work w = {.name = "matmul_naive", .overlap = OVERLAP_HALF};
    w.blocks = ceil_divide(shape->rows, 4) * ceil_divide(shape->cols, WARP_LANES);
    w.blocks_per_sm = resident(machine, THREADS, 32, 0);
    w.steps = w.blocks * shape->depth;
    w.most_steps = shape->depth;
    w.amount[TIME_ISSUE] = warps * shape->depth * WARP_LANES * 5.25; /* 21 for four products */
    w.amount[TIME_L1] = warps * shape->depth * 2;
    /* L1 serves three of the block's four warps with B, and seven of eight elements of A */
    w.amount[TIME_L2] = warps * shape->depth * (32 + 4);
    w.amount[TIME_HBM] = least.bytes[ROOFLINE_HBM];
    return w;
}

struct time_work kernel_work_matmul_tiled(const struct io_matmul *shape, int tile,
                                          const struct machine *machine)
{
    const struct account account = io_matmul_tiled(shape, tile);
    const struct roofline_point least = roofline_matmul(shape, DTYPE_F32);
    const struct sizes s = sizes_of(tile, 64);
    const double Ti = ceil_divide(shape->rows, tile), Tj = ceil_divide(shape->cols, tile);
    const double Tk = ceil_divide(shape->depth, tile);
    const double mn = (double)shape->rows * shape->cols;
    struct time_work w = tiled_work("matmul_tiled");
    w.blocks = Ti * Tj;
    w.blocks_per_sm = resident(machine, THREADS, registers_matmul[s.tile_index],
                               INT64_C(8) * tile * wide_pitch(tile));
    w.steps = w.blocks * Tk;
    w.most_steps = Tk;
    add_copy(&w, (Tj * shape->rows + Ti * shape->cols) * shape->depth + mn);
    add_put(&w, w.blocks * tile * tile);
    add_product(&w, w.blocks, tile, tile, shape->depth);
    w.amount[TIME_L2] = total_bytes(&account);
    w.amount[TIME_HBM] = least.bytes[ROOFLINE_HBM];
    return w;
}

/* A block a row; its passes are between barriers, but an SM holds eight of them. A step is a
 * round of four loads a thread. */
static struct time_work softmax_work(const char *name, int passes, int instructions,
                                     const struct account *account, int rows, int cols,
                                     const struct machine *machine)
{
    enum { BLOCK = 256, ROUND = 4 * BLOCK, REGISTERS = 31, SHARED_BYTES = 64 };
    struct time_work w = {.name = name, .overlap = OVERLAP_HALF, .step_clocks = SOFTMAX_STEP};
    const double elements = (double)rows * cols;
    w.blocks = rows;
    w.most_steps = passes * ceil_divide(cols, ROUND);
    w.steps = rows * w.most_steps;
    w.blocks_per_sm = resident(machine, BLOCK, REGISTERS, SHARED_BYTES);
    w.amount[TIME_ISSUE] = elements * instructions;
    w.amount[TIME_EXP2] = elements * 2;
    w.amount[TIME_L2] = total_bytes(account);
    w.amount[TIME_L1] = w.amount[TIME_L2] / 128;
    w.amount[TIME_HBM] = elements * 8;
    return w;
}

struct time_work kernel_work_softmax_safe(int rows, int cols, const struct machine *machine)
{
    const struct account account = io_softmax_safe(rows, cols);
    return softmax_work("softmax_safe", 3, SOFTMAX_SAFE, &account, rows, cols, machine);
}

struct time_work kernel_work_softmax_online(int rows, int cols, const struct machine *machine)
{
    const struct account account = io_softmax_online(rows, cols);
    return softmax_work("softmax_online", 2, SOFTMAX_ONLINE, &account, rows, cols, machine);
}

struct time_work kernel_work_vector_add(int count, const struct machine *machine)
{
    const struct account account = io_vector_add(count);
    struct time_work w = {.name = "vector_add", .overlap = OVERLAP_FULL};
    w.blocks = w.steps = ceil_divide(count, 1024);
    w.most_steps = 1;
    w.blocks_per_sm = resident(machine, 256, 18, 0);
    w.amount[TIME_ISSUE] = 10.0 * count;
    w.amount[TIME_L2] = w.amount[TIME_HBM] = total_bytes(&account);
    w.amount[TIME_L1] = w.amount[TIME_L2] / 128;
    return w;
}

struct time_work kernel_work_counts(enum algorithm algorithm, const struct attention *a)
{
    const struct account account = io_predict(algorithm, a, false);
    struct time_work w = {.name = algorithm_name(algorithm), .overlap = OVERLAP_HALF};
    w.tensor = roofline_unit_of(a->dtype);
    if (w.tensor == ROOFLINE_FP32)
        w.amount[TIME_ISSUE] = (double)account.flops.matrix / 2;
    else
        w.amount[TIME_TENSOR] = (double)account.flops.matrix;
    w.amount[TIME_ISSUE] += (double)account.flops.other;
    w.amount[TIME_EXP2] = (double)account.flops.exp;
    w.amount[TIME_L2] = total_bytes(&account);
    w.amount[TIME_HBM] = (double)roofline_least_bytes(algorithm, a);
    w.blocks = w.steps = (double)attention_planes_q(a) * attention_tiles_q(a);
    w.most_steps = 1;
    w.blocks_per_sm = 1;
    return w;
}
