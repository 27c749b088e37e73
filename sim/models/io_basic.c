#include "models/io_basic.h"

#include "models/io_tiles.h"

static int64_t ceil_divide(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Every tile of block_rows x block_cols of an fp32 matrix moved once. */
static struct amount pass(int rows, int cols, int block_rows, int block_cols)
{
    const struct io_tensor matrix = {"", 4, 1, 1, rows, cols};
    return io_subtile_pass(&matrix, block_rows, block_cols, false, DIRECTION_READ);
}

/* A matrix whose rows move in requests of 32 elements each. */
static struct amount pass_of_rows(int rows, int cols)
{
    return pass(rows, cols, 1, WARP_LANES);
}

static void add(struct account *account, const char *name, enum direction direction,
                int64_t times, struct amount amount)
{
    struct amount *sum = &account_tensor(account, name)->of[direction];
    sum->bytes += times * amount.bytes;
    sum->sectors += times * amount.sectors;
}

struct account io_vector_add(int count)
{
    struct account account = {0};
    add(&account, "a", DIRECTION_READ, 1, pass_of_rows(1, count));
    add(&account, "b", DIRECTION_READ, 1, pass_of_rows(1, count));
    add(&account, "c", DIRECTION_WRITE, 1, pass_of_rows(1, count));
    account.flops.other = count;
    return account;
}

struct account io_matmul_naive(const struct io_matmul *shape)
{
    const int64_t rows = shape->rows, cols = shape->cols, depth = shape->depth;
    struct account account = {0};
    /* every lane asks for its element of A, but a warp's 32 lie in one sector */
    const struct amount a = {rows * depth * cols * 4,
                             rows * depth * ceil_divide(cols, WARP_LANES)};
    add(&account, "A", DIRECTION_READ, 1, a);
    add(&account, "B", DIRECTION_READ, rows, pass_of_rows(shape->depth, shape->cols));
    add(&account, "C", DIRECTION_WRITE, 1, pass_of_rows(shape->rows, shape->cols));
    account.flops.matrix = 2 * rows * cols * depth;
    return account;
}

/* Tiles of tile x tile, that many rows of them at a time. */
static struct account matmul_by_tiles(const struct io_matmul *shape, int tile, int rows)
{
    struct account account = {0};
    add(&account, "A", DIRECTION_READ, ceil_divide(shape->cols, tile),
        pass(shape->rows, shape->depth, rows, tile));
    add(&account, "B", DIRECTION_READ, ceil_divide(shape->rows, tile),
        pass(shape->depth, shape->cols, rows, tile));
    add(&account, "C", DIRECTION_WRITE, 1, pass(shape->rows, shape->cols, rows, tile));
    account.flops.matrix = (int64_t)2 * shape->rows * shape->cols * shape->depth;
    return account;
}

struct account io_matmul_shared(const struct io_matmul *shape, int tile)
{
    return matmul_by_tiles(shape, tile, WARP_LANES / tile < tile ? WARP_LANES / tile : tile);
}

struct account io_matmul_tiled(const struct io_matmul *shape, int tile)
{
    return matmul_by_tiles(shape, tile, tile);
}

static struct account softmax(int rows, int cols, int loads)
{
    struct account account = {0};
    add(&account, "X", DIRECTION_READ, loads, pass_of_rows(rows, cols));
    add(&account, "Y", DIRECTION_WRITE, 1, pass_of_rows(rows, cols));
    /* an element: max; s - m, exp and sum; s - m, exp and the division */
    account.flops.other = (int64_t)5 * rows * cols;
    account.flops.exp = (int64_t)2 * rows * cols;
    return account;
}

struct account io_softmax_naive(int rows, int cols)
{
    struct account account = softmax(rows, cols, 2);
    /* no maximum, and nothing subtracted */
    account.flops.other -= (int64_t)3 * rows * cols;
    return account;
}

struct account io_softmax_safe(int rows, int cols)
{
    return softmax(rows, cols, 3);
}

struct account io_softmax_online(int rows, int cols)
{
    struct account account = softmax(rows, cols, 2);
    /* a request of 32: m - m_new, its exp, and the rescaling of the sum */
    const int64_t requests = rows * ceil_divide(cols, WARP_LANES);
    account.flops.other += 2 * requests;
    account.flops.exp += requests;
    return account;
}
