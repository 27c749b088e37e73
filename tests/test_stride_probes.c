/* lessons/common/stride_probes: requests at a stride, as a GPU counted them and as modelled.
 *
 * Protects: every committed load and store at a stride is read, and what the model says;
 * figures known by heart; files with a field that is missing, no number or out of range.
 */
#include "common/npy_files.h"

#include "common/core_fixture.h"
#include "common/stride_probes.h"

#ifndef FLASHLAB_TEST_DATA
#define FLASHLAB_TEST_DATA "tests/data"
#endif

#define PROBES FLASHLAB_TEST_DATA "/../../cuda/results/h200_probes.csv"
#define HEAD                                                                                   \
    "# NVIDIA H200, 132 SMs; driver 580.1, CUDA 13.0\n# 2026-11-30: make gpu-probes\n"         \
    "access,bytes,lanes,pattern,a,b,load_sectors,store_sectors\n"

static void test_every_probe_is_as_modelled(void **state)
{
    struct stride_probes p;
    struct error error;
    (void)state;
    if (stride_probes_read(&p, PROBES, &error))
        fail_msg("%s", error.text);
    assert_int_equal(p.count, 2 * (65 + 23 + 21) + 30); /* the last: fewer than 32 lanes */
    assert_string_equal(p.gpu, "NVIDIA H200");
    for (int n = 0; n < p.count; n++) {
        const struct stride_probe *probe = &p.probe[n];
        const struct stride_access *a = &probe->access;
        if (stride_coalesced(a).sectors != probe->measured)
            fail_msg("%s of %d bytes, %d lanes, stride %d from %d: %d modelled, %d measured",
                     probe->store ? "store" : "load", a->bytes, a->lanes, a->stride, a->start,
                     stride_coalesced(a).sectors, probe->measured);
    }
    assert_int_equal(stride_measured(&p, &(struct stride_access){4, 32, 1, 0}), 4);
    assert_int_equal(stride_measured(&p, &(struct stride_access){4, 32, 1, 1}), 5);
    assert_int_equal(stride_measured(&p, &(struct stride_access){4, 1, 1, 0}), 1);
    assert_int_equal(stride_measured(&p, &(struct stride_access){4, 32, 33, 0}), 32);
    assert_int_equal(stride_measured(&p, &(struct stride_access){16, 32, 1, 0}), 16);
    assert_int_equal(stride_measured(&p, &(struct stride_access){16, 32, 33, 0}), -1);
    stride_probes_free(&p);
}

static void test_known_accesses(void **state)
{
    static const struct {
        struct stride_access access;
        int sectors, bytes;
    } cases[] = {
        {{4, 32, 0, 0}, 1, 128}, {{4, 32, 1, 0}, 4, 128},   {{4, 32, 1, 1}, 5, 128},
        {{4, 32, 2, 0}, 8, 128}, {{4, 32, 8, 0}, 32, 128},  {{4, 32, 33, 5}, 32, 128},
        {{8, 32, 1, 0}, 8, 256}, {{16, 32, 1, 0}, 16, 512}, {{16, 32, 2, 0}, 32, 512},
        {{4, 1, 1, 7}, 1, 4},    {{4, 5, 1, 4}, 2, 20},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct coalesced c = stride_coalesced(&cases[i].access);
        if (c.sectors != cases[i].sectors || c.bytes != cases[i].bytes)
            fail_msg("case %zu: %d sectors, %d bytes", i, c.sectors, c.bytes);
    }
}

static void test_files(void **state)
{
    static const struct {
        const char *rows, *message; /* NULL: accepted, one probe */
    } cases[] = {
        {"global_load,4,32,stride,1,0,4,0\nshared_load,4,32,stride,x,0,0,0", NULL},
        {"global_store,4,32,stride,1,0,x,4\nglobal_load,4,32,random,x,0,0,0", NULL},
        {"shared_load,4,32,stride,1,0,4,0", "no access at a stride is in it"},
        {"global_load,0,32,stride,1,0,4,0", "row 1: bytes must be from 1 to 16"},
        {"global_load,4,33,stride,1,0,4,0", "lanes must be from 1 to 32"},
        {"global_load,4,0,stride,1,0,4,0", "lanes must be from 1 to 32"},
        {"global_load,4,32,stride,1.5,0,4,0", "a must be from 0"},
        {"global_load,4,32,stride,-1,0,4,0", "a must be from 0"},
        {"global_load,4,32,stride,1,4097,4,0", "b must be from 0 to 4096"},
        {"global_load,4,32,stride,1,0,,0", "load_sectors must be"},
        {"global_store,4,32,stride,1,0,4,x", "store_sectors must be"},
    };
    const struct place *place = *state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct stride_probes p;
        struct error error;
        char text[512];
        snprintf(text, sizeof text, "%s%s\n", HEAD, cases[i].rows);
        write_bytes(place->path, text, strlen(text));
        const enum status status = stride_probes_read(&p, place->path, &error);
        if (!cases[i].message) {
            assert_int_equal(status, STATUS_OK);
            assert_int_equal(p.count, 1);
        } else if (status != STATUS_BAD_FILE || !strstr(error.text, cases[i].message) ||
                   strncmp(error.text, place->path, strlen(place->path)) != 0) {
            fail_msg("case %zu: %s", i, status ? error.text : "accepted");
        }
        stride_probes_free(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_probe_is_as_modelled),
        cmocka_unit_test(test_known_accesses),
        cmocka_unit_test_setup_teardown(test_files, make_place, remove_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
