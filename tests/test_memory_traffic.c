/* What moves between HBM and chip are charged: bytes and 32-byte sectors.
 *
 * Protects the counts that every lesson rests on. The expected numbers come from enumeration:
 * the address of every element that moves is listed in the order of the copy loop, cut into
 * requests of 32 (or, for the copy engine, into contiguous spans), and the distinct sectors of
 * each request are counted with a set. Nothing is shared with sim/core/sectors.c. The elements
 * that count are those inside the tensor; a box that the copy engine reads counts whole.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "common/core_fixture.h"

/* The sectors of one request; a set. */
struct sector_set {
    int count;
    int64_t *sector; /* [count], room for as many as there are elements */
};

static void set_add(struct sector_set *set, int64_t sector)
{
    for (int i = set->count - 1; i >= 0; i--)
        if (set->sector[i] == sector)
            return;
    set->sector[set->count++] = sector;
}

/* How a list of addresses becomes requests. */
enum engine { BY_WARPS, BY_SPANS };

/* Distinct sectors of each request of the addresses, added up. */
static int64_t enumerate_sectors(const int64_t *address, int count, int bytes, enum engine by)
{
    struct sector_set set = {0, malloc((size_t)count * sizeof(int64_t))};
    int64_t sum = 0;
    assert_non_null(set.sector);
    for (int i = 0; i < count; i++) {
        const bool next_request =
            by == BY_WARPS ? i % 32 == 0 : i > 0 && address[i] != address[i - 1] + bytes;
        if (next_request) {
            sum += set.count;
            set.count = 0;
        }
        set_add(&set, address[i] / 32);
    }
    sum += set.count;
    free(set.sector);
    return sum;
}

/* Byte address of an element; only differences and the value modulo 32 matter. */
static int64_t address_of(const struct hbm_tensor *t, int plane, int64_t row, int64_t col)
{
    return (((int64_t)plane * t->rows + row) * t->cols + col) * dtype_bytes(t->dtype);
}

/* Whether the copy engine moves the tile: not if it has one column. */
static bool is_box(const struct tile_move *move, bool tma)
{
    return tma && move->cols > 1;
}

/* What the header says the move counts, by enumeration. */
static struct amount enumerate_move(const struct tile_move *move, bool tma)
{
    const struct hbm_tensor *t = move->tensor;
    const int bytes = dtype_bytes(t->dtype);
    const bool box = is_box(move, tma);
    const bool whole = box && move->direction == DIRECTION_READ;
    int64_t *address = malloc((size_t)move->rows * (size_t)move->cols * sizeof *address);
    int count = 0;
    assert_non_null(address);
    for (int r = 0; r < move->rows; r++)
        for (int c = 0; c < move->cols; c++)
            if (whole || (move->row + r < t->rows && move->col + c < t->cols))
                address[count++] = address_of(t, move->plane, move->row + r, move->col + c);
    const struct amount amount = {
        (int64_t)count * bytes,
        enumerate_sectors(address, count, bytes, box ? BY_SPANS : BY_WARPS)};
    free(address);
    return amount;
}

/* Fails unless the GPU's only launch moved exactly this, in this direction, of tensor T. */
static void expect_account(const struct gpu *gpu, enum direction direction,
                           const struct amount *want, const char *what)
{
    struct account account = {0};
    account_tensor(&account, "T")->of[direction] = *want;
    assert_int_equal(gpu->launch_count, 1);
    const struct amount got =
        account_total(&gpu->launches[0].account).of[direction]; /* for the message */
    if (!account_equal(&gpu->launches[0].account, &account))
        fail_msg("%s: %lld bytes in %lld sectors, expected %lld in %lld", what,
                 (long long)got.bytes, (long long)got.sectors, (long long)want->bytes,
                 (long long)want->sectors);
}

