/* Step records of kernels on the CPU. A thread reaches a step's mark when it comes by; what the
 * step has to say is the sum over the threads of its team, whenever they come: no mark waits.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/status.h"
#include "cuda/cpu/worker.h"

struct cpu_step_rows {
    int rows;
    float m[CPU_MAX_STEP_ROWS], l[CPU_MAX_STEP_ROWS];
    double square[CPU_MAX_STEP_ROWS]; /* UNKNOWN: no thread has said */
};

static const double UNKNOWN = -1;

struct step {
    struct cpu_team team;
    const char *name;
    int i, j;
    int64_t read_bytes, written_bytes;
    struct cpu_step_rows *rows; /* owned; NULL: none */
};

/* A worker's steps of the launch, and where those of the running block begin. */
struct step_list {
    int64_t count, room, block;
    struct step *step;
};

/* Of all workers, in the order in which they came. */
static struct step_list all;

static struct step *append(struct step_list *list)
{
    if (list->count == list->room) {
        list->room = list->room ? 2 * list->room : 64;
        list->step = realloc(list->step, (size_t)list->room * sizeof *list->step);
        CHECK(list->step, "no host memory for %lld steps", (long long)list->room);
    }
    return &list->step[list->count++];
}

void cpu_steps_block(struct worker *worker)
{
    if (!cpu_options.step_log)
        return;
    if (!worker->steps) {
        worker->steps = calloc(1, sizeof *worker->steps);
        CHECK(worker->steps, "no host memory for steps");
    }
    worker->steps->block = worker->steps->count;
    memset(worker->read_bytes, 0, sizeof worker->read_bytes);
    memset(worker->written_bytes, 0, sizeof worker->written_bytes);
}

static int compare_teams(const struct cpu_team *a, const struct cpu_team *b)
{
    const int x[4] = {a->z, a->y, a->x, a->number}, y[4] = {b->z, b->y, b->x, b->number};
    for (int n = 0; n < 4; n++)
        if (x[n] != y[n])
            return x[n] < y[n] ? -1 : 1;
    return 0;
}

/* The running block's step of that number, if a thread has been there. */
static struct step *find_step(struct step_list *list, const struct cpu_team *team)
{
    for (int64_t n = list->count; n-- > list->block;)
        if (compare_teams(&list->step[n].team, team) == 0)
            return &list->step[n];
    return NULL;
}

struct cpu_step_rows *cpu_step(struct cpu_team *team, const char *name, int i, int j, int rows)
{
    struct worker *worker = cpu_worker;
    struct step *step = find_step(worker->steps, team);
    if (!step) {
        step = append(worker->steps);
        *step = (struct step){.team = *team, .name = name, .i = i, .j = j};
        if (rows > 0) {
            CHECK(rows <= CPU_MAX_STEP_ROWS, "a step of %d rows", rows);
            step->rows = malloc(sizeof *step->rows);
            CHECK(step->rows, "no host memory for the rows of a step");
            step->rows->rows = rows;
            for (int r = 0; r < rows; r++) {
                step->rows->m[r] = step->rows->l[r] = NAN;
                step->rows->square[r] = UNKNOWN;
            }
        }
    }
    const unsigned thread = cpu_thread_number();
    step->read_bytes += worker->read_bytes[thread];
    step->written_bytes += worker->written_bytes[thread];
    team->number++;
    return step->rows;
}

void cpu_step_row(struct cpu_step_rows *rows, int row, float m, float l)
{
    if (row < rows->rows) {
        rows->m[row] = m;
        rows->l[row] = l;
    }
}

void cpu_step_square(struct cpu_step_rows *rows, int row, double square)
{
    if (row < rows->rows)
        rows->square[row] = (rows->square[row] == UNKNOWN ? 0 : rows->square[row]) + square;
}

void cpu_steps_join(struct worker *worker)
{
    struct step_list *list = worker->steps;
    for (int64_t n = 0; list && n < list->count; n++)
        *append(&all) = list->step[n];
    if (list)
        free(list->step);
    free(list);
    worker->steps = NULL;
}

static int simulators_order(const void *a, const void *b)
{
    return compare_teams(&((const struct step *)a)->team, &((const struct step *)b)->team);
}

static void add_record(struct step_log *log, const char *kernel, struct step *step)
{
    float none, norm[CPU_MAX_STEP_ROWS];
    struct cpu_step_rows *rows = step->rows;
    for (int r = 0; rows && r < rows->rows; r++)
        norm[r] = rows->square[r] == UNKNOWN ? NAN : (float)sqrt(rows->square[r]);
    const struct step_record record = {.kernel = kernel,
                                       .block = {step->team.x, step->team.y, step->team.z},
                                       .i = step->i,
                                       .j = step->j,
                                       .step = step->name,
                                       .read_bytes = step->read_bytes,
                                       .written_bytes = step->written_bytes,
                                       .rows = rows ? rows->rows : 0,
                                       .m = rows ? rows->m : &none,
                                       .l = rows ? rows->l : &none,
                                       .o_norm = norm};
    step_log_add(log, &record);
}

void cpu_steps_end(const char *kernel)
{
    if (all.count > 0)
        qsort(all.step, (size_t)all.count, sizeof *all.step, simulators_order);
    for (int64_t n = 0; n < all.count; n++) {
        add_record(cpu_options.step_log, kernel, &all.step[n]);
        free(all.step[n].rows);
    }
    free(all.step);
    all = (struct step_list){0};
}
