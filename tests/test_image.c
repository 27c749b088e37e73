/* lessons/vit/image: every kind of PNG and PPM, every refusal, cutting and resizing.
 *
 * The PNG files are those of tests/fuzz/corpus/make_images.py, which wrote them without libpng.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/tool.h"
#include "vit/image.h"

#define PICTURES "tests/fuzz/corpus/image/"
#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

enum { WIDTH = 16, HEIGHT = 18 };

static int red(int x)
{
    return 16 * x;
}

static int green(int y)
{
    return 14 * y;
}

static int blue(int x, int y)
{
    return 7 * (x + y);
}

static void expect_pixel(const struct image *image, int x, int y, int r, int g, int b)
{
    const unsigned char *rgb = image->rgb + (ptrdiff_t)3 * (y * image->width + x);
    if (rgb[0] != r || rgb[1] != g || rgb[2] != b)
        fail_msg("pixel (%d, %d) is %d %d %d, not %d %d %d", x, y, rgb[0], rgb[1], rgb[2], r, g,
                 b);
}

/* Reads a picture of the corpus, which has WIDTH x HEIGHT pixels. */
static void read_picture(struct image *image, const char *name)
{
    char path[256];
    struct error error;
    snprintf(path, sizeof path, PICTURES "%s", name);
    if (image_read(image, path, &error))
        fail_msg("%s", error.text);
    assert_int_equal(image->width, WIDTH);
    assert_int_equal(image->height, HEIGHT);
}

static void test_png_in_colours(void **state)
{
    static const char *const names[] = {"rgb.png", "interlaced.png", "rgb16.png"};
    (void)state;
    for (size_t n = 0; n < LENGTH(names); n++) {
        struct image image;
        read_picture(&image, names[n]);
        for (int y = 0; y < HEIGHT; y++)
            for (int x = 0; x < WIDTH; x++)
                expect_pixel(&image, x, y, red(x), green(y), blue(x, y));
        image_free(&image);
    }
}

static void test_png_in_greys(void **state)
{
    static const char *const names[] = {"grey.png", "grey16.png"};
    (void)state;
    for (size_t n = 0; n < LENGTH(names); n++) {
        struct image image;
        read_picture(&image, names[n]);
        for (int y = 0; y < HEIGHT; y++)
            for (int x = 0; x < WIDTH; x++)
                expect_pixel(&image, x, y, red(x), red(x), red(x));
        image_free(&image);
    }
}

static void test_png_of_few_colours(void **state)
{
    struct image bits, palette;
    (void)state;
    read_picture(&bits, "bits.png");
    read_picture(&palette, "palette.png");
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++) {
            expect_pixel(&bits, x, y, x % 2 * 255, x % 2 * 255, x % 2 * 255);
            expect_pixel(&palette, x, y, 16 * x, 0, 255 - 16 * x);
        }
    image_free(&bits);
    image_free(&palette);
}

/* The left is transparent and shows white, the right opaque; what lies between is between. */
static void test_png_transparent(void **state)
{
    struct image image;
    (void)state;
    read_picture(&image, "alpha.png");
    for (int y = 0; y < HEIGHT; y++) {
        for (int x = 0; x < 4; x++)
            expect_pixel(&image, x, y, 255, 255, 255);
        for (int x = 4; x < 8; x++) {
            const int shown = image.rgb[3 * (y * WIDTH + x)];
            assert_in_range(shown, red(x) + 1, 254);
        }
        for (int x = 8; x < WIDTH; x++)
            expect_pixel(&image, x, y, red(x), green(y), blue(x, y));
    }
    image_free(&image);
}