/* The move made in one mode, against its enumeration. */
static void check_move(struct tile_move *move, enum gpu_mode mode, bool tma)
{
    struct gpu gpu;
    gpu_init(&gpu, machine_default(), mode);
    gpu.tma = tma;
    const struct hbm_tensor *shape = move->tensor;
    struct hbm_tensor other = new_tensor(&gpu, "other", DTYPE_F32, 1, 3, 3);
    struct hbm_tensor t = new_tensor(&gpu, "T", shape->dtype, shape->planes, shape->rows,
                                     shape->cols); /* id 1, so that a wrong index shows */
    move->tensor = &t;
    run_one_block(&gpu, move_block, move);
    const struct amount want = enumerate_move(move, tma);
    char what[160];
    snprintf(what, sizeof what, "%s %d x %d tile at (%d, %d, %d) of %d x %d x %d, %s%s",
             dtype_name(t.dtype), move->rows, move->cols, move->plane, move->row, move->col,
             t.planes, t.rows, t.cols, mode == GPU_DATA ? "data" : "counts",
             tma ? ", tma" : "");
    expect_account(&gpu, move->direction, &want, what);
    move->tensor = (struct hbm_tensor *)shape;
    hbm_free(&t), hbm_free(&other);
}

/* Shapes with whole sectors and 32-element rows among them, where shortcuts may be taken. */
static int random_extent(struct rng *rng, int most)
{
    static const int round[] = {32, 64, 8, 16, 96, 1, 128};
    const int extent = random_int(rng, 0, 2) ? random_int(rng, 1, most)
                                             : round[random_int(rng, 0, LENGTH(round) - 1)];
    return extent < most ? extent : most;
}

static void check_random_moves(int seed, bool tma, int cases)
{
    struct rng rng = {(uint64_t)seed};
    for (int n = 0; n < cases; n++) {
        const enum direction direction = (enum direction)(n % DIRECTION_COUNT);
        struct hbm_tensor t = {.name = "T", .dtype = (enum dtype)(n / 3 % DTYPE_COUNT)};
        if (direction == DIRECTION_REDUCE)
            t.dtype = DTYPE_F32;
        t.planes = random_int(&rng, 1, 4);
        t.rows = random_extent(&rng, 30);
        t.cols = random_extent(&rng, 140);
        struct tile_move move = random_move(&rng, direction, &t);
        if (random_int(&rng, 0, 3) == 0) { /* a tile of 32-element rows in a wider tensor */
            move.cols = random_int(&rng, 0, 1) ? 32 : 64;
            move.col = random_int(&rng, 0, t.cols - 1);
        }
        move.values = random_values(&rng, (size_t)move.rows * (size_t)move.cols);
        check_move(&move, GPU_DATA, tma);
        check_move(&move, GPU_COUNTS, tma);
        free(move.values);
    }
}

static void test_tiles_count_what_enumeration_counts(void **state)
{
    (void)state;
    check_random_moves(11, false, 3000);
}

static void test_boxes_count_what_enumeration_counts(void **state)
{
    (void)state;
    check_random_moves(12, true, 3000);
}

/* Whole rows in every alignment: columns, planes and rows that do not fill sectors. */
static void test_every_alignment_of_whole_rows(void **state)
{
    (void)state;
    for (int k = 0; k < DTYPE_COUNT * 40; k++) {
        struct hbm_tensor t = {.name = "T", .dtype = (enum dtype)(k % DTYPE_COUNT)};
        t.planes = 3, t.rows = 5, t.cols = 1 + k / DTYPE_COUNT;
        for (int at = 0; at < t.planes * t.rows; at++) {
            struct tile_move move = {DIRECTION_READ, &t,        at / t.rows, at % t.rows, 0,
                                     DTYPE_F32,      1 + k % 4, t.cols,      NULL};
            check_move(&move, GPU_COUNTS, false);
            check_move(&move, GPU_COUNTS, true);
        }
    }
}

