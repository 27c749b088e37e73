/* Bank conflicts: the passes over shared memory's banks that one request takes.
 *
 * Protects: every request of a probe that an NVIDIA H200 counted (data/h200_bank_probes.csv:
 * strides, broadcasts, halves and quarters of a warp, random ones; 4, 8 and 16 bytes; loads and
 * stores) takes as many passes here; the textbook's cases; ldmatrix on tiles whose rows are
 * bare, padded or swizzled.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "common/csv.h"
#include "models/banks.h"

enum { PROBES = 384 };

struct request {
    uint32_t offset[BANK_LANES], active;
    int bytes;
};

static struct request request_of(const char *slots, int bytes)
{
    struct request r = {.bytes = bytes};
    char *rest;
    for (int lane = 0; lane < BANK_LANES; lane++, slots = rest) {
        const long slot = strtol(slots, &rest, 10);
        if (rest == slots)
            fail_msg("%d slots, not %d", lane, BANK_LANES);
        if (slot < 0)
            continue;
        r.active |= 1u << lane;
        r.offset[lane] = (uint32_t)(slot * bytes);
    }
    return r;
}

static void test_every_probe_takes_the_measured_passes(void **state)
{
    static struct csv table;
    (void)state;
    csv_read(&table, "h200_bank_probes.csv");
    assert_int_equal(table.rows, PROBES);
    for (int row = 0; row < table.rows; row++) {
        const struct request r =
            request_of(csv_text(&table, row, "slots"), (int)csv_int(&table, row, "bytes"));
        const bool is_load = strcmp(csv_text(&table, row, "way"), "load") == 0;
        const int passes = bank_wavefronts(r.offset, r.active, r.bytes, is_load);
        if (passes != csv_int(&table, row, "wavefronts"))
            fail_msg("row %d: %s of %d bytes at %s: measured %s passes, predicted %d", row,
                     csv_text(&table, row, "way"), r.bytes, csv_text(&table, row, "slots"),
                     csv_text(&table, row, "wavefronts"), passes);
    }
    csv_free(&table);
}

/* Lane k reads word stride * k. */
static int passes_of_stride(uint32_t stride)
{
    uint32_t offset[BANK_LANES];
    for (uint32_t lane = 0; lane < BANK_LANES; lane++)
        offset[lane] = lane * stride * BANK_BYTES;
    return bank_wavefronts(offset, 0xffffffff, BANK_BYTES, true);
}

static void test_a_stride_conflicts_by_what_it_shares_with_32(void **state)
{
    (void)state;
    assert_int_equal(passes_of_stride(0), 1); /* broadcast */
    for (uint32_t stride = 1; stride <= 64; stride++)
        assert_int_equal(passes_of_stride(stride),
                         stride & (~stride + 1) & 31 ? stride & (~stride + 1) : 32);
}

static void test_conflicts_are_what_is_beyond_the_least(void **state)
{
    uint32_t offset[BANK_LANES];
    (void)state;
    for (uint32_t lane = 0; lane < BANK_LANES; lane++)
        offset[lane] = lane * 16;
    assert_int_equal(bank_least_wavefronts(offset, 0xffffffff, 16, true), 4);
    assert_int_equal(bank_wavefronts(offset, 0xffffffff, 16, true), 4);
    assert_int_equal(bank_least_wavefronts(offset, 0xffffffff, 4, true), 1);
    assert_int_equal(bank_wavefronts(offset, 0xffffffff, 4, true), 4);
    assert_int_equal(bank_wavefronts(offset, 0, 4, true), 0);
    assert_int_equal(bank_least_wavefronts(offset, 0, 4, true), 0);
    for (uint32_t lane = 0; lane < BANK_LANES; lane++)
        offset[lane] = lane; /* four lanes a word */
    assert_int_equal(bank_wavefronts(offset, 0xffffffff, 1, true), 1);
}

/* ldmatrix of four matrices, 16 x 16 elements of 2 bytes, in a tile of rows of pitch bytes. */
static int passes_of_fragment(uint32_t pitch, bool swizzled)
{
    uint32_t offset[BANK_LANES];
    for (uint32_t lane = 0; lane < BANK_LANES; lane++) {
        const uint32_t row = lane % 16, column = lane / 16;
        offset[lane] = row * pitch + 16 * (swizzled ? column ^ row % 8 : column);
    }
    return bank_matrix_wavefronts(offset, 4);
}

static void test_a_matrix_takes_a_pass_if_its_rows_share_no_bank(void **state)
{
    uint32_t offset[BANK_LANES] = {0};
    (void)state;
    assert_int_equal(passes_of_fragment(128, false), 32); /* all rows begin in bank 0 */
    assert_int_equal(passes_of_fragment(128 + 16, false), 4);
    assert_int_equal(passes_of_fragment(128, true), 4);
    assert_int_equal(passes_of_fragment(64, false), 16); /* pairs of rows fill the banks */
    assert_int_equal(passes_of_fragment(256, true), 4);
    for (int matrices = 1; matrices <= 4; matrices *= 2) /* one row for all */
        assert_int_equal(bank_matrix_wavefronts(offset, matrices), matrices);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_probe_takes_the_measured_passes),
        cmocka_unit_test(test_a_stride_conflicts_by_what_it_shares_with_32),
        cmocka_unit_test(test_conflicts_are_what_is_beyond_the_least),
        cmocka_unit_test(test_a_matrix_takes_a_pass_if_its_rows_share_no_bank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
