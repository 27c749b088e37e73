/* Figure 2 (middle) of the FlashAttention paper (Dao et al. 2022): HBM accesses of the forward
 * pass by block size, for batch 64, 16 heads, N = 1024, d = 64, fp16 on an A100 of 40 GB.
 *
 * The simulated FlashAttention-1 must print the figure's numbers digit for digit: Q, K, V and
 * O, in units of 10^9 bytes; the row statistics l and m, which the figure leaves out, are known
 * separately. And its tiles must fit that machine's on-chip memory, as they did.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>

#include "kernels/attention_forward.h"
#include "models/io.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

enum { HEADS = 64 * 16, N = 1024, D = 64, BR = 64, F16_BYTES = 2, F32_BYTES = 4 };

static struct simulation simulation_of(int block_k)
{
    return (struct simulation){
        .algorithm = ALGORITHM_FLASH1,
        .attention = {.batch = 64,
                      .heads_q = 16,
                      .heads_kv = 16,
                      .seqlen_q = N,
                      .seqlen_k = N,
                      .head_dim = D,
                      .head_dim_v = D,
                      .scale = 0.125f,
                      .dtype = DTYPE_F16,
                      .block_q = BR,
                      .block_k = block_k},
        .machine = machine_find("A100-40GB"),
    };
}

static struct simulation counted(int block_k)
{
    struct simulation s = simulation_of(block_k);
    struct error error;
    assert_non_null(s.machine);
    if (attention_count(&s, &error))
        fail_msg("Bc = %d: %s", block_k, error.text);
    assert_int_equal(s.gpu.launch_count, 1);
    return s;
}

/* Bytes read and written of the named tensors. */
static int64_t bytes_of(struct account account, const char *const *names, size_t count)
{
    int64_t bytes = 0;
    for (size_t k = 0; k < count; k++) {
        const struct traffic *traffic = account_tensor(&account, names[k]);
        bytes += traffic->of[DIRECTION_READ].bytes + traffic->of[DIRECTION_WRITE].bytes;
    }
    return bytes;
}

static void test_bytes_by_block_size(void **state)
{
    static const struct {
        int block_k;
        const char *printed; /* in the figure */
        const char *longer;  /* (3 Tc + 1) N d elements a head, to one digit more */
    } figure[] = {
        {64, "6.577", "6.5767"},
        {128, "3.355", "3.3554"},
        {256, "1.745", "1.7448"},
        {512, "0.940", "0.9395"},
    };
    static const char *const matrices[] = {"Q", "K", "V", "O"}, *const statistics[] = {"l",
                                                                                       "m"};
    (void)state;
    for (size_t k = 0; k < LENGTH(figure); k++) {
        const struct simulation s = counted(figure[k].block_k);
        const struct account simulated = gpu_account(&s.gpu);
        const struct account predicted = io_predict(s.algorithm, &s.attention, false);
        const int64_t bytes = bytes_of(simulated, matrices, LENGTH(matrices));
        const int64_t Tc = N / figure[k].block_k;
        char text[32];
        snprintf(text, sizeof text, "%.3f", (double)bytes / 1e9);
        assert_string_equal(text, figure[k].printed);
        snprintf(text, sizeof text, "%.4f", (double)bytes / 1e9);
        assert_string_equal(text, figure[k].longer);
        assert_true(bytes == (3 * Tc + 1) * N * D * F16_BYTES * HEADS);
        assert_true(bytes_of(simulated, statistics, LENGTH(statistics)) ==
                    2 * (2 * Tc - 1) * N * F32_BYTES * HEADS);
        assert_true(account_equal(&simulated, &predicted));
    }
}

/* Kj, Vj and Qi in SRAM; Sij, Oi and the statistics of its rows in registers. If the tile of S
 * were in SRAM too, as the paper's Algorithm 1 can be read, Bc = 512 would exceed the 163 KB
 * that a thread block of an A100 may have. */
static void test_tiles_fit_on_chip(void **state)
{
    static const struct {
        int block_k;
        bool fits_with_s;
    } sizes[] = {{64, true}, {128, true}, {256, true}, {512, false}};
    (void)state;
    for (size_t k = 0; k < LENGTH(sizes); k++) {
        const int block_k = sizes[k].block_k;
        const struct simulation s = counted(block_k);
        const int64_t *peak = s.gpu.launches[0].peak_bytes;
        const int64_t scores = (int64_t)BR * block_k * F32_BYTES;
        assert_true(peak[LEVEL_SRAM] == (int64_t)(2 * block_k + BR) * D * F16_BYTES);
        assert_true(peak[LEVEL_REGISTERS] >= scores + (int64_t)BR * D * F32_BYTES);
        assert_true(peak[LEVEL_SRAM] <= s.machine->sram_bytes_per_block);
        assert_true(peak[LEVEL_REGISTERS] <= s.machine->register_bytes);
        assert_int_equal(peak[LEVEL_SRAM] + scores <= s.machine->sram_bytes_per_block,
                         sizes[k].fits_with_s);
    }
}

/* The figure ends at 512: the next size is refused, with the reason. */
static void test_the_next_size_does_not_fit(void **state)
{
    struct simulation s = simulation_of(1024);
    struct error error;
    (void)state;
    assert_int_equal(attention_count(&s, &error), STATUS_ON_CHIP_FULL);
    assert_int_equal(s.gpu.launch_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_by_block_size),
        cmocka_unit_test(test_tiles_fit_on_chip),
        cmocka_unit_test(test_the_next_size_does_not_fit),
    };
    return cmocka_run_group_tests_name("figure 2", tests, NULL, NULL);
}
