/* Requests of a warp to global and shared memory: the models beside the counters of an NVIDIA
 * H200 (cuda/results/h200_probes.csv, by make gpu-probes).
 *
 * Protects: sectors of global loads and stores of 4, 8 and 16 bytes (strides, misalignment,
 * order, broadcasts, random addresses, few lanes), and passes over shared memory's banks of
 * loads, stores and ldmatrix (strides, padded and swizzled tiles), equal in every row; and all
 * of these of whole transpositions (strided, through bare, padded and swizzled tiles, ragged).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/csv.h"
#include "common/probes.h"
#include "common/transpositions.h"
#include "models/banks.h"
#include "models/coalescing.h"

#define PROBES "../../cuda/results/h200_probes.csv" /* from tests/data */

static struct probe probe_of(const struct csv *table, int row)
{
    struct probe probe = {.bytes = (int)csv_int(table, row, "bytes"),
                          .lanes = (int)csv_int(table, row, "lanes"),
                          .a = (int)csv_int(table, row, "a"),
                          .b = (int)csv_int(table, row, "b")};
    if (!probe_access_parse(&probe.access, csv_text(table, row, "access")) ||
        !probe_pattern_parse(&probe.pattern, csv_text(table, row, "pattern")))
        fail_msg("row %d: unknown access or pattern", row);
    return probe;
}

/* Sectors or passes. */
static int predicted(const struct probe *probe)
{
    int slot[PROBE_LANES];
    int64_t address[PROBE_LANES];
    uint32_t offset[PROBE_LANES];
    const uint32_t active = (uint32_t)((UINT64_C(1) << probe->lanes) - 1);
    probe_slots(slot, probe);
    for (int lane = 0; lane < PROBE_LANES; lane++) {
        address[lane] = (int64_t)slot[lane] * probe->bytes;
        offset[lane] = (uint32_t)(slot[lane] * probe->bytes);
    }
    switch (probe->access) {
    case PROBE_GLOBAL_LOAD:
    case PROBE_GLOBAL_STORE:
        return coalesced_request(address, active, probe->bytes).sectors;
    case PROBE_MATRIX_LOAD:
        return bank_matrix_wavefronts(offset, probe->lanes / 8);
    default:
        return bank_wavefronts(offset, active, probe->bytes,
                               probe->access == PROBE_SHARED_LOAD);
    }
}

/* What a transposition's requests add up to: sectors or passes, and instructions. */
struct totals {
    int64_t of[PROBE_ACCESSES], instructions[PROBE_ACCESSES];
};

static void add_request(void *context, const struct warp_request *r)
{
    struct totals *totals = context;
    uint32_t offset[PROBE_LANES];
    for (int lane = 0; lane < PROBE_LANES; lane++)
        offset[lane] = (uint32_t)r->address[lane];
    totals->instructions[r->access]++;
    totals->of[r->access] +=
        r->access == PROBE_GLOBAL_LOAD || r->access == PROBE_GLOBAL_STORE
            ? coalesced_request(r->address, r->active, r->bytes).sectors
            : bank_wavefronts(offset, r->active, r->bytes, r->access == PROBE_SHARED_LOAD);
}

/* The counter that belongs to each access, and that of its instructions: one is executed. */
static const struct {
    const char *counter, *instructions;
} columns[PROBE_ACCESSES] = {
    [PROBE_GLOBAL_LOAD] = {"load_sectors", NULL},
    [PROBE_GLOBAL_STORE] = {"store_sectors", NULL},
    [PROBE_SHARED_LOAD] = {"shared_load_wavefronts", "shared_load_instructions"},
    [PROBE_SHARED_STORE] = {"shared_store_wavefronts", "shared_store_instructions"},
    [PROBE_MATRIX_LOAD] = {"matrix_load_wavefronts", "matrix_load_instructions"},
};

/* The other accesses' counters are 0: each probe is one instruction. */
static void check_probe(const struct csv *table, int row, const struct probe *probe,
                        int prediction)
{
    for (int k = 0; k < PROBE_ACCESSES; k++) {
        const bool own = k == (int)probe->access;
        const int64_t measured = csv_int(table, row, columns[k].counter);
        if (measured != (own ? prediction : 0))
            fail_msg("row %d: %s of %d bytes, %d lanes, %s %d %d: %s: measured %d, predicted "
                     "%d",
                     row, probe_access_name(probe->access), probe->bytes, probe->lanes,
                     probe_pattern_name(probe->pattern), probe->a, probe->b, columns[k].counter,
                     (int)measured, own ? prediction : 0);
        if (columns[k].instructions)
            assert_int_equal(csv_int(table, row, columns[k].instructions), own);
    }
}

