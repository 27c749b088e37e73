#include "core/launch.h"

#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/moves.h"
#include "core/on_chip.h"
#include "core/trace.h"

void gpu_init(struct gpu *gpu, const struct machine *machine, enum gpu_mode mode)
{
    *gpu = (struct gpu){.machine = machine, .mode = mode};
}

bool block_failed(const struct thread_block *b)
{
    return b->error.status != STATUS_OK;
}

static void counters_add(struct counters *sum, const struct counters *from, int64_t times,
                         int tensors)
{
    for (int t = 0; t < tensors; t++) {
        for (int k = 0; k < DIRECTION_COUNT; k++) {
            sum->tensor[t].of[k].bytes += times * from->tensor[t].of[k].bytes;
            sum->tensor[t].of[k].sectors += times * from->tensor[t].of[k].sectors;
        }
    }
    sum->flops.matrix += times * from->flops.matrix;
    sum->flops.other += times * from->flops.other;
    sum->flops.exp += times * from->flops.exp;
    for (int path = 0; path < PATH_COUNT; path++)
        sum->path_bytes[path] += times * from->path_bytes[path];
}

/* Element sizes and tile heights are whole numbers of bytes, so 32 equal steps always advance
 * the address by a multiple of 32 bytes. */
enum { LOOP_PERIOD = SECTOR_BYTES };

int loop_begin(struct thread_block *b, int first)
{
    if (b->gpu->mode == GPU_COUNTS) {
        b->loop_first = first;
        b->loop_start = b->counters;
    }
    return first;
}

int loop_next(struct thread_block *b, int j, int end)
{
    const int next = j + 1;
    if (b->gpu->mode == GPU_DATA || b->gpu->trace || b->moves ||
        next - b->loop_first != LOOP_PERIOD)
        return next;
    const int periods = (end - 1 - next) / LOOP_PERIOD; /* end - 1 runs by itself */
    if (periods <= 0)
        return next;
    const int tensors = b->gpu->tensor_count;
    struct counters once = b->counters;
    counters_add(&once, &b->loop_start, -1, tensors);
    counters_add(&b->counters, &once, periods, tensors);
    return next + periods * LOOP_PERIOD;
}

/* One block after another may enter, in order of block number. */
struct turn {
    pthread_mutex_t mutex;
    pthread_cond_t moved;
    int64_t next;
};

/* One axis of a grid, and which of its indices run: all of them, or the first period and the
 * last, the others being like one of the first. */
struct axis {
    int extent;
    int period; /* 0: all run */
};

static struct axis axis_of(int extent, int alike, bool every_block)
{
    return (struct axis){extent, every_block || extent <= alike + 1 ? 0 : alike};
}

static int axis_running(const struct axis *axis)
{
    return axis->period > 0 ? axis->period + 1 : axis->extent;
}

/* The k-th index that runs, and how many blocks along the axis it stands for. */
static int axis_index(const struct axis *axis, int k)
{
    return axis->period > 0 && k == axis->period ? axis->extent - 1 : k;
}

static int64_t axis_weight(const struct axis *axis, int k)
{
    if (axis->period == 0 || k == axis->period)
        return 1;
    return (axis->extent - 2 - k) / axis->period + 1; /* those before the last index */
}

/* What the threads of one gpu_launch() share. */
struct run {
    struct gpu *gpu;
    const struct launch *launch;
    struct axis axis[3]; /* x, y, z */
    int64_t blocks;      /* that run */
    struct turn turn;
    struct counters counters;
    int64_t peak_bytes[LEVEL_COUNT];
    int tile_count;
    struct tile_entry tiles[MAX_TILES];
    int64_t done;
    double last_progress;
    int64_t failed_block; /* lowest number of a block that failed, if error is set */
    struct error error;
};

static void finish_in_order(struct run *run, struct thread_block *b, int64_t number)
{
    pthread_mutex_lock(&run->turn.mutex);
    while (run->turn.next != number)
        pthread_cond_wait(&run->turn.moved, &run->turn.mutex);
    reductions_apply(b);
    step_list_flush(b);
    if (b->moves && !block_failed(b))
        run->gpu->observer->block(run->gpu->observer->context, b, b->moves);
    run->turn.next++;
    pthread_cond_broadcast(&run->turn.moved);
    pthread_mutex_unlock(&run->turn.mutex);
}

/* Gives the block its place; returns how many blocks of the grid it stands for. */
static int64_t block_reset(struct thread_block *b, const struct run *run, int64_t number)
{
    const int nx = axis_running(&run->axis[0]), ny = axis_running(&run->axis[1]);
    const int k[3] = {(int)(number % nx), (int)(number / nx % ny), (int)(number / nx / ny)};
    b->x = axis_index(&run->axis[0], k[0]);
    b->y = axis_index(&run->axis[1], k[1]);
    b->z = axis_index(&run->axis[2], k[2]);
    memset(b->counters.tensor, 0,
           (size_t)run->gpu->tensor_count * sizeof b->counters.tensor[0]);
    b->counters.flops = (struct flops){0};
    memset(b->counters.path_bytes, 0, sizeof b->counters.path_bytes);
    b->tile_count = 0;
    if (b->moves)
        b->moves->count = 0;
    memset(b->ahead, 0, sizeof b->ahead);
    for (int level = 0; level < LEVEL_COUNT; level++)
        b->used[level] = 0;
    return axis_weight(&run->axis[0], k[0]) * axis_weight(&run->axis[1], k[1]) *
           axis_weight(&run->axis[2], k[2]);
}

