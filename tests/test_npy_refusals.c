/* core/npy: every file content that npy_read() and npy_parse() refuse, and what they say. */
#include "common/npy_files.h"
#include "core/npy.h"

/* Headers that are refused, what the message must say was found, and what is allowed. */
static const struct refusal {
    const char *header;
    size_t data_bytes;
    const char *found, *allowed;
} refusals[] = {
#define HEADER(descr, order, shape)                                                            \
    "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }"
#define SHAPE(shape) HEADER("'<f4'", "False", shape)
    {HEADER("'>f4'", "False", "(1,)"), 4, "'>f4'", "'<f2', '<f4' and '<f8'"},
    {HEADER("'=f4'", "False", "(1,)"), 4, "'=f4'", "'<f2', '<f4' and '<f8'"},
    {HEADER("'<i8'", "False", "(1,)"), 8, "'<i8'", "'<f2', '<f4' and '<f8'"},
    {HEADER("'<f4 '", "False", "(1,)"), 4, "'<f4 '", "'<f2', '<f4' and '<f8'"},
    {HEADER("'<f4' 'x'", "False", "(1,)"), 4, "'<f4' 'x'", "'<f2', '<f4' and '<f8'"},
    {HEADER("'<f\\x34'", "False", "(1,)"), 4, "'<f\\x34'", "'<f2', '<f4' and '<f8'"},
    {HEADER("[('a,}', '<f4')]", "False", "(1,)"), 4, "[('a,}', '<f4')]", "'<f2'"},
    {HEADER("3", "False", "(1,)"), 4, "descr is 3", "'<f2', '<f4' and '<f8'"},
    {HEADER("'<f4'", "1", "(1,)"), 4, "fortran_order is 1", "True or False"},
    {HEADER("'<f4'", "'True'", "(1,)"), 4, "fortran_order is 'True'", "True or False"},
    {HEADER("'<f4'", "Falsehood", "(1,)"), 4, "Falsehood", "True or False"},
    {SHAPE("5"), 20, "shape is 5", "tuple of non-negative integers"},
    {SHAPE("(5)"), 20, "shape is (5)", "tuple of non-negative integers"},
    {SHAPE("[5]"), 20, "shape is [5]", "tuple of non-negative integers"},
    {SHAPE("(5]"), 20, "shape is (5]", "tuple of non-negative integers"},
    {SHAPE("(-1, -5)"), 20, "shape is (-1, -5)", "tuple of non-negative integers"},
    {SHAPE("(5.0,)"), 20, "shape is (5.0,)", "tuple of non-negative integers"},
    {SHAPE("(05,)"), 20, "shape is (05,)", "tuple of non-negative integers"},
    {SHAPE("(1 5)"), 20, "shape is (1 5)", "tuple of non-negative integers"},
    {SHAPE("(1,, 5)"), 20, "shape is (1,, 5)", "tuple of non-negative integers"},
    {SHAPE("(,)"), 4, "shape is (,)", "tuple of non-negative integers"},
    {SHAPE("(5,) + ()"), 20, "shape is (5,) + ()", "tuple of non-negative integers"},
    {SHAPE("('5',)"), 20, "shape is ('5',)", "tuple of non-negative integers"},
    {SHAPE("None"), 4, "shape is None", "tuple of non-negative integers"},
    {SHAPE("(1, 1, 1, 1, 1, 1, 1, 1, 5)"), 20, "9 dimensions", "at most 8"},
    {SHAPE("(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)"), 4,
     "32 dimensions", "at most 8"},
    {SHAPE("(4294967296, 4294967296)"), 4, "(4294967296, 4294967296)", "at most 1152921504"},
    {SHAPE("(4611686018427387904,)"), 0, "(4611686018427387904,)", "at most 11529215046"},
    {SHAPE("(18446744073709551617,)"), 4, "(18446744073709551617,)", "at most 1152921504"},
    {SHAPE("(9999999999999999999,)"), 4, "(9999999999999999999,)", "at most 115292150"},
    {SHAPE("(0, 4294967296, 4294967296)"), 0, "(0, 4294967296, 42949", "at most 1152921504"},
    /* A terabyte that is not there. */
    {SHAPE("(1099511627776,)"), 20, "the file has 20", "needs 4398046511104 bytes"},
    {SHAPE("(2, 3)"), 23, "the file has 23", "needs 24 bytes"},
    {SHAPE("(2, 3)"), 25, "the file has 25", "needs 24 bytes"},
    {SHAPE("(2, 0)"), 1, "the file has 1", "needs 0 bytes"},
    {SHAPE("()"), 0, "the file has 0", "needs 4 bytes"},
    {HEADER("'<f2'", "False", "(3,)"), 12, "the file has 12", "needs 6 bytes"},
    {HEADER("'<f8'", "False", "(3,)"), 12, "the file has 12", "needs 24 bytes"},
    {"{'descr': '<f4', 'shape': ()}", 4, "\"{'descr': '<f4', 'sh", "no 'fortran_order'"},
    {"{'fortran_order': False, 'shape': ()}", 4, "\"{'fortran_order': F", "no 'descr'"},
    {"{'descr': '<f4', 'fortran_order': False}", 4, "\"{'descr': '<f4', 'f", "no 'shape'"},
    {"{}", 4, "\"{}\"", "no 'descr', it needs"},
    {"{'shape': (1,), 'shape': (2,)}", 4, "(1,) and (2,)", "'shape' twice"},
    {"{'descr': '<f4', 'Shape': ()}", 4, "'Shape'", "'fortran_order' and 'shape'"},
    {"", 4, "found its end", "expected '{'"},
    {"['descr', '<f4']", 4, "\"['descr', '<f4']\"", "expected '{'"},
    {"{'descr'", 4, "found its end", "expected ':'"},
    {"{'descr' '<f4'}", 4, "\"'<f4'}\"", "expected ':'"},
    {"{'descr': }", 4, "\"}\"", "expected a value"},
    {"{'descr': '<f4'", 4, "found its end", "expected ',' or '}'"},
    {"{'descr': '<f4}", 4, "found its end", "expected ',' or '}'"},
    {"{'descr': '<f4')}", 4, "\")}\"", "expected ',' or '}'"},
    {"{descr: '<f4'}", 4, "\"descr: '<f4'}\"", "expected a quoted key"},
    {"{'descr\": 4}", 4, "\"'descr\": 4}\"", "expected a quoted key"},
    {"{, 'descr': '<f4'}", 4, "\", 'descr': '<f4'}\"", "expected a quoted key"},
    {SHAPE("(1,)") "; import os", 4, "\"; import os\"", "nothing after '}'"},
#undef SHAPE
#undef HEADER
};