/* A header, then samples (x + y + c) % (most + 1) of 16 x 17 pixels, in bytes or as text. */
static struct image parse_ppm(const char *header, int most, bool text)
{
    enum { ROWS = 17 };
    char *bytes = NULL;
    size_t size;
    struct image image;
    struct error error;
    FILE *stream = open_memstream(&bytes, &size);
    assert_non_null(stream);
    fputs(header, stream);
    for (int i = 0; i < WIDTH * ROWS * 3; i++) {
        const int sample = (i / 3 % WIDTH + i / 3 / WIDTH + i % 3) % (most + 1);
        if (text)
            fprintf(stream, "%d%c", sample, i % 7 == 6 ? '\n' : ' ');
        else if (most > 255)
            fprintf(stream, "%c%c", sample >> 8, sample & 255);
        else
            fputc(sample, stream);
    }
    fclose(stream);
    if (image_parse(&image, (unsigned char *)bytes, size, "x.ppm", &error))
        fail_msg("\"%s\": %s", header, error.text);
    free(bytes);
    assert_int_equal(image.width, WIDTH);
    assert_int_equal(image.height, ROWS);
    for (int y = 0; y < ROWS; y++)
        for (int x = 0; x < WIDTH; x++) {
            int expected[3];
            for (int c = 0; c < 3; c++)
                expected[c] = (int)lround((x + y + c) % (most + 1) * 255.0 / most);
            expect_pixel(&image, x, y, expected[0], expected[1], expected[2]);
        }
    return image;
}

static void test_ppm(void **state)
{
    static const struct {
        const char *header;
        int most;
        bool text;
    } cases[] = {
        {"P6 16 17 255\n", 255, false},
        {"P6\n16 17\n255 ", 255, false},
        {"P6\n# made by hand\n16# comments may be anywhere\n 17\t255\r", 255, false},
        {"P6 16 17 7\n", 7, false},
        {"P6 16 17 1\n", 1, false},
        {"P6 16 17 256\n", 256, false},
        {"P6 16 17 65535\n", 65535, false},
        {"P3 16 17 255\n", 255, true},
        {"P3\n#\n16 17 1000\n", 1000, true},
    };
    (void)state;
    for (size_t n = 0; n < LENGTH(cases); n++) {
        struct image image = parse_ppm(cases[n].header, cases[n].most, cases[n].text);
        image_free(&image);
    }
}

static void expect_refused(const unsigned char *bytes, size_t size, const char *found)
{
    struct image image;
    struct error error = {0};
    assert_int_equal(image_parse(&image, bytes, size, "x", &error), STATUS_BAD_FILE);
    assert_int_equal(error.status, STATUS_BAD_FILE);
    assert_null(image.rgb);
    if (strncmp(error.text, "x: ", 3) != 0 || !strstr(error.text, found))
        fail_msg("\"%s\" does not begin with \"x: \" and say \"%s\"", error.text, found);
}

/* Headers that are refused whatever follows, here 4096 bytes of 1. */
static void test_refused_ppm(void **state)
{
    static const struct {
        const char *header, *found;
    } cases[] = {
        {"P5 16 16 255\n", "neither a PNG nor a PPM"},
        {"BM 16 16 255\n", "neither a PNG nor a PPM"},
        {"\x89PNG\r\n\x1a ", "neither a PNG nor a PPM"},
        {"P6 sixteen 16 255\n", "no width, height and largest sample after P6"},
        {"P6 -16 16 255\n", "no width, height and largest sample"},
        {"P6 16 16 99999999999999999999\n", "no width, height and largest sample"},
        {"P3 16 16 # 255\n", "no width, height and largest sample after P3"},
        {"P6 15 16 255\n", "15 x 16 pixels; from 16 to 4096 a side"},
        {"P6 16 15 255\n", "16 x 15 pixels; from 16 to 4096 a side"},
        {"P6 4097 16 255\n", "4097 x 16 pixels; from 16 to 4096 a side"},
        {"P6 16 0 255\n", "16 x 0 pixels"},
        {"P6 1000000000 1000000000 255\n", "1000000000 x 1000000000 pixels"},
        {"P6 16 16 0\n", "largest sample is 0; from 1 to 65535"},
        {"P6 16 16 65536\n", "largest sample is 65536; from 1 to 65535"},
        {"P6 16 16 255\n", "need 768 bytes, the file has 4096"},
        {"P6 4096 4096 255\n", "need 50331648 bytes, the file has 4096"},
        {"P6 16 16 255", "no white space before the pixels"},
        {"P3 16 16 255\n1 2 3\n", "need 768 numbers; after 3 there is no more"},
        {"P3 16 16 255\n1 2 256\n", "sample 2 is 256; from 0 to 255"},
    };
    (void)state;
    for (size_t n = 0; n < LENGTH(cases); n++) {
        unsigned char bytes[4096 + 64];
        const size_t length = strlen(cases[n].header);
        memset(bytes, 1, sizeof bytes);
        memcpy(bytes, cases[n].header, length);
        expect_refused(bytes, length + 4096, cases[n].found);
    }
}

