/* Fuzzer of image_parse(): any bytes are either refused with a message, or give an image within
 * the bounds, whose square has all its pixels between 0 and 1. Seeds are in
 * tests/fuzz/corpus/image.
 */
#include <stdint.h>
#include <string.h>

#include "vit/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_refused(const struct image *image, enum status status,
                          const struct error *error)
{
    CHECK(status == STATUS_BAD_FILE, "status %d", (int)status);
    CHECK(error->status == status, "status %d in the error, %d returned", (int)error->status,
          (int)status);
    CHECK(strncmp(error->text, "seed: ", 6) == 0, "no name in \"%s\"", error->text);
    CHECK(!image->rgb && image->width == 0 && image->height == 0, "a refused image");
    /* Whatever was in the file, the message is one printable line. */
    for (const char *c = error->text; *c; c++)
        CHECK(*c >= ' ' && *c <= '~', "byte 0x%02x in the message", (unsigned char)*c);
}

static void check_accepted(const struct image *image)
{
    enum { SIDE = 14 };
    static float square[SIDE * SIDE * 3];
    struct error error;
    CHECK(image->width >= IMAGE_LEAST && image->width <= IMAGE_MOST, "width %d", image->width);
    CHECK(image->height >= IMAGE_LEAST && image->height <= IMAGE_MOST, "height %d",
          image->height);
    memset(square, 0xff, sizeof square); /* NaN */
    CHECK(image_square(square, image, SIDE, &error) == STATUS_OK, "%s", error.text);
    for (int i = 0; i < SIDE * SIDE * 3; i++)
        CHECK(square[i] >= 0.0f && square[i] <= 1.000001f, "pixel %d is %g", i,
              (double)square[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct image image;
    struct error error;
    const enum status status = image_parse(&image, bytes, size, "seed", &error);
    if (status == STATUS_OK)
        check_accepted(&image);
    else
        check_refused(&image, status, &error);
    image_free(&image);
    return 0;
}