/* Contents that are refused before the header is looked at. */
static const struct raw_refusal {
    const char *bytes;
    size_t size;
    const char *found, *allowed;
} raw_refusals[] = {
#define RAW(text) (text), sizeof(text) - 1
    {RAW(""), "the file is empty", ""},
    {RAW("PK\x03\x04 an archive"), "\"PK\\x03\\x04 a\"", "\"\\x93NUMPY\""},
    {RAW("\x93NUMPY"), "6 bytes", "12 before the header"},
    {RAW("\x93NUM"), "4 bytes", "12 before the header"},
    {RAW("\x93NUx"), "\"\\x93NUx\"", "\"\\x93NUMPY\""},
    {RAW("\x93NUMPY\x01\x00\x76"), "9 bytes", "10 before the header"},
    {RAW("\x93NUMPY\x02\x00\x76\x00\x00"), "11 bytes", "12 before the header"},
    {RAW("\x93NUMPY\x01\x01\x02\x00{}"), "version 1.1", "1.0, 2.0 and 3.0"},
    {RAW("\x93NUMPY\x04\x00\x02\x00\x00\x00{}"), "version 4.0", "1.0, 2.0 and 3.0"},
    {RAW("\x93NUMPY\x00\x00\x02\x00{}"), "version 0.0", "1.0, 2.0 and 3.0"},
    {RAW("\x93NUMPY\x01\x00\x76\x00{'de"), "only 4 more", "should have 118 bytes"},
    {RAW("\x93NUMPY\x03\x00\xff\xff\xff\xff{}"), "only 2 more", "4294967295 bytes"},
#undef RAW
};