/* Transpositions are the last rows. */
static int first_transposition(const struct csv *table)
{
    int row = 0;
    while (row < table->rows && strcmp(csv_text(table, row, "access"), "transposition") != 0)
        row++;
    return row;
}

static void test_every_probe_is_as_measured(void **state)
{
    static struct csv table;
    static struct probe_list list;
    (void)state;
    csv_read(&table, PROBES);
    probe_list_fill(&list);
    assert_int_equal(first_transposition(&table), list.count);
    for (int row = 0; row < list.count; row++) {
        const struct probe probe = probe_of(&table, row), *listed = &list.probe[row];
        assert_true(probe.access == listed->access && probe.bytes == listed->bytes &&
                    probe.lanes == listed->lanes && probe.pattern == listed->pattern &&
                    probe.a == listed->a && probe.b == listed->b);
        check_probe(&table, row, &probe, predicted(&probe));
    }
    csv_free(&table);
}

static void check_transposition(const struct csv *table, int row,
                                const struct transposition *listed)
{
    enum transposition_kind kind;
    struct totals totals = {0};
    assert_true(transposition_parse(&kind, csv_text(table, row, "pattern")));
    assert_true(kind == listed->kind && csv_int(table, row, "bytes") == listed->bytes &&
                csv_int(table, row, "a") == listed->rows &&
                csv_int(table, row, "b") == listed->cols);
    transposition_walk(listed, add_request, &totals);
    for (int k = 0; k < PROBE_ACCESSES; k++) {
        const int64_t measured = csv_int(table, row, columns[k].counter);
        if (measured != totals.of[k])
            fail_msg("row %d: %s of %d bytes, %d x %d: %s: measured %d, predicted %d", row,
                     transposition_name(kind), listed->bytes, listed->rows, listed->cols,
                     columns[k].counter, (int)measured, (int)totals.of[k]);
        if (columns[k].instructions)
            assert_int_equal(csv_int(table, row, columns[k].instructions),
                             totals.instructions[k]);
    }
}

static void test_every_transposition_is_as_measured(void **state)
{
    static struct csv table;
    int count;
    const struct transposition *list = transposition_list(&count);
    (void)state;
    csv_read(&table, PROBES);
    const int first = first_transposition(&table);
    assert_int_equal(table.rows - first, count);
    for (int i = 0; i < count; i++)
        check_transposition(&table, first + i, &list[i]);
    csv_free(&table);
}

/* Sectors and passes of a matrix of whole tiles, by hand: a request of 32 lanes of 4 bytes is 4
 * sectors along a row, 32 down a column; down a column of a bare tile it passes 32 times. */
static void test_whole_tiles_by_hand(void **state)
{
    static const struct {
        enum transposition_kind kind;
        int bytes, load_sectors, store_sectors, shared_loads, shared_stores;
    } expected[] = {
        {TRANSPOSE_STRIDED_STORE, 4, 4 * 32, 32 * 32, 0, 0},
        {TRANSPOSE_STRIDED_LOAD, 4, 32 * 32, 4 * 32, 0, 0},
        {TRANSPOSE_UNPADDED, 4, 4 * 32, 4 * 32, 32 * 32, 32},
        {TRANSPOSE_PADDED, 4, 4 * 32, 4 * 32, 32, 32},
        {TRANSPOSE_SWIZZLED, 4, 4 * 32, 4 * 32, 32, 32},
        {TRANSPOSE_UNPADDED, 16, 16 * 8, 16 * 8, 8 * 32, 4 * 32},
        {TRANSPOSE_PADDED, 16, 16 * 8, 16 * 8, 32, 32},
        {TRANSPOSE_SWIZZLED, 16, 16 * 8, 16 * 8, 32, 32},
    };
    (void)state;
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        const struct transposition t = {expected[i].kind, expected[i].bytes, 64, 96};
        struct totals totals = {0};
        transposition_walk(&t, add_request, &totals);
        assert_int_equal(totals.of[PROBE_GLOBAL_LOAD], 6 * expected[i].load_sectors);
        assert_int_equal(totals.of[PROBE_GLOBAL_STORE], 6 * expected[i].store_sectors);
        assert_int_equal(totals.of[PROBE_SHARED_LOAD], 6 * expected[i].shared_loads);
        assert_int_equal(totals.of[PROBE_SHARED_STORE], 6 * expected[i].shared_stores);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_probe_is_as_measured),
        cmocka_unit_test(test_every_transposition_is_as_measured),
        cmocka_unit_test(test_whole_tiles_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
