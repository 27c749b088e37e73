/* How fast the simulator is, against the floor: its own tile GEMMs run alone.
 *
 *   simulator UNCOUNTED OUT.json    measures everything, prints a table, writes OUT.json.
 *                                   UNCOUNTED is this program built with the counters compiled
 *                                   out (-DFLASHLAB_UNCOUNTED); `make bench` does both.
 *   simulator --serve               the seconds of a run at B = 64 for each line of input
 *
 * The problem is FlashAttention-2 forward with data, fp32, d 64, N 4096, 4 heads, on all cores.
 * The floor is two plain sgemm calls, S overwritten. The kernel clears S itself and adds to it,
 * which is faster; a floor that does the same is 6 to 10 % higher.
 * Rates count the FLOPs of its two matrix products only. What is compared is measured in turns,
 * a ratio is the median over the turns, and a turn measures the floor before and after the
 * attention run: other load on the machine then hits both sides.
 */
#include <cblas.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/attention_forward.h"

enum { HEADS = 4, SEQLEN = 4096, HEAD_DIM = 64, GEMM = 2048, TURNS = 15, OVERHEAD_TURNS = 25 };

/* Host arrays of the problem, and of the large product. */
struct arrays {
    float *q, *k, *v, *o, *lse;
    float *a, *b, *c;
};

static float *random_floats(size_t count, unsigned seed)
{
    float *values = aligned_alloc(64, (count * sizeof *values + 63) / 64 * 64);
    CHECK(values, "no memory for %zu floats", count);
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        values[i] = (float)(seed >> 8) / (float)(1 << 23) - 1.0f;
    }
    return values;
}

static struct arrays make_arrays(void)
{
    const size_t count = (size_t)HEADS * SEQLEN * HEAD_DIM, square = (size_t)GEMM * GEMM;
    return (struct arrays){random_floats(count, 1),  random_floats(count, 2),
                           random_floats(count, 3),  random_floats(count, 4),
                           random_floats(count, 5),  random_floats(square, 6),
                           random_floats(square, 7), random_floats(square, 8)};
}

static void free_arrays(struct arrays *x)
{
    float *all[] = {x->q, x->k, x->v, x->o, x->lse, x->a, x->b, x->c};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
}

/* One large product on all cores: what OpenBLAS can do on this machine. */
static double seconds_of_gemm(const struct arrays *x)
{
    openblas_set_num_threads(omp_get_max_threads());
    const double start = omp_get_wtime();
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, GEMM, GEMM, GEMM, 1.0f, x->a, GEMM,
                x->b, GEMM, 0.0f, x->c, GEMM);
    const double seconds = omp_get_wtime() - start;
    openblas_set_num_threads(1);
    usleep(200000); /* OpenBLAS's threads spin for a while before they sleep */
    return seconds;
}

/* The problem's tile products alone, as often as the kernel does them, one core a thread. */
static double seconds_of_tile_gemms(int block)
{
    const int tiles = SEQLEN / block;
    const double start = omp_get_wtime();
#pragma omp parallel
    {
        const size_t rows = (size_t)block;
        float *q = random_floats(rows * HEAD_DIM, 1), *k = random_floats(rows * HEAD_DIM, 2);
        float *v = random_floats(rows * HEAD_DIM, 3), *o = random_floats(rows * HEAD_DIM, 4);
        float *s = random_floats(rows * rows, 5);
#pragma omp for schedule(dynamic, 1)
        for (int i = 0; i < HEADS * tiles; i++) {
            for (int j = 0; j < tiles; j++) {
                cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, block, block, HEAD_DIM,
                            0.125f, q, HEAD_DIM, k, HEAD_DIM, 0.0f, s, block);
                cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, block, HEAD_DIM, block,
                            1.0f, s, block, v, HEAD_DIM, 1.0f, o, HEAD_DIM);
            }
            /* The sums grow without the softmax: keep them finite, denormals are slow. */
            memcpy(o, v, rows * HEAD_DIM * sizeof *o);
        }
        free(q);
        free(k);
        free(v);
        free(o);
        free(s);
    }
    return omp_get_wtime() - start;
}

static double seconds_of_attention(const struct arrays *x, int block)
{
    struct simulation s = {.algorithm = ALGORITHM_FLASH2,
                           .machine = machine_default(),
                           .attention = {.batch = 1,
                                         .heads_q = HEADS,
                                         .heads_kv = HEADS,
                                         .seqlen_q = SEQLEN,
                                         .seqlen_k = SEQLEN,
                                         .head_dim = HEAD_DIM,
                                         .head_dim_v = HEAD_DIM,
                                         .scale = 0.125f,
                                         .dtype = DTYPE_F32,
                                         .block_q = block,
                                         .block_k = block}};
    struct error error = {0};
    const double start = omp_get_wtime();
    const enum status status = attention_simulate(&s, x->q, x->k, x->v, x->o, x->lse, &error);
    CHECK(status == STATUS_OK, "%s", error.text);
    return omp_get_wtime() - start;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare_doubles);
    return values[count / 2];
}

struct rates {
    double gemm, tile_gemm, attention; /* FLOP/s */
    double to_tile_gemm, to_gemm;      /* of the attention, as ratios */
};

