/* core/npy: round trips, versions, types, orders; the files that are read and written; writes
 * that fail. Refused contents are in test_npy_refusals.c.
 *
 * Floats are compared as bytes, which also tells NaN and -0 apart.
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/npy_files.h"
#include "core/npy.h"

/* Parses that file and checks shape and elements. */
static void expect_array(int version, const char *header, const void *data, size_t data_bytes,
                         int ndim, const int64_t *shape, const float *expected, int64_t count)
{
    struct npy array;
    struct error error;
    struct image image = image_of(version, header, data, data_bytes);
    if (npy_parse(&array, image.bytes, image.size, "x.npy", &error) != STATUS_OK)
        fail_msg("%s", error.text);
    free(image.bytes);
    assert_int_equal(array.ndim, ndim);
    assert_memory_equal(array.shape, shape, (size_t)ndim * sizeof *shape);
    assert_int_equal(array.count, count);
    assert_memory_equal(array.data, expected, (size_t)count * sizeof *expected);
    npy_free(&array);
}

/* Distinct values, a NaN, an infinity and -0 among them when there are that many. */
static void fill(float *data, int64_t count)
{
    const float special[] = {NAN, -INFINITY, -0.0f, 1e-40f};
    for (int64_t i = 0; i < count; i++)
        data[i] = i >= 5 && i < 9 ? special[i - 5] : (float)i * 0.37f - 2.5f;
}

static void test_round_trips(void **state)
{
    const struct place *place = *state;
    static const struct {
        int ndim;
        int64_t shape[NPY_MAX_DIMS];
        int64_t count, nonfinite;
    } cases[] = {
        {0, {0}, 1, 0},
        {1, {5}, 5, 0},
        {1, {6}, 6, 1},
        {1, {0}, 0, 0},
        {2, {37, 53}, 37 * 53, 2},
        {3, {2, 0, 3}, 0, 0},
        {3, {INT64_C(1) << 59, 0, 1}, 0, 0},
        {4, {2, 3, 5, 7}, 210, 2},
        {8, {1, 2, 1, 3, 1, 2, 1, 2}, 24, 2},
        /* The longest header: seven powers of 10 with 25 digits. */
        {8, {0, 1000, 1000, 1000, 1000, 100, 100, 100}, 0, 0},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        float data[37 * 53];
        struct npy array;
        struct error error;
        fill(data, cases[c].count);
        if (npy_write(place->path, cases[c].count ? data : NULL, cases[c].ndim, cases[c].shape,
                      &error) != STATUS_OK ||
            npy_read(&array, place->path, &error) != STATUS_OK)
            fail_msg("case %zu: %s", c, error.text);
        assert_int_equal(array.ndim, cases[c].ndim);
        assert_memory_equal(array.shape, cases[c].shape, sizeof array.shape);
        assert_int_equal(array.count, cases[c].count);
        assert_int_equal(array.nonfinite, cases[c].nonfinite);
        assert_non_null(array.data);
        assert_memory_equal(array.data, data, (size_t)array.count * sizeof *data);
        npy_free(&array);
        assert_null(array.data);
        npy_free(&array);
    }
}

