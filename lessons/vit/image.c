#include "vit/image.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/input_file.h"

enum status image_alloc(struct image *image, int64_t width, int64_t height, const char *name,
                        struct error *error)
{
    if (width < IMAGE_LEAST || width > IMAGE_MOST || height < IMAGE_LEAST ||
        height > IMAGE_MOST)
        return error_set(error, STATUS_BAD_FILE,
                         "%s: %" PRId64 " x %" PRId64 " pixels; from %d to %d a side are "
                         "allowed",
                         name, width, height, IMAGE_LEAST, IMAGE_MOST);
    image->rgb = malloc((size_t)width * (size_t)height * 3);
    if (!image->rgb)
        return error_set(error, STATUS_OUT_OF_MEMORY, "%s: no memory for its pixels", name);
    image->width = (int)width;
    image->height = (int)height;
    return STATUS_OK;
}

enum status image_parse(struct image *image, const unsigned char *bytes, size_t size,
                        const char *name, struct error *error)
{
    enum status status;
    *image = (struct image){0};
    if (size == 0)
        return error_set(error, STATUS_BAD_FILE, "%s: the file is empty", name);
    if (size >= 8 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0)
        status = image_parse_png(image, bytes, size, name, error);
    else if (size >= 8 && bytes[0] == 'P' && (bytes[1] == '3' || bytes[1] == '6'))
        status = image_parse_ppm(image, bytes, size, name, error);
    else
        return error_set(error, STATUS_BAD_FILE,
                         "%s: neither a PNG nor a PPM file (P6 or P3), which are allowed",
                         name);
    if (status)
        image_free(image);
    return status;
}

enum status image_read(struct image *image, const char *path, struct error *error)
{
    int file;
    size_t size;
    unsigned char *bytes = NULL;
    *image = (struct image){0};
    if (input_file_open(&file, &size, path, error))
        return error->status;
    enum status status =
        size > IMAGE_MOST_BYTES
            ? error_set(error, STATUS_BAD_FILE, "%s: %zu bytes; at most %d are allowed", path,
                        size, IMAGE_MOST_BYTES)
            : input_file_read(&bytes, file, size, path, error);
    close(file);
    if (!status)
        status = image_parse(image, bytes, size, path, error);
    free(bytes);
    return status;
}

void image_free(struct image *image)
{
    free(image->rgb);
    *image = (struct image){0};
}

/* out[x * step_out + c] for side pixels x <- the line in[x * step_in + c] of length pixels. */
static void resize_line(float *out, int side, size_t step_out, const float *in, int length,
                        size_t step_in)
{
    const double scale = (double)length / side, reach = fmax(scale, 1.0);
    for (int x = 0; x < side; x++) {
        const double centre = (x + 0.5) * scale - 0.5;
        const int first = (int)fmax(ceil(centre - reach), 0);
        const int last = (int)fmin(floor(centre + reach), length - 1);
        double sum[3] = {0}, weights = 0;
        for (int i = first; i <= last; i++) {
            const double weight = 1 - fabs(i - centre) / reach;
            weights += weight;
            for (int c = 0; c < 3; c++)
                sum[c] += weight * (double)in[(size_t)i * step_in + (size_t)c];
        }
        for (int c = 0; c < 3; c++)
            out[(size_t)x * step_out + (size_t)c] = (float)(sum[c] / weights);
    }
}

/* Rows first, then columns. */
enum status image_square(float *square, const struct image *image, int side,
                         struct error *error)
{
    const int cut = image->width < image->height ? image->width : image->height;
    const int left = (image->width - cut) / 2, top = (image->height - cut) / 2;
    const size_t row = (size_t)side * 3;
    float *line = malloc((size_t)cut * 3 * sizeof *line);
    float *narrow = malloc((size_t)cut * row * sizeof *narrow);
    if (!line || !narrow) {
        free(line);
        free(narrow);
        return error_set(error, STATUS_OUT_OF_MEMORY, "no memory to resize %d x %d pixels", cut,
                         cut);
    }
    for (int y = 0; y < cut; y++) {
        const unsigned char *rgb =
            image->rgb + ((size_t)(top + y) * (size_t)image->width + (size_t)left) * 3;
        for (int i = 0; i < cut * 3; i++)
            line[i] = (float)rgb[i] / 255.0f;
        resize_line(narrow + (size_t)y * row, side, 3, line, cut, 3);
    }
    for (int x = 0; x < side; x++)
        resize_line(square + (size_t)x * 3, side, row, narrow + (size_t)x * 3, cut, row);
    free(line);
    free(narrow);
    return STATUS_OK;
}
