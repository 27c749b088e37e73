#include "common/product_dram.h"

#include "models/l2_traffic.h"

/* Blocks are modelled, if there are more, that ask for so many bytes: they stand for all. */
#define MODELLED_BYTES INT64_C(4000000000)

enum { SAMPLE = 32 }; /* lines of L2: see l2_traffic.h */

static int ceil_divide(int a, int b)
{
    return (a + b - 1) / b;
}

static int min(int a, int b)
{
    return a < b ? a : b;
}

static int64_t min_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* One after the other in HBM. */
static int64_t address_of(const struct io_matmul *shape, char matrix, int row, int col)
{
    const int64_t A = (int64_t)shape->rows * shape->depth,
                  B = (int64_t)shape->depth * shape->cols;
    const int64_t first = matrix == 'A' ? 0 : matrix == 'B' ? A : A + B;
    const int64_t pitch = matrix == 'A' ? shape->depth : shape->cols;
    return (first + row * pitch + col) * (int64_t)sizeof(float);
}

static void add(struct move_list *moves, const struct io_matmul *shape, char matrix, int row,
                int col, int rows, int cols)
{
    const int pitch = matrix == 'A' ? shape->depth : shape->cols;
    const struct move move = {
        .address = address_of(shape, matrix, row, col),
        .stride = pitch * (int64_t)sizeof(float),
        .rows = rows,
        .row_bytes = cols * (int)sizeof(float),
        .direction = matrix == 'C' ? DIRECTION_WRITE : DIRECTION_READ,
    };
    move_list_add(moves, &move);
}

/* What a block moves. */
static void list_block(struct move_list *moves, const struct product_blocks *blocks,
                       const struct io_matmul *shape, int row, int col)
{
    const int rows = min(blocks->rows, shape->rows - row);
    const int cols = min(blocks->cols, shape->cols - col);
    moves->count = 0;
    for (int k = 0; k < shape->depth; k += blocks->step) {
        const int step = min(blocks->step, shape->depth - k);
        add(moves, shape, 'A', row, k, rows, step);
        add(moves, shape, 'B', k, col, step, cols);
    }
    add(moves, shape, 'C', row, col, rows, cols);
}

/* From the launch of the first blocks to all: what is read for the first time is read once,
 * what is read again grows with what is asked. */
static void scale(struct product_dram *dram, const struct l2_launch *launch,
                  const struct product_blocks *blocks, const struct io_matmul *shape,
                  int64_t modelled)
{
    const int64_t across = ceil_divide(shape->cols, blocks->cols);
    const int64_t down = ceil_divide(shape->rows, blocks->rows);
    const int64_t rows = min_of(((modelled - 1) / across + 1) * blocks->rows, shape->rows);
    const int64_t A = 4 * (int64_t)shape->rows * shape->depth,
                  B = 4 * (int64_t)shape->depth * shape->cols;
    const int64_t again = launch->dram_read_bytes - rows * shape->depth * 4 - B;
    dram->l2_bytes = A * across + B * down;
    dram->dram_bytes = A + B;
    if (again > 0)
        dram->dram_bytes += (int64_t)((double)again * (double)dram->l2_bytes /
                                      ((double)launch->read_sectors * SECTOR_BYTES));
}

enum status product_dram_predict(struct product_dram *dram, const struct product_blocks *blocks,
                                 const struct io_matmul *shape, const struct machine *machine,
                                 struct error *error)
{
    const int across = ceil_divide(shape->cols, blocks->cols);
    const int64_t all = (int64_t)across * ceil_divide(shape->rows, blocks->rows);
    const int64_t block_bytes = 4 * (int64_t)shape->depth * (blocks->rows + blocks->cols);
    const int64_t modelled = min_of(all, MODELLED_BYTES / block_bytes + 1);
    struct l2_traffic l2;
    struct move_list moves = {0};
    if (machine->l2_bytes <= 0)
        return error_set(error, STATUS_BAD_ARGUMENT, "machine %s: its L2 is not known",
                         machine->name);
    if (l2_traffic_init(&l2, &(struct l2_options){.machine = machine, .sample = SAMPLE}, error))
        return error->status;
    l2_traffic_begin(&l2, "product", (int)min_of(all, blocks->per_sm * machine->sms));
    for (int n = 0; n < modelled; n++) {
        list_block(&moves, blocks, shape, n / across * blocks->rows, n % across * blocks->cols);
        l2_traffic_block(&l2, &moves);
    }
    l2_traffic_finish(&l2);
    scale(dram, &l2.launches[0], blocks, shape, modelled);
    move_list_free(&moves);
    l2_traffic_free(&l2);
    return STATUS_OK;
}