/* The file that NumPy 2.4.6 makes of np.save(f, np.array([[1, -2, 0.5], [3, 4, 5]], '<f4')). */
static void test_writes_what_numpy_writes(void **state)
{
    const struct place *place = *state;
    static const char numpy[128 + 24 + 1] =
        "\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }     "
        "                                                     \n"
        "\x00\x00\x80\x3f\x00\x00\x00\xc0\x00\x00\x00\x3f"
        "\x00\x00\x40\x40\x00\x00\x80\x40\x00\x00\xa0\x40";
    const float data[] = {1, -2, 0.5f, 3, 4, 5};
    const int64_t shape[] = {2, 3};
    char written[sizeof numpy];
    struct error error;
    assert_int_equal(npy_write(place->path, data, 2, shape, &error), STATUS_OK);
    FILE *file = fopen(place->path, "rb");
    assert_non_null(file);
    assert_int_equal(fread(written, 1, sizeof written, file), sizeof numpy - 1);
    fclose(file);
    assert_memory_equal(written, numpy, sizeof numpy - 1);
    struct stat info;
    mode_t mask = umask(0);
    umask(mask);
    assert_int_equal(stat(place->path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0666 & ~mask);
}

/* Every way to write the same dict that a Python program might produce. */
static void test_versions_and_spellings(void **state)
{
    (void)state;
    static const char *const headers[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }          \n",
        "{'descr':'<f4','fortran_order':False,'shape':(2,3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3,), }\n",
        "{\"shape\": (2, 3), \"fortran_order\": False, \"descr\": \"<f4\"}\n",
        " { 'fortran_order' :\tFalse\n, 'descr' : '<f4' , 'shape' : ( 2 , 3 , ) , } \r\n",
    };
    const float data[] = {0.1f, 2, -3, NAN, -INFINITY, 6};
    const int64_t shape[] = {2, 3};
    for (size_t h = 0; h < sizeof headers / sizeof headers[0]; h++) {
        for (int version = 1; version <= 3; version++)
            expect_array(version, headers[h], data, sizeof data, 2, shape, data, 6);
    }
    const int64_t one = 1;
    expect_array(1, "{'descr': '<f4', 'fortran_order': True, 'shape': ()}", data, 4, 0, NULL,
                 data, 1);
    expect_array(1, "{'descr': '<f4', 'fortran_order': True, 'shape': ( 1,)}", data, 4, 1, &one,
                 data, 1);
}

static void test_half(void **state)
{
    (void)state;
    /* Longer than the chunks it is decoded in; 0x3c00 + m is 1 + m/1024. */
    enum { COUNT = 2500 };
    uint16_t bits[COUNT] = {0x0001, 0x7bff, 0xc000, 0x7c00, 0x8000, 0x03ff};
    float expected[COUNT] = {0x1p-24f, 65504, -2, INFINITY, -0.0f, 0x3ffp-24f};
    for (int i = 6; i < COUNT; i++) {
        bits[i] = (uint16_t)(0x3c00 + i * 7 % 1024);
        expected[i] = 1 + (float)(i * 7 % 1024) / 1024;
    }
    const int64_t shape[] = {50, 50};
    /* One header is even, one odd: the data are not always aligned. */
    expect_array(1, "{'descr': '<f2', 'fortran_order': False, 'shape': (50, 50)}", bits,
                 sizeof bits, 2, shape, expected, COUNT);
    expect_array(3, "{'descr': '<f2', 'fortran_order': False, 'shape': (50, 50)} ", bits,
                 sizeof bits, 2, shape, expected, COUNT);
}

static void test_double_rounds_to_float(void **state)
{
    (void)state;
    const double data[] = {0.1,    1 + 0x1p-24, 1 + 0x1p-24 + 0x1p-50, 1 + 0x3p-24, -1e300,
                           1e-320, 0x1p-149,    0x1.fffffefp127};
    const float expected[] = {0.1f,      1, 1 + 0x1p-23f, 1 + 0x1p-22f,
                              -INFINITY, 0, 0x1p-149f,    0x1.fffffep127f};
    const int64_t shape = 8;
    const char *header = "{'descr': '<f8', 'fortran_order': False, 'shape': (8,)}";
    expect_array(2, header, data, sizeof data, 1, &shape, expected, 8);
    expect_array(2, header, data, sizeof data, 1, &shape, expected, 8);

    struct npy array;
    struct error error;
    struct image image = image_of(1, header, data, sizeof data);
    assert_int_equal(npy_parse(&array, image.bytes, image.size, "x", &error), STATUS_OK);
    assert_int_equal(array.nonfinite, 1);
    npy_free(&array);
    free(image.bytes);
}