/* Both ways to read refuse the bytes with one message, which contains all that it should. */
static void expect_refused(const char *path, const void *bytes, size_t size, const char *found,
                           const char *allowed)
{
    struct npy array;
    struct error error, read_error;
    memset(&array, 0xff, sizeof array);
    if (npy_parse(&array, bytes, size, path, &error) != STATUS_BAD_FILE)
        fail_msg("not refused, expected \"%s\", \"%s\"", found, allowed);
    assert_int_equal(error.status, STATUS_BAD_FILE);
    if (!strstr(error.text, path) || !strstr(error.text, found) || !strstr(error.text, allowed))
        fail_msg("\"%s\" does not have \"%s\" and \"%s\"", error.text, found, allowed);
    assert_null(array.data);
    assert_int_equal(array.count, 0);
    npy_free(&array);

    write_bytes(path, bytes, size);
    assert_int_equal(npy_read(&array, path, &read_error), STATUS_BAD_FILE);
    assert_string_equal(read_error.text, error.text);
    assert_null(array.data);
}

static void test_refused_headers(void **state)
{
    const struct place *place = *state;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        const struct refusal *r = &refusals[i];
        for (int version = 1; version <= 3; version++) {
            struct image image = image_of(version, r->header, NULL, r->data_bytes);
            expect_refused(place->path, image.bytes, image.size, r->found, r->allowed);
            free(image.bytes);
        }
    }
}

static void test_refused_beginnings(void **state)
{
    const struct place *place = *state;
    for (size_t i = 0; i < sizeof raw_refusals / sizeof raw_refusals[0]; i++) {
        const struct raw_refusal *r = &raw_refusals[i];
        expect_refused(place->path, r->bytes, r->size, r->found, r->allowed);
    }
}

/* No file that ends early is read, wherever it ends. */
static void test_every_truncation(void **state)
{
    const struct place *place = *state;
    const char *header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n";
    struct npy array;
    struct error error;
    for (int version = 1; version <= 3; version++) {
        struct image image = image_of(version, header, NULL, 24);
        assert_int_equal(npy_parse(&array, image.bytes, image.size, "x", &error), STATUS_OK);
        npy_free(&array);
        for (size_t size = 0; size < image.size; size++) {
            /* A copy of exactly that size, so that a sanitizer sees a read past its end. */
            unsigned char *cut = malloc(size + (size == 0));
            assert_non_null(cut);
            memcpy(cut, image.bytes, size);
            expect_refused(place->path, cut, size, size ? "truncated" : "empty", "");
            free(cut);
        }
        free(image.bytes);
    }
}

/* A header longer than version 1.0 can express is refused, the longest such one is not. */
static void test_long_headers(void **state)
{
    const struct place *place = *state;
    const char *dict = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}";
    enum { LONGEST = 65535 };
    static char header[LONGEST + 2];
    struct npy array;
    struct error error;
    memset(header, ' ', LONGEST + 1);
    memcpy(header, dict, strlen(dict));
    struct image image = image_of(2, header, NULL, 4);
    expect_refused(place->path, image.bytes, image.size, "65536 bytes", "at most 65535");
    free(image.bytes);
    header[LONGEST] = '\0';
    for (int version = 1; version <= 3; version++) {
        image = image_of(version, header, NULL, 4);
        write_bytes(place->path, image.bytes, image.size);
        free(image.bytes);
        assert_int_equal(npy_read(&array, place->path, &error), STATUS_OK);
        assert_int_equal(array.count, 1);
        npy_free(&array);
    }
}

/* Values that are long and not printable are cut and escaped, the message stays one line. */
static void test_quoted_values_are_cut_and_escaped(void **state)
{
    const struct place *place = *state;
    char header[] = "{'descr': ####################################################"
                    "##################################################, 'fortran_order': "
                    "False, 'shape': ()}";
    char expected[4 * 80 + 30] = "descr is ";
    for (char *c = strchr(header, '#'); *c == '#'; c++)
        *c = '\v';
    for (int i = 0; i < 80; i++)
        strcat(expected, "\\x0b");
    strcat(expected, "..., allowed");
    struct image image = image_of(3, header, NULL, 4);
    expect_refused(place->path, image.bytes, image.size, expected, "");
    free(image.bytes);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_place, remove_place)
    const struct CMUnitTest tests[] = {
        TEST(test_refused_headers),
        TEST(test_refused_beginnings),
        TEST(test_every_truncation),
        TEST(test_long_headers),
        TEST(test_quoted_values_are_cut_and_escaped),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
