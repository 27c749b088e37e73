/* For the tests of core/npy: a folder for each test, and files made by hand.
 *
 * Interface:
 *   cmocka_unit_test_setup_teardown(test, make_place, remove_place) gives the test an empty
 *   folder (*state is its struct place) and fails if the test leaves a file there other than
 *   the one at place->path.
 */
#ifndef FLASHLAB_TESTS_NPY_FILES_H
#define FLASHLAB_TESTS_NPY_FILES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <unistd.h>

/* The folder of the running test, and a path in it that no file has yet. */
struct place {
    char folder[256];
    char path[300];
};

static inline int make_place(void **state)
{
    struct place *place = calloc(1, sizeof *place);
    const char *tmp = getenv("TMPDIR");
    *state = place;
    if (!place)
        return -1;
    snprintf(place->folder, sizeof place->folder, "%s/test_npy.XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(place->folder))
        return -1;
    snprintf(place->path, sizeof place->path, "%s/array.npy", place->folder);
    return 0;
}

/* Removes the folder; a file in it other than the test's own makes this, so the test, fail. */
static inline int remove_place(void **state)
{
    struct place *place = *state;
    remove(place->path);
    int left = rmdir(place->folder);
    free(place);
    return left;
}

static inline void write_bytes(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* A file of that version with that header; data_bytes of data, those at data or else 0x01. */
struct image {
    size_t size;
    unsigned char *bytes; /* free() */
};

static inline struct image image_of(int version, const char *header, const void *data,
                                    size_t data_bytes)
{
    size_t length = strlen(header), begin = version == 1 ? 10 : 12;
    struct image image = {begin + length + data_bytes, NULL};
    image.bytes = malloc(image.size);
    assert_non_null(image.bytes);
    memcpy(image.bytes, "\x93NUMPY", 6);
    image.bytes[6] = (unsigned char)version;
    image.bytes[7] = 0;
    for (size_t i = 8; i < begin; i++)
        image.bytes[i] = (unsigned char)(length >> 8 * (i - 8) & 0xff);
    memcpy(image.bytes + begin, header, length);
    if (data)
        memcpy(image.bytes + begin + length, data, data_bytes);
    else
        memset(image.bytes + begin + length, 0x01, data_bytes);
    return image;
}

#endif
