/* PNG by libpng's simplified interface: every kind of PNG becomes 8-bit RGB, over white where
 * it is transparent. */
#include <png.h>
#include <stdbool.h>
#include <string.h>

#include "vit/image.h"

/* Whether the chunks lead to the last one: libpng does not look once it has the last row. A
 * chunk is its length, its type, that many bytes and a checksum. */
static bool has_end(const unsigned char *bytes, size_t size)
{
    size_t at = 8;
    while (size - at >= 12) {
        const unsigned char *chunk = bytes + at;
        const size_t length = (size_t)chunk[0] << 24 | (size_t)chunk[1] << 16 |
                              (size_t)chunk[2] << 8 | (size_t)chunk[3];
        if (memcmp(chunk + 4, "IEND", 4) == 0)
            return true;
        if (length > size - at - 12)
            return false;
        at += length + 12;
    }
    return false;
}

/* libpng's message may quote what is in the file. */
static enum status broken(png_image *png, const char *name, struct error *error)
{
    for (char *c = png->message; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
    error_format(error, STATUS_BAD_FILE, "%s: not a whole PNG: %s", name, png->message);
    png_image_free(png);
    return STATUS_BAD_FILE;
}

enum status image_parse_png(struct image *image, const unsigned char *bytes, size_t size,
                            const char *name, struct error *error)
{
    static const png_color white = {255, 255, 255};
    png_image png = {.version = PNG_IMAGE_VERSION};
    if (!png_image_begin_read_from_memory(&png, bytes, size))
        return broken(&png, name, error);
    png.format = PNG_FORMAT_RGB;
    png.flags |= PNG_IMAGE_FLAG_16BIT_sRGB; /* as 8-bit ones are, unless the file says other */
    if (image_alloc(image, png.width, png.height, name, error)) {
        png_image_free(&png);
        return error->status;
    }
    if (!png_image_finish_read(&png, &white, image->rgb, 0, NULL))
        return broken(&png, name, error);
    if (!has_end(bytes, size))
        return error_set(error, STATUS_BAD_FILE, "%s: not a whole PNG: its end is missing",
                         name);
    return STATUS_OK;
}
