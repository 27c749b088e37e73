/* Prints what the kernels compute on this GPU, bit by bit, as CSV: for test_cpu_bits.c, which
 * compares it with the same source on the CPU. A line for every output of the first shapes of
 * each kernel: a hash of all its bits, and its first elements. The inputs' hash tells whether
 * both had the same. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/bits.h"
#include "cuda/device.h"
#include "results.h"
#include "shapes.h"

enum { SHAPES = 16, SHOWN = 32, SEED = 1 };

static uint64_t inputs_hash(const struct run *run)
{
    uint64_t hash = 0;
    for (int i = 0; i < run->arrays; i++)
        if (run->array[i].role == ROLE_INPUT)
            hash = hash * 31 + bits_hash(run->array[i].host, run->array[i].count);
    return hash;
}

static void print_output(const struct run *run, const struct array *array)
{
    results_shape(stdout, run);
    printf(",%08" PRIx32 ",%s,%zu,%016" PRIx64 ",%016" PRIx64 ",", bits_of(run->a.scale),
           array->name, array->count, inputs_hash(run), bits_hash(array->host, array->count));
    for (size_t i = 0; i < array->count && i < SHOWN; i++)
        printf("%s%08" PRIx32, i > 0 ? " " : "", bits_of(array->host[i]));
    printf("\n");
}

static enum status print_run(struct run *run, struct error *error)
{
    if (run_open(run, SEED, error))
        return error->status;
    const bool failed = run_poison(run, error) || run_launch(run, error) ||
                        stream_wait(NULL, error) || run_download(run, error);
    for (int i = 0; i < run->arrays && !failed; i++)
        if (run->array[i].role == ROLE_OUTPUT)
            print_output(run, &run->array[i]);
    run_close(run);
    return failed ? error->status : STATUS_OK;
}

int main(void)
{
    struct error error = {0};
    bool failed = results_machine(stdout, "make gpu-bits", &error) != STATUS_OK;
    if (!failed) {
        results_shape_columns(stdout);
        printf(",scale,array,count,inputs_hash,hash,first\n");
    }
    for (int kernel = 0; kernel < KERNEL_COUNT && !failed; kernel++) {
        for (int n = 0; n < SHAPES && !failed; n++) {
            struct run run = shape_of((enum kernel)kernel, n);
            failed = print_run(&run, &error) != STATUS_OK;
        }
    }
    if (failed)
        fprintf(stderr, "gpu_bits: %s\n", error.text);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