/* The rule for boxes, with numbers. Rows of 8 f32 are one sector. */
static void test_box_rule(void **state)
{
    static const struct {
        enum direction direction;
        int row, cols, tile_cols;
        bool tma;
        struct amount want;
    } pins[] = {
        /* 4 of 16 rows are inside: a load by the engine counts 16, a store 4. */
        {DIRECTION_READ, 28, 8, 8, false, {4 * 32, 4}},
        {DIRECTION_READ, 28, 8, 8, true, {16 * 32, 16}},
        {DIRECTION_WRITE, 28, 8, 8, false, {4 * 32, 4}},
        {DIRECTION_WRITE, 28, 8, 8, true, {4 * 32, 4}},
        {DIRECTION_REDUCE, 28, 8, 8, true, {4 * 32, 4}},
        /* 6 of 8 columns are inside, in rows of 24 bytes: the box reads 32 a row, misaligned
         * in three of four rows. */
        {DIRECTION_READ, 0, 6, 8, true, {16 * 32, 4 * (1 + 2 + 2 + 2)}},
        {DIRECTION_WRITE, 0, 6, 8, true, {16 * 24, 12}},
        /* One column: statistics, which the engine does not move. */
        {DIRECTION_READ, 28, 1, 1, true, {4 * 4, 1}},
        {DIRECTION_WRITE, 28, 1, 1, true, {4 * 4, 1}},
        {DIRECTION_READ, 0, 1, 1, true, {16 * 4, 2}},
    };
    (void)state;
    for (size_t i = 0; i < LENGTH(pins); i++) {
        float values[16 * 8] = {0};
        struct gpu gpu;
        gpu_init(&gpu, machine_default(), GPU_DATA);
        gpu.tma = pins[i].tma;
        struct hbm_tensor t = new_tensor(&gpu, "T", DTYPE_F32, 1, 32, pins[i].cols);
        run_one_block(&gpu, move_block,
                      &(struct tile_move){pins[i].direction, &t, 0, pins[i].row, 0, DTYPE_F32,
                                          16, pins[i].tile_cols, values});
        char what[32];
        snprintf(what, sizeof what, "box %zu", i);
        expect_account(&gpu, pins[i].direction, &pins[i].want, what);
        hbm_free(&t);
    }
}

/* One request of a warp. */
struct request {
    struct hbm_tensor *tensor;
    bool store;
    int plane, active;
    int64_t element[WARP_LANES];
};

static void request_block(struct thread_block *b, const void *args)
{
    const struct request *q = args;
    float value[WARP_LANES] = {0};
    if (q->store)
        warp_store(b, q->tensor, q->plane, q->element, value, q->active);
    else
        warp_load(b, value, q->tensor, q->plane, q->element, q->active);
}

static void check_request(struct request *q, enum dtype dtype, int planes, int rows, int cols,
                          const struct amount *pinned)
{
    for (int k = 0; k < 4; k++) {
        struct gpu gpu;
        gpu_init(&gpu, machine_default(), k & 1 ? GPU_DATA : GPU_COUNTS);
        gpu.tma = k == 3; /* does not concern warps */
        q->store = k & 2;
        struct hbm_tensor t = new_tensor(&gpu, "T", dtype, planes, rows, cols);
        q->tensor = &t;
        run_one_block(&gpu, request_block, q);
        const int bytes = dtype_bytes(dtype);
        int64_t address[WARP_LANES];
        for (int lane = 0; lane < q->active; lane++)
            address[lane] = address_of(&t, q->plane, 0, 0) + q->element[lane] * bytes;
        const struct amount want = {(int64_t)q->active * bytes,
                                    enumerate_sectors(address, q->active, bytes, BY_WARPS)};
        const enum direction direction = q->store ? DIRECTION_WRITE : DIRECTION_READ;
        expect_account(&gpu, direction, pinned ? pinned : &want, "request");
        hbm_free(&t);
    }
}

/* Lanes that share, stride, run backwards, or go anywhere: element of lane k. */
static int64_t lane_element(struct rng *rng, int pattern, int lane, int start, int step,
                            int end)
{
    switch (pattern) {
    case 0: /* broadcast */
        return start;
    case 1: /* strided, around the plane */
        return (start + (int64_t)lane * step) % end;
    case 2: /* strided downwards */
        return (start + (int64_t)(31 - lane) * step) % end;
    case 3: /* a permutation of 32 neighbours: 11 and 32 share no factor */
        return (start + lane * 11 % 32) % end;
    case 4: /* pairs of lanes share */
        return (start + lane / 2 * step) % end;
    default:
        return random_int(rng, 0, end - 1);
    }
}

