/* What the CUDA kernels compute on the CPU, bit by bit beside what an NVIDIA H200 computed from
 * the same source and inputs (cuda/results/h200_bits.csv).
 *
 * Protects: sums and products, fused as nvcc fuses them, are the GPU's to the last bit: all of
 * vector_add, the matmuls, and standard_attention's scores. Where exp and log come in, whose
 * last bits are the C library's own, outputs differ from the GPU's by no more than
 * EXP_ROUNDINGS.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/bits.h"
#include "common/problem.h"
#include "cpu/run.h"

#define BITS "../../cuda/results/h200_bits.csv" /* from tests/data */
#define ROUNDING 0x1p-24                        /* of a float, half a unit in the last place */

/* Of the larger of an output and 1. Four are seen; another C library may round otherwise. */
enum { EXP_ROUNDINGS = 16 };

/* Every array in turn takes its share of the random numbers, outputs too: as the GPU's did. */
static void open_with_inputs(struct cpu_run *run, const char *inputs_hash)
{
    uint64_t state = 1, hash = 0;
    struct error error;
    if (cpu_run_open(run, &error))
        fail_msg("%s", error.text);
    for (int n = 0; n < run->arrays; n++) {
        struct cpu_run_array *array = &run->array[n];
        for (int64_t i = 0; i < array->count; i++) {
            const float number = random_normal(&state);
            if (array->input)
                array->memory[i] = number;
        }
        if (array->input)
            hash = hash * 31 + bits_hash(array->memory, (size_t)array->count);
    }
    if (hash != strtoull(inputs_hash, NULL, 16))
        fail_msg("%s: other inputs than the GPU's, hash %016" PRIx64,
                 cpu_kernel_name(run->kernel), hash);
}

static bool is_exact(const struct cpu_run *run, const char *array)
{
    return run->kernel <= CPU_MATMUL_TILED || strcmp(array, "S") == 0;
}

/* The GPU's first elements are bits in hexadecimal, separated by blanks. */
static double largest_difference(const float *here, const char *first)
{
    double largest = 0;
    char *rest;
    for (int i = 0; *first; i++, first = rest) {
        const float there = bits_to_float((uint32_t)strtoul(first, &rest, 16));
        if (here[i] == there)
            continue;
        const double difference =
            fabs((double)here[i] - (double)there) / ROUNDING / fmax(fabs((double)there), 1.0);
        if (!(difference <= largest))
            largest = difference;
    }
    return largest;
}

static void check_row(const struct csv *table, int row, const struct cpu_run *run,
                      double *worst)
{
    const char *array = csv_text(table, row, "array");
    const float *here = cpu_run_data(run, array);
    const size_t count = (size_t)csv_int(table, row, "count");
    if (is_exact(run, array)) {
        const uint64_t hash = bits_hash(here, count);
        if (hash != strtoull(csv_text(table, row, "hash"), NULL, 16))
            fail_msg("row %d: %s of %s has other bits than the GPU's", row, array,
                     cpu_kernel_name(run->kernel));
        return;
    }
    const double difference = largest_difference(here, csv_text(table, row, "first"));
    if (!(difference <= EXP_ROUNDINGS))
        fail_msg("row %d: %s of %s is %.3g roundings from the GPU's", row, array,
                 cpu_kernel_name(run->kernel), difference);
    *worst = fmax(*worst, difference);
}

/* Outputs of one run follow each other in the file. */
static bool same_run(const struct csv *table, int row, int other)
{
    return strcmp(csv_text(table, row, "kernel"), csv_text(table, other, "kernel")) == 0 &&
           strcmp(csv_text(table, row, "inputs_hash"), csv_text(table, other, "inputs_hash")) ==
               0;
}

static struct cpu_run launch_row(const struct csv *table, int row)
{
    struct cpu_run run = run_of_row(table, row);
    struct error error;
    run.a.scale = bits_to_float((uint32_t)strtoul(csv_text(table, row, "scale"), NULL, 16));
    open_with_inputs(&run, csv_text(table, row, "inputs_hash"));
    if (cpu_run_launch(&run, &(struct cpu_options){.unobserved = true}, &error))
        fail_msg("%s", error.text);
    return run;
}

static void test_bits_are_the_gpus(void **state)
{
    static struct csv table;
    int exact = 0;
    double worst[CPU_KERNELS] = {0};
    struct cpu_run run;
    (void)state;
    csv_read(&table, BITS);
    for (int row = 0; row < table.rows; row++) {
        if (row == 0 || !same_run(&table, row, row - 1))
            run = launch_row(&table, row);
        check_row(&table, row, &run, &worst[run.kernel]);
        exact += is_exact(&run, csv_text(&table, row, "array"));
        if (row + 1 == table.rows || !same_run(&table, row, row + 1))
            cpu_run_close(&run);
    }
    csv_free(&table);
    print_message("%d outputs equal to the last bit\n", exact);
    for (int kernel = 0; kernel < CPU_KERNELS; kernel++)
        print_message("%-18s at most %.3g roundings apart\n",
                      cpu_kernel_name((enum cpu_kernel)kernel), worst[kernel]);
    assert_int_equal(exact, 5 * 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bits_are_the_gpus)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