static void test_refused_samples(void **state)
{
    unsigned char bytes[13 + 768] = "P6 16 16 200\n";
    (void)state;
    bytes[13 + 5] = 201;
    expect_refused(bytes, sizeof bytes, "sample 5 is 201; from 0 to 200");
    bytes[13 + 5] = 200;
    expect_refused(bytes, sizeof bytes - 1, "need 768 bytes, the file has 767");
    expect_refused(bytes, 0, "the file is empty");
    expect_refused(bytes, 1, "neither a PNG nor a PPM");
}

/* The whole of a file. */
static unsigned char *slurp(const char *path, size_t *size)
{
    struct stat info;
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fstat(fileno(file), &info), 0);
    *size = (size_t)info.st_size;
    unsigned char *bytes = malloc(*size);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    fclose(file);
    return bytes;
}

/* Cut anywhere, or with a byte of its size or its pixels changed. */
static void test_refused_png(void **state)
{
    size_t size;
    unsigned char *bytes = slurp(PICTURES "interlaced.png", &size);
    (void)state;
    for (size_t cut = 8; cut < size - 4; cut++) /* the last checksum is not looked at */
        expect_refused(bytes, cut, "not a whole PNG");
    bytes[16] = 0x7f; /* the width, whose checksum is now wrong */
    expect_refused(bytes, size, "not a whole PNG");
    bytes[16] = 0;
    bytes[size / 2] ^= 1;
    expect_refused(bytes, size, "not a whole PNG");
    free(bytes);
}

static void expect_not_read(const char *path, const char *found)
{
    struct image image;
    struct error error = {0};
    assert_int_equal(image_read(&image, path, &error), STATUS_BAD_FILE);
    assert_null(image.rgb);
    if (strncmp(error.text, path, strlen(path)) != 0 || !strstr(error.text, found))
        fail_msg("\"%s\" does not name the file and say \"%s\"", error.text, found);
}

static void test_files(void **state)
{
    const struct workplace *place = *state;
    char path[300];
    expect_not_read("no/such/file.png", "No such file");
    expect_not_read("tests", "not a regular file");
    expect_not_read("/dev/zero", "not a regular file");
    snprintf(path, sizeof path, "%s", workplace_path(place, "pipe"));
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_not_read(path, "not a regular file");
    snprintf(path, sizeof path, "%s", workplace_path(place, "file"));
    const int file = open(path, O_CREAT | O_WRONLY, 0600);
    assert_true(file >= 0);
    expect_not_read(path, "the file is empty");
    assert_int_equal(ftruncate(file, (off_t)IMAGE_MOST_BYTES + 1), 0);
    expect_not_read(path, "134217729 bytes; at most 134217728");
    close(file);
}

/* An image of that size whose red is x, green y and blue 100. */
static struct image ramp(int width, int height)
{
    struct image image = {0};
    struct error error;
    assert_int_equal(image_alloc(&image, width, height, "x", &error), STATUS_OK);
    for (int i = 0; i < width * height; i++) {
        image.rgb[3 * i] = (unsigned char)(i % width);
        image.rgb[3 * i + 1] = (unsigned char)(i / width);
        image.rgb[3 * i + 2] = 100;
    }
    return image;
}

