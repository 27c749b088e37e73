/* PPM, as pbmplus' ppm(5) describes it: magic number, width, height, largest sample, pixels. */
#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>

#include "vit/image.h"

struct text {
    const unsigned char *at, *end;
};

/* White space, and comments from # to the end of their line. */
static void skip_space(struct text *t)
{
    for (; t->at < t->end && (isspace(*t->at) || *t->at == '#'); t->at++)
        if (*t->at == '#')
            while (t->at + 1 < t->end && *t->at != '\n')
                t->at++;
}

/* The next number; -1 if there is none, or one beyond all that could be meant. */
static int64_t next_number(struct text *t)
{
    enum { TOO_MUCH = 1000000000 };
    int64_t number = 0;
    skip_space(t);
    if (t->at == t->end || !isdigit(*t->at))
        return -1;
    for (; t->at < t->end && isdigit(*t->at); t->at++) {
        number = 10 * number + (*t->at - '0');
        if (number > TOO_MUCH)
            return -1;
    }
    return number;
}

static unsigned char to_8_bits(int64_t sample, int64_t most)
{
    return (unsigned char)((sample * 255 + most / 2) / most);
}

static enum status bad_sample(int64_t sample, int64_t index, int64_t most, const char *name,
                              struct error *error)
{
    return error_set(error, STATUS_BAD_FILE,
                     "%s: sample %" PRId64 " is %" PRId64 "; from 0 to %" PRId64 " is allowed",
                     name, index, sample, most);
}

static enum status read_binary(struct image *image, struct text *t, int64_t most,
                               const char *name, struct error *error)
{
    const int64_t count = (int64_t)image->width * image->height * 3;
    const int64_t bytes = most > 255 ? 2 : 1;
    if (t->end - t->at != count * bytes)
        return error_set(error, STATUS_BAD_FILE,
                         "%s: %d x %d pixels need %" PRId64 " bytes, the file has %td", name,
                         image->width, image->height, count * bytes, t->end - t->at);
    for (int64_t i = 0; i < count; i++) {
        const int64_t sample = bytes == 1 ? t->at[i] : t->at[2 * i] * 256 + t->at[2 * i + 1];
        if (sample > most)
            return bad_sample(sample, i, most, name, error);
        image->rgb[i] = to_8_bits(sample, most);
    }
    return STATUS_OK;
}

static enum status read_text(struct image *image, struct text *t, int64_t most,
                             const char *name, struct error *error)
{
    const int64_t count = (int64_t)image->width * image->height * 3;
    for (int64_t i = 0; i < count; i++) {
        const int64_t sample = next_number(t);
        if (sample < 0)
            return error_set(error, STATUS_BAD_FILE,
                             "%s: %d x %d pixels need %" PRId64 " numbers; after %" PRId64
                             " there is no more",
                             name, image->width, image->height, count, i);
        if (sample > most)
            return bad_sample(sample, i, most, name, error);
        image->rgb[i] = to_8_bits(sample, most);
    }
    skip_space(t);
    if (t->at != t->end)
        return error_set(error, STATUS_BAD_FILE, "%s: %td bytes after the last pixel", name,
                         t->end - t->at);
    return STATUS_OK;
}

enum status image_parse_ppm(struct image *image, const unsigned char *bytes, size_t size,
                            const char *name, struct error *error)
{
    struct text t = {bytes + 2, bytes + size};
    const bool binary = bytes[1] == '6';
    const int64_t width = next_number(&t), height = next_number(&t), most = next_number(&t);
    if (width < 0 || height < 0 || most < 0)
        return error_set(error, STATUS_BAD_FILE,
                         "%s: no width, height and largest sample after P%c", name, bytes[1]);
    if (most < 1 || most > 65535)
        return error_set(error, STATUS_BAD_FILE,
                         "%s: the largest sample is %" PRId64 "; from 1 to 65535 is allowed",
                         name, most);
    if (image_alloc(image, width, height, name, error))
        return error->status;
    if (!binary)
        return read_text(image, &t, most, name, error);
    if (t.at == t.end || !isspace(*t.at))
        return error_set(error, STATUS_BAD_FILE, "%s: no white space before the pixels", name);
    t.at++; /* exactly one: the pixels may begin with what looks like more */
    return read_binary(image, &t, most, name, error);
}