static struct rates measure(const struct arrays *x, int block)
{
    const double gemm_flops = 2.0 * GEMM * GEMM * GEMM;
    const double flops = 4.0 * HEADS * SEQLEN * SEQLEN * HEAD_DIM;
    double gemm[TURNS], tile_gemm[TURNS], attention[TURNS], to_tile_gemm[TURNS], to_gemm[TURNS];
    for (int turn = -1; turn < TURNS; turn++) { /* turn -1 warms up */
        const int slot = turn < 0 ? 0 : turn;
        gemm[slot] = gemm_flops / seconds_of_gemm(x);
        const double before = seconds_of_tile_gemms(block);
        attention[slot] = flops / seconds_of_attention(x, block);
        const double after = seconds_of_tile_gemms(block);
        tile_gemm[slot] = 2.0 * flops / (before + after);
        to_tile_gemm[slot] = attention[slot] / tile_gemm[slot];
        to_gemm[slot] = attention[slot] / gemm[slot];
    }
    return (struct rates){median(gemm, TURNS), median(tile_gemm, TURNS),
                          median(attention, TURNS), median(to_tile_gemm, TURNS),
                          median(to_gemm, TURNS)};
}

/* A copy of this program, or of the one without counters, that waits to be timed. */
struct coprocess {
    pid_t pid;
    FILE *in, *out; /* ours: answers, requests */
};

/* Its ends of the socket are its own: a second coprocess must not hold them open. */
static struct coprocess coprocess_start(const char *program)
{
    int ends[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "socketpair: %s",
          strerror(errno));
    const pid_t pid = fork();
    CHECK(pid >= 0, "fork: %s", strerror(errno));
    if (pid == 0) {
        dup2(ends[1], STDIN_FILENO);
        dup2(ends[1], STDOUT_FILENO);
        execl(program, program, "--serve", (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    return (struct coprocess){pid, fdopen(ends[0], "r"),
                              fdopen(fcntl(ends[0], F_DUPFD_CLOEXEC, 0), "w")};
}

/* Seconds of one run there. */
static double coprocess_time(struct coprocess *c)
{
    double seconds = NAN;
    fputs("run\n", c->out);
    fflush(c->out);
    CHECK(fscanf(c->in, "%lf", &seconds) == 1, "the timed program ended");
    return seconds;
}

static void coprocess_end(struct coprocess *c)
{
    fclose(c->out);
    fclose(c->in); /* both ends of the socket: its input ends */
    waitpid(c->pid, NULL, 0);
}

/* The other side: a run for each line. */
static void serve(const struct arrays *x)
{
    char line[16];
    while (fgets(line, sizeof line, stdin)) {
        printf("%.9f\n", seconds_of_attention(x, 64));
        fflush(stdout);
    }
}

/* The share of time that counting adds: the median over turns of runs without, with, with,
 * without, each in a process of its own. */
static double counting_overhead(const char *counted, const char *uncounted)
{
    struct coprocess with = coprocess_start(counted), without = coprocess_start(uncounted);
    double share[OVERHEAD_TURNS];
    coprocess_time(&without);
    coprocess_time(&with);
    for (int turn = 0; turn < OVERHEAD_TURNS; turn++) {
        const double before = coprocess_time(&without);
        const double counting = coprocess_time(&with) + coprocess_time(&with);
        share[turn] = counting / (before + coprocess_time(&without)) - 1.0;
    }
    coprocess_end(&with);
    coprocess_end(&without);
    return median(share, OVERHEAD_TURNS);
}

static void write_block(FILE *json, int block, const struct rates *r)
{
    fprintf(json,
            "    {\"block\": %d, \"tile_gemm_gflops\": %.2f, \"attention_gflops\": %.2f, "
            "\"ratio_to_tile_gemm\": %.4f, \"ratio_to_gemm_2048\": %.4f}",
            block, r->tile_gemm / 1e9, r->attention / 1e9, r->to_tile_gemm, r->to_gemm);
    printf("%6d %14.1f %14.1f %14.3f %14.3f\n", block, r->tile_gemm / 1e9, r->attention / 1e9,
           r->to_tile_gemm, r->to_gemm);
}

static int run_all(const struct arrays *x, const char *self, const char *uncounted,
                   const char *path)
{
    FILE *json = fopen(path, "w");
    if (!json) {
        fprintf(stderr, "simulator: %s: %s\n", path, strerror(errno));
        return 2;
    }
    const struct rates at64 = measure(x, 64), at128 = measure(x, 128);
    const double overhead = counting_overhead(self, uncounted);
    printf("FlashAttention-2 forward, fp32, d %d, N %d, %d heads, %d cores; GFLOP/s\n",
           HEAD_DIM, SEQLEN, HEADS, omp_get_max_threads());
    printf("sgemm %d^3: %.1f\n\n", GEMM, at64.gemm / 1e9);
    printf("%6s %14s %14s %14s %14s\n", "B", "tile GEMMs", "attention", "/ tile GEMMs",
           "/ sgemm");
    fprintf(json, "{\n  \"cores\": %d,\n  \"gemm_2048_gflops\": %.2f,\n  \"blocks\": [\n",
            omp_get_max_threads(), at64.gemm / 1e9);
    write_block(json, 64, &at64);
    fprintf(json, ",\n");
    write_block(json, 128, &at128);
    fprintf(json, "\n  ],\n  \"counting_overhead\": %.4f\n}\n", overhead);
    printf("\ncounting costs %.2f %% of the time at B = 64\n", 100.0 * overhead);
    if (fclose(json) != 0) {
        fprintf(stderr, "simulator: %s: %s\n", path, strerror(errno));
        return 2;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct arrays x = make_arrays();
    int code = 0;
    if (argc == 2 && strcmp(argv[1], "--serve") == 0)
        serve(&x);
    else if (argc == 3)
        code = run_all(&x, argv[0], argv[1], argv[2]);
    else
        code = 2;
    if (code == 2 && argc != 3)
        fprintf(stderr, "usage: simulator UNCOUNTED OUT.json | simulator --serve\n");
    free_arrays(&x);
    return code;
}
