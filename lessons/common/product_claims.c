#include "common/product_claims.h"

#include <math.h>
#include <string.h>

#include "common/report.h"
#include "models/shared_matmul.h"

/* Wavefronts of a multiply-add of a warp: of shared memory, 2 R + 4 C for 4 R C; naive, of L1:
 * one for the element of A, one for 32 of B. */
static double wavefronts_of(const struct product *p)
{
    if (p->tile == 0)
        return 2;
    return (2.0 * p->thread_rows + 4.0 * p->thread_cols) /
           (4.0 * p->thread_rows * p->thread_cols);
}

static struct shared_requests predict(const struct product *product, const struct cpu_run *run)
{
    const struct io_matmul shape = {run->rows, run->cols, run->depth};
    return product->kernel == CPU_MATMUL_SHARED ? shared_of_matmul_shared(&shape, product->tile)
                                                : shared_of_matmul_tiled(&shape, product->tile);
}

static bool is_whole(const struct product *p, const struct cpu_run *run)
{
    return p->tile > 0 && run->rows % p->tile == 0 && run->cols % p->tile == 0 &&
           run->depth % p->tile == 0;
}

/* Where the row says how many wavefronts there were. */
static void claim_wavefronts(struct lesson *l, const struct product *product,
                             const struct basic_row *row)
{
    char name[PRODUCT_NAME_LENGTH], claim[128];
    if (!is_whole(product, &row->shape) || row->shared_load_wavefronts < 0)
        return;
    snprintf(claim, sizeof claim, "%s, %d^3: loads", product_name(name, product),
             row->shape.rows);
    const struct side predicted = {"predicted", predict(product, &row->shape).load_wavefronts};
    const struct side measured = {row->source == BASIC_ON_CPU ? "CPU" : "measured",
                                  (int64_t)row->shared_load_wavefronts};
    lesson_claim_sides(l, claim, "wavefronts", &predicted, &measured);
}

void product_claim_shared(struct lesson *l, const struct basic_column *k)
{
    char name[PRODUCT_NAME_LENGTH];
    lesson_say(l, "%-22s %11s %19s %11s %11s\n%-22s %11s %19s %11s %11s\n", "", "elements of",
               "wavefronts a warp's", "FLOP a byte", "FLOP a byte", "", "C a thread",
               "multiply-add", "of shared", "of HBM");
    for (int n = 0; n < PRODUCTS; n++) {
        const struct product *p = &products[n];
        lesson_say(l, "%-22s %7d x %d %19.3f %11.2f %11.2f\n", product_name(name, p),
                   p->thread_rows, p->thread_cols, wavefronts_of(p),
                   2.0 * 32 / (128 * wavefronts_of(p)), p->tile ? p->tile / 4.0 : 0.25);
    }
    lesson_say(l, "\n");
    for (int n = 0; n < PRODUCTS && n < k->small_rows; n++)
        claim_wavefronts(l, &products[n], &k->small[n]);
    for (int n = 0; n < k->rows; n++)
        claim_wavefronts(l, &products[n], &k->row[n]);
}

/* The least time by one unit of the machine, in us. */
struct bound {
    const char *name;
    double us;
};

/* The largest of what fp32 units, L1 and shared memory, and HBM need. */
static struct bound bound_of(const struct product *product, const struct basic_row *row,
                             const struct machine *m)
{
    const double multiply_adds =
        (double)row->shape.rows * row->shape.cols * (double)row->shape.depth;
    const struct bound bounds[] = {
        {"fp32 units", 2e6 * multiply_adds / m->fp32_flops},
        {product->tile ? "shared memory" : "L1",
         1e6 * multiply_adds / WARP_LANES * wavefronts_of(product) / (m->sms * m->clock_hz)},
        {"HBM",
         row->dram_read_bytes < 0
             ? 0
             : 1e6 * (row->dram_read_bytes + row->dram_write_bytes) / m->hbm_bytes_per_second},
    };
    struct bound largest = bounds[0];
    for (int n = 1; n < 3; n++)
        if (bounds[n].us > largest.us)
            largest = bounds[n];
    return largest;
}

static double tflops(const struct basic_row *row, double us)
{
    return 2e-6 * row->shape.rows * row->shape.cols * (double)row->shape.depth / us;
}

/* A row that has a time. Returns the bound's share of it. */
static double say_time(struct lesson *l, const struct product *product,
                       const struct basic_row *row, const struct machine *m)
{
    char name[PRODUCT_NAME_LENGTH];
    const struct bound bound = bound_of(product, row, m);
    lesson_say(l, "%-22s %8.2f %8.2f  %-13s %8.2f %7.0f %%\n", product_name(name, product),
               row->median_us / 1e3, tflops(row, row->median_us), bound.name,
               tflops(row, bound.us), 100 * bound.us / row->median_us);
    return bound.us / row->median_us;
}

void product_claim_times(struct lesson *l, const struct basic_column *k)
{
    const struct machine *m = l->options->simulation.machine;
    const struct basic_row *naive = &k->row[PRODUCT_NAIVE];
    double worst = 0;
    if (naive->median_us < 0 || !strstr(k->gpu, m->name) || m->clock_hz <= 0) {
        lesson_say(l, "No times at this N on machine %s: --gpu measures them.\n", m->name);
        return;
    }
    lesson_say(l, "%-22s %8s %8s  %-13s %8s %9s\n%-22s %8s %8s  %-13s %8s\n", "", "time", "",
               "what is", "at most", "reached", "", "ms", "TFLOP/s", "scarcest", "TFLOP/s");
    for (int n = 0; n < k->rows; n++)
        if (k->row[n].median_us > 0)
            worst = fmax(worst, say_time(l, &products[n], &k->row[n], m));
    lesson_say(l, "\n");
    lesson_claim_error(l, "No kernel is faster than what it asks of any unit allows", 1.0,
                       worst);
    const double hbm_us = 1e6 * 8 * naive->shape.rows * naive->shape.cols *
                          (double)naive->shape.depth / m->hbm_bytes_per_second;
    lesson_claim_error(l,
                       "2 N^3 elements from HBM would take longer than the naive kernel does",
                       1.0, naive->median_us / hbm_us);
    lesson_say(l, "      %.1f ms at %.1f TB/s; measured %.1f ms\n", hbm_us / 1e3,
               m->hbm_bytes_per_second / 1e12, naive->median_us / 1e3);
}