static void test_requests_count_what_enumeration_counts(void **state)
{
    (void)state;
    struct rng rng = {13};
    for (int n = 0; n < 2000; n++) {
        const int planes = random_int(&rng, 1, 3), rows = random_extent(&rng, 40),
                  cols = random_extent(&rng, 140), end = rows * cols;
        struct request q = {.plane = random_int(&rng, 0, planes - 1),
                            .active = n % 2 ? 32 : random_int(&rng, 1, 32)};
        const int start = random_int(&rng, 0, end - 1), step = random_int(&rng, 1, 20);
        for (int lane = 0; lane < WARP_LANES; lane++)
            q.element[lane] = lane_element(&rng, n % 6, lane, start, step, end);
        check_request(&q, (enum dtype)(n / 6 % DTYPE_COUNT), planes, rows, cols, NULL);
    }
}

static void test_known_requests(void **state)
{
    static const struct {
        enum dtype dtype;
        int start, step, active;
        struct amount want;
    } pins[] = {
        {DTYPE_F32, 0, 1, 32, {128, 4}}, {DTYPE_F32, 1, 1, 32, {128, 5}},
        {DTYPE_F32, 0, 0, 32, {128, 1}}, {DTYPE_F32, 0, 8, 32, {128, 32}},
        {DTYPE_F32, 0, 2, 32, {128, 8}}, {DTYPE_F16, 0, 1, 32, {64, 2}},
        {DTYPE_F16, 15, 1, 32, {64, 3}}, {DTYPE_F16, 0, 8, 32, {64, 16}},
        {DTYPE_E4M3, 0, 1, 32, {32, 1}}, {DTYPE_E4M3, 31, 1, 32, {32, 2}},
        {DTYPE_F32, 7, 1, 1, {4, 1}},    {DTYPE_F32, 7, 1, 2, {8, 2}},
        {DTYPE_F32, 8, 100, 7, {28, 7}},
    };
    (void)state;
    for (size_t i = 0; i < LENGTH(pins); i++) {
        struct request q = {.active = pins[i].active};
        for (int lane = 0; lane < WARP_LANES; lane++)
            q.element[lane] = pins[i].start + lane * pins[i].step;
        check_request(&q, pins[i].dtype, 1, 64, 64, &pins[i].want);
    }
}

/* The enumeration itself, on addresses counted by hand. */
static void test_enumeration_by_hand(void **state)
{
    static const int64_t row[] = {0, 4, 8, 28, 32, 36, 64}, back[] = {96, 64, 32, 0, 64};
    (void)state;
    assert_int_equal(enumerate_sectors(row, 7, 4, BY_WARPS), 3);
    assert_int_equal(enumerate_sectors(row, 7, 4, BY_SPANS), 1 + 2 + 1);
    assert_int_equal(enumerate_sectors(back, 5, 4, BY_WARPS), 4);
    assert_int_equal(enumerate_sectors(back, 5, 4, BY_SPANS), 5);
    int64_t many[33]; /* the 33rd begins a request of its own in a sector already seen */
    for (int i = 0; i < 33; i++)
        many[i] = i % 2;
    assert_int_equal(enumerate_sectors(many, 32, 1, BY_WARPS), 1);
    assert_int_equal(enumerate_sectors(many, 33, 1, BY_WARPS), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_enumeration_by_hand),
        cmocka_unit_test(test_known_requests),
        cmocka_unit_test(test_requests_count_what_enumeration_counts),
        cmocka_unit_test(test_box_rule),
        cmocka_unit_test(test_every_alignment_of_whole_rows),
        cmocka_unit_test(test_tiles_count_what_enumeration_counts),
        cmocka_unit_test(test_boxes_count_what_enumeration_counts),
    };
    return cmocka_run_group_tests_name("memory_traffic", tests, NULL, NULL);
}