/* The element at [i][j][k][l] is the number "ijkl", wherever it is in the file. */
static void test_fortran_order(void **state)
{
    (void)state;
    double data[2 * 3 * 4 * 5];
    int at = 0;
    for (int l = 0; l < 5; l++)
        for (int k = 0; k < 4; k++)
            for (int j = 0; j < 3; j++)
                for (int i = 0; i < 2; i++)
                    data[at++] = 1000 * i + 100 * j + 10 * k + l;
    struct npy array;
    struct error error;
    struct image image =
        image_of(1, "{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3, 4, 5), }", data,
                 sizeof data);
    assert_int_equal(npy_parse(&array, image.bytes, image.size, "x", &error), STATUS_OK);
    free(image.bytes);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 4; k++)
                for (int l = 0; l < 5; l++)
                    assert_int_equal(array.data[((i * 3 + j) * 4 + k) * 5 + l],
                                     1000 * i + 100 * j + 10 * k + l);
    npy_free(&array);

    const float columns[] = {11, 21, 12, 22, 13, 23}, rows[] = {11, 12, 13, 21, 22, 23};
    const int64_t shape[] = {2, 3}, empty[] = {3, 0};
    expect_array(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", columns,
                 sizeof columns, 2, shape, rows, 6);
    expect_array(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (3, 0), }", NULL, 0, 2,
                 empty, rows, 0);
}

static void expect_unreadable(const char *path, const char *reason)
{
    struct npy array;
    struct error error;
    memset(&array, 0xff, sizeof array);
    assert_int_equal(npy_read(&array, path, &error), STATUS_BAD_FILE);
    assert_int_equal(error.status, STATUS_BAD_FILE);
    if (!strstr(error.text, path) || !strstr(error.text, reason))
        fail_msg("\"%s\" does not name \"%s\" and \"%s\"", error.text, path, reason);
    assert_null(array.data);
    assert_int_equal(array.count, 0);
}

static void test_unreadable_files(void **state)
{
    const struct place *place = *state;
    expect_unreadable(place->path, strerror(ENOENT));
    expect_unreadable(place->folder, "a directory");
    expect_unreadable("/dev/null", "a device or pipe");
    assert_int_equal(mkfifo(place->path, 0666), 0);
    expect_unreadable(place->path, "a device or pipe"); /* and does not wait for a writer */
    assert_int_equal(remove(place->path), 0);
    write_bytes(place->path, "", 0);
    expect_unreadable(place->path, "the file is empty");
    if (geteuid() != 0) { /* root may read everything */
        assert_int_equal(chmod(place->path, 0), 0);
        expect_unreadable(place->path, strerror(EACCES));
    }
}

/* A hundred terabytes, all of them a hole: refused by its first bytes, without reading on. */
static void test_huge_file_of_another_kind(void **state)
{
    const struct place *place = *state;
    write_bytes(place->path, "\x93NUMPZ", 6);
    if (truncate(place->path, INT64_C(100) << 40) != 0 &&
        truncate(place->path, INT64_C(1) << 40) != 0)
        skip();
    expect_unreadable(place->path, "NUMPZ");
}

static void expect_write_fails(const char *path, int ndim, const int64_t *shape,
                               enum status status, const char *reason)
{
    static const float data[64 * 1024];
    struct error error;
    assert_int_equal(npy_write(path, data, ndim, shape, &error), status);
    assert_int_equal(error.status, status);
    if (!strstr(error.text, path) || !strstr(error.text, reason))
        fail_msg("\"%s\" does not name \"%s\" and \"%s\"", error.text, path, reason);
}

static void test_refused_requests(void **state)
{
    const struct place *place = *state;
    const int64_t good[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1}, negative[] = {3, -7};
    const int64_t huge[] = {INT64_MAX / 8, 2};
    expect_write_fails(place->path, -1, good, STATUS_BAD_ARGUMENT, "-1 dimensions");
    expect_write_fails(place->path, 9, good, STATUS_BAD_ARGUMENT, "9 dimensions");
    expect_write_fails(place->path, 2, negative, STATUS_BAD_ARGUMENT, "-7");
    expect_write_fails(place->path, 2, huge, STATUS_BAD_ARGUMENT,
                       "at most 1152921504606846975");
    assert_int_equal(access(place->path, F_OK), -1);
}