/* Resizes a ramp and frees it. */
static float *square_of(struct image image, int side)
{
    struct error error;
    float *square = malloc((size_t)side * (size_t)side * 3 * sizeof *square);
    assert_non_null(square);
    assert_int_equal(image_square(square, &image, side, &error), STATUS_OK);
    image_free(&image);
    return square;
}

static void expect_near(double value, double expected, const char *what, int x, int y)
{
    if (!(fabs(value - expected) <= 1e-4) /* roundings of floats below 255 */)
        fail_msg("%s of (%d, %d) is %g, not %g", what, x, y, value, expected);
}

/* Columns of a ramp that begins at left and whose pixels are scale of the square's wide; edge
 * pixels, which have fewer neighbours, are left out. */
static void expect_ramp(const float *square, int side, double left, double top, double scale,
                        int edge)
{
    for (int y = edge; y < side - edge; y++)
        for (int x = edge; x < side - edge; x++) {
            const float *rgb = square + (ptrdiff_t)3 * (y * side + x);
            expect_near((double)rgb[0] * 255, left + (x + 0.5) * scale - 0.5, "red", x, y);
            expect_near((double)rgb[1] * 255, top + (y + 0.5) * scale - 0.5, "green", x, y);
            expect_near((double)rgb[2] * 255, 100, "blue", x, y);
        }
}

static void test_square(void **state)
{
    float *square;
    (void)state;
    square = square_of(ramp(224, 224), 224); /* as it is */
    expect_ramp(square, 224, 0, 0, 1, 0);
    free(square);
    square = square_of(ramp(240, 200), 200); /* the middle of a wide one */
    expect_ramp(square, 200, 20, 0, 1, 0);
    free(square);
    square = square_of(ramp(101, 202), 101); /* of a high one; half a pixel goes to the end */
    expect_ramp(square, 101, 0, 50, 1, 0);
    free(square);
    square = square_of(ramp(250, 200), 100); /* smaller by 2 */
    expect_ramp(square, 100, 25, 0, 2, 1);
    free(square);
    square = square_of(ramp(210, 210), 84); /* by 2.5: a triangle that is not symmetrical */
    for (int i = 0; i < 84 * 84; i++)
        expect_near((double)square[3 * i + 2] * 255, 100, "blue", i % 84, i / 84);
    free(square);
    square = square_of(ramp(50, 50), 200); /* larger by 4: bilinear */
    expect_ramp(square, 200, 0, 0, 0.25, 2);
    free(square);
}

/* Stripes as fine as pixels become their mean, not stripes again: of three pixels to one, a
 * triangle gives one kind 5/9 and the other 4/9. */
static void test_no_aliasing(void **state)
{
    enum { SIDE = 53 };
    struct image image = ramp(3 * SIDE, 3 * SIDE);
    (void)state;
    for (int i = 0; i < 9 * SIDE * SIDE; i++)
        memset(image.rgb + (ptrdiff_t)3 * i, i % (3 * SIDE) % 2 ? 255 : 0, 3);
    float *square = square_of(image, SIDE);
    for (int y = 0; y < SIDE; y++)
        for (int x = 1; x < SIDE - 1; x++)
            expect_near((double)square[3 * (y * SIDE + x)], x % 2 ? 4 / 9.0 : 5 / 9.0, "red", x,
                        y);
    free(square);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_png_in_colours),
        cmocka_unit_test(test_png_in_greys),
        cmocka_unit_test(test_png_of_few_colours),
        cmocka_unit_test(test_png_transparent),
        cmocka_unit_test(test_ppm),
        cmocka_unit_test(test_refused_ppm),
        cmocka_unit_test(test_refused_samples),
        cmocka_unit_test(test_refused_png),
        cmocka_unit_test_setup_teardown(test_files, workplace_make, workplace_remove),
        cmocka_unit_test(test_square),
        cmocka_unit_test(test_no_aliasing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