static struct thread_block
block_of_thread(const struct run *run, struct on_chip_storage *storage, struct move_list *moves)
{
    struct thread_block b = {.gpu = run->gpu,
                             .launch = run->launch,
                             .storage = storage,
                             .moves = run->gpu->observer ? moves : NULL};
    const bool unlimited = run->launch->unlimited_on_chip;
    const struct machine *machine = run->gpu->machine;
    b.capacity[LEVEL_SRAM] = unlimited ? INT64_MAX : machine->sram_bytes_per_block;
    b.capacity[LEVEL_REGISTERS] = unlimited ? INT64_MAX : machine->register_bytes;
    if (run->launch->capacity)
        memcpy(b.capacity, run->launch->capacity, sizeof b.capacity);
    return b;
}

static void report_progress(struct run *run)
{
    int64_t done;
#pragma omp atomic capture
    done = ++run->done;
    if (!run->gpu->progress || omp_get_thread_num() != 0)
        return;
    const double now = omp_get_wtime();
    if (now - run->last_progress < 0.2)
        return;
    run->last_progress = now;
    run->gpu->progress(run->gpu->progress_context, run->launch->name, done, run->blocks);
}

/* Runs blocks until none is left; every thread of the team calls it. */
static void run_blocks(struct run *run)
{
    struct on_chip_storage storage = {0};
    struct move_list moves = {0};
    struct thread_block b = block_of_thread(run, &storage, &moves);
    struct counters counters = {0};
    int64_t peak[LEVEL_COUNT] = {0};
    const int tensors = run->gpu->tensor_count;
    const bool ordered = run->gpu->trace || run->gpu->observer || run->launch->reduces;
    int64_t last = 0; /* the last block that this thread ran */

    /* Blocks start in order of number, so the one whose turn it is always runs. */
#pragma omp for schedule(monotonic : dynamic, 1) nowait
    for (int64_t number = 0; number < run->blocks; number++) {
        const int64_t weight = block_reset(&b, run, number);
        if (!block_failed(&b)) {
            run->launch->block(&b, run->launch->args);
            last = number;
        }
        if (ordered)
            finish_in_order(run, &b, number);
        counters_add(&counters, &b.counters, weight, tensors);
        for (int level = 0; level < LEVEL_COUNT; level++)
            peak[level] = b.used[level] > peak[level] ? b.used[level] : peak[level];
        if (number == 0) {
            run->tile_count = b.tile_count;
            memcpy(run->tiles, b.tiles, sizeof b.tiles);
        }
        report_progress(run);
    }
#pragma omp critical
    {
        counters_add(&run->counters, &counters, 1, tensors);
        for (int level = 0; level < LEVEL_COUNT; level++)
            if (peak[level] > run->peak_bytes[level])
                run->peak_bytes[level] = peak[level];
        if (block_failed(&b) && (!run->error.status || last < run->failed_block)) {
            run->error = b.error;
            run->failed_block = last;
        }
    }
    on_chip_free(&storage);
    move_list_free(&moves);
}

static void append_record(struct gpu *gpu, const struct run *run)
{
    struct launch_record *record = &gpu->launches[gpu->launch_count++];
    *record = (struct launch_record){.name = run->launch->name, .grid = run->launch->grid};
    memcpy(record->peak_bytes, run->peak_bytes, sizeof record->peak_bytes);
    record->tile_count = run->tile_count;
    memcpy(record->tiles, run->tiles, sizeof record->tiles);
    memcpy(record->path_bytes, run->counters.path_bytes, sizeof record->path_bytes);
    for (int t = 0; t < gpu->tensor_count; t++)
        *account_tensor(&record->account, gpu->tensor_name[t]) = run->counters.tensor[t];
    record->account.flops = run->counters.flops;
}

/* No more threads than blocks: idle ones would only wait for each other. */
static int threads_for(int64_t blocks)
{
    const int most = omp_get_max_threads();
    return blocks < most ? (int)blocks : most;
}

enum status gpu_launch(struct gpu *gpu, const struct launch *launch, struct error *error)
{
    const struct grid grid = launch->grid;
    CHECK(grid.x > 0 && grid.y > 0 && grid.z > 0, "%s: grid %d x %d x %d", launch->name, grid.x,
          grid.y, grid.z);
    CHECK(gpu->launch_count < MAX_LAUNCHES, "more than %d launches on one GPU", MAX_LAUNCHES);
    const bool every_block = gpu->mode == GPU_DATA || gpu->trace || gpu->observer;
    struct run run = {.gpu = gpu,
                      .launch = launch,
                      .axis = {axis_of(grid.x, launch->alike.x, every_block),
                               axis_of(grid.y, launch->alike.y, every_block),
                               axis_of(grid.z, launch->alike.z, every_block)},
                      .turn = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0},
                      .last_progress = omp_get_wtime()};
    run.blocks = (int64_t)axis_running(&run.axis[0]) * axis_running(&run.axis[1]) *
                 axis_running(&run.axis[2]);
#pragma omp parallel num_threads(threads_for(run.blocks))
    run_blocks(&run);
    if (run.error.status != STATUS_OK) {
        *error = run.error;
        return error->status;
    }
    append_record(gpu, &run);
    return STATUS_OK;
}

struct account gpu_account(const struct gpu *gpu)
{
    struct account sum = {0};
    for (int i = 0; i < gpu->launch_count; i++)
        account_add(&sum, &gpu->launches[i].account);
    return sum;
}
