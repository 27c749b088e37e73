/* Pictures that users bring: PNG and PPM files, read into 8-bit RGB, cut and resized to what a
 * Vision Transformer reads.
 *
 * Interface:
 *   struct image image;
 *   image_read(&image, "cat.png", &error)          or image_parse() of bytes in memory
 *   image_square(square, &image, 224, &error)      the middle, resized, as floats
 *   image_free(&image)
 *
 * PNG of every kind is read by libpng: grey, palette, 16-bit, interlaced; what is transparent
 * shows white. PPM is P6 (binary) and P3 (text), up to 16 bits a sample. Anything else, a
 * broken or truncated file, and a size outside the bounds below are refused with a message that
 * names the file, what was found and what is allowed. Pixels are allocated only after the size
 * has been found to be within bounds.
 */
#ifndef FLASHLAB_LESSONS_VIT_IMAGE_H
#define FLASHLAB_LESSONS_VIT_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

/* Pixels of a side, at least and at most, and bytes of a file at most. */
enum { IMAGE_LEAST = 16, IMAGE_MOST = 4096, IMAGE_MOST_BYTES = 128 << 20 };

struct image {
    int width, height;
    unsigned char *rgb; /* (height, width, 3), owned: image_free() */
};

/* Reads a regular file. On failure *image is empty and *error says why. */
enum status image_read(struct image *image, const char *path, struct error *error);

/* Parses size bytes, the whole contents of a file; name appears in messages. */
enum status image_parse(struct image *image, const unsigned char *bytes, size_t size,
                        const char *name, struct error *error);

/* Safe on an empty image. */
void image_free(struct image *image);

/* square (side, side, 3) <- the largest square in the middle of the image, from 0 to 1, each
 * pixel the weighted mean of those below a triangle as wide as two pixels of the coarser grid:
 * bilinear where the image grows, without aliasing where it shrinks. */
enum status image_square(float *square, const struct image *image, int side,
                         struct error *error);

/* One format each, for image_parse(). The size has been checked for the first 8 bytes. */
enum status image_parse_png(struct image *image, const unsigned char *bytes, size_t size,
                            const char *name, struct error *error);
enum status image_parse_ppm(struct image *image, const unsigned char *bytes, size_t size,
                            const char *name, struct error *error);

/* Refuses a size out of bounds, else allocates the pixels. */
enum status image_alloc(struct image *image, int64_t width, int64_t height, const char *name,
                        struct error *error);

#endif
