/* Coalescing: the sectors and lines of one request of a warp.
 *
 * Protects: the textbook's cases (strides, misalignment, broadcast, order, inactive lanes, wide
 * accesses), and agreement with a count that marks every byte. What hardware counters say of
 * the same and more: test_probes.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/problem.h"
#include "core/traffic.h"
#include "models/coalescing.h"

enum { SPAN = 8192, RANDOM_REQUESTS = 2000 };

static const struct {
    const char *what;
    int start, stride, bytes; /* lane k at start + k * stride */
    uint32_t active;
    int sectors, lines;
} cases[] = {
    {"contiguous", 0, 4, 4, 0xffffffff, 4, 1},
    {"backwards", 31 * 4, -4, 4, 0xffffffff, 4, 1},
    {"one element late", 4, 4, 4, 0xffffffff, 5, 2},
    {"eight elements late", 32, 4, 4, 0xffffffff, 4, 2},
    {"broadcast", 64, 0, 4, 0xffffffff, 1, 1},
    {"every other element", 0, 8, 4, 0xffffffff, 8, 2},
    {"a sector a lane", 0, 32, 4, 0xffffffff, 32, 8},
    {"a line a lane", 0, 128, 4, 0xffffffff, 32, 32},
    {"float2", 0, 8, 8, 0xffffffff, 8, 2},
    {"float4", 0, 16, 16, 0xffffffff, 16, 4},
    {"float4, every other one", 0, 32, 16, 0xffffffff, 32, 8},
    {"bytes", 0, 1, 1, 0xffffffff, 1, 1},
    {"the first half", 0, 4, 4, 0x0000ffff, 2, 1},
    {"the last lane", 0, 4, 4, 0x80000000, 1, 1},
    {"no lane", 0, 4, 4, 0, 0, 0},
};

static void test_known_requests(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        int64_t address[COALESCING_LANES];
        for (int lane = 0; lane < COALESCING_LANES; lane++)
            address[lane] = cases[n].active >> lane & 1
                                ? cases[n].start + (int64_t)lane * cases[n].stride
                                : -1; /* not read */
        const struct coalesced c = coalesced_request(address, cases[n].active, cases[n].bytes);
        if (c.sectors != cases[n].sectors || c.lines != cases[n].lines)
            fail_msg("%s: %d sectors, %d lines", cases[n].what, c.sectors, c.lines);
        assert_int_equal(c.bytes, __builtin_popcount(cases[n].active) * cases[n].bytes);
    }
}

/* How many pieces of so many bytes have a marked byte. */
static int marked_pieces(const bool *touched, int piece_bytes)
{
    int pieces = 0;
    for (int first = 0; first < SPAN; first += piece_bytes) {
        bool marked = false;
        for (int byte = 0; byte < piece_bytes; byte++)
            marked = marked || touched[first + byte];
        pieces += marked;
    }
    return pieces;
}

static void test_random_requests_touch_what_their_bytes_lie_in(void **state)
{
    static bool touched[SPAN];
    uint64_t seed = 7;
    (void)state;
    for (int n = 0; n < RANDOM_REQUESTS; n++) {
        int64_t address[COALESCING_LANES];
        const int bytes = 1 << random_between(&seed, 0, 4);
        const int reach = random_between(&seed, 1, SPAN / bytes);
        const uint32_t active = (uint32_t)random_next(&seed);
        memset(touched, 0, sizeof touched);
        for (int lane = 0; lane < COALESCING_LANES; lane++) {
            address[lane] = (int64_t)bytes * random_between(&seed, 0, reach - 1);
            for (int byte = 0; active >> lane & 1 && byte < bytes; byte++)
                touched[address[lane] + byte] = true;
        }
        const struct coalesced c = coalesced_request(address, active, bytes);
        assert_int_equal(c.sectors, marked_pieces(touched, SECTOR_BYTES));
        assert_int_equal(c.lines, marked_pieces(touched, LINE_BYTES));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_requests),
        cmocka_unit_test(test_random_requests_touch_what_their_bytes_lie_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