/* Places that cannot be written to. remove_place() sees to it that nothing was left there. */
static void test_unwritable_places(void **state)
{
    const struct place *place = *state;
    const int64_t shape = 3;
    char path[700];
    snprintf(path, sizeof path, "%s/missing/x.npy", place->folder);
    expect_write_fails(path, 1, &shape, STATUS_BAD_FILE, strerror(ENOENT));
    write_bytes(place->path, "", 0);
    snprintf(path, sizeof path, "%s/x.npy", place->path);
    expect_write_fails(path, 1, &shape, STATUS_BAD_FILE, strerror(ENOTDIR));
    expect_write_fails(place->folder, 1, &shape, STATUS_BAD_FILE, "a directory");
    /* Here only rename() fails: the temporary file's name is short. */
    snprintf(path, sizeof path, "%s/%0300d", place->folder, 0);
    expect_write_fails(path, 1, &shape, STATUS_BAD_FILE, strerror(ENAMETOOLONG));
    if (geteuid() != 0) { /* root may write everywhere */
        assert_int_equal(chmod(place->folder, 0555), 0);
        expect_write_fails(place->path, 1, &shape, STATUS_BAD_FILE, strerror(EACCES));
        assert_int_equal(chmod(place->folder, 0755), 0);
    }
}

/* As root, rename() would turn /dev/null into a file. The test uses a pipe of its own: if it
 * fails, no device of the machine is lost. */
static void test_special_files_are_not_replaced(void **state)
{
    const struct place *place = *state;
    const int64_t shape = 3;
    struct stat info;
    assert_int_equal(mkfifo(place->path, 0666), 0);
    expect_write_fails(place->path, 1, &shape, STATUS_BAD_FILE, "a device or pipe");
    assert_int_equal(stat(place->path, &info), 0);
    assert_true(S_ISFIFO(info.st_mode));
}

/* A limit on the size of files stands in for a full disk. */
static void test_full_disk_keeps_the_old_file(void **state)
{
    const struct place *place = *state;
    const float old[] = {1, 2, 3};
    const int64_t old_shape = 3;
    /* The first fits stdio's buffer, so only fclose() meets the limit. */
    const int64_t shapes[] = {10, 64 * 1024};
    struct error error;
    struct npy array;
    assert_int_equal(npy_write(place->path, old, 1, &old_shape, &error), STATUS_OK);
    struct rlimit limit, tight;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    tight = limit;
    tight.rlim_cur = 150;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    for (size_t s = 0; s < 2; s++) {
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
        enum status status;
        static const float data[64 * 1024];
        status = npy_write(place->path, data, 1, &shapes[s], &error);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        assert_int_equal(status, STATUS_BAD_FILE);
        assert_non_null(strstr(error.text, place->path));
        assert_non_null(strstr(error.text, strerror(EFBIG)));
        assert_int_equal(npy_read(&array, place->path, &error), STATUS_OK);
        assert_int_equal(array.count, 3);
        assert_memory_equal(array.data, old, sizeof old);
        npy_free(&array);
    }
    signal(SIGXFSZ, handler);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_place, remove_place)
    const struct CMUnitTest tests[] = {
        TEST(test_round_trips),
        TEST(test_writes_what_numpy_writes),
        TEST(test_versions_and_spellings),
        TEST(test_half),
        TEST(test_double_rounds_to_float),
        TEST(test_fortran_order),
        TEST(test_unreadable_files),
        TEST(test_huge_file_of_another_kind),
        TEST(test_refused_requests),
        TEST(test_unwritable_places),
        TEST(test_special_files_are_not_replaced),
        TEST(test_full_disk_keeps_the_old_file),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
