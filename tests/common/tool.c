#define _GNU_SOURCE /* posix_spawn_file_actions_addchdir_np, asprintf */
#include "common/tool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <ftw.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/npy_files.h"
#include "core/dtype.h"

extern char **environ;

enum { MAX_WORDS = 64, MAX_PATHS = 256 };

int workplace_make(void **state)
{
    struct workplace *place = calloc(1, sizeof *place);
    const char *tmp = getenv("TMPDIR");
    *state = place;
    if (!place)
        return -1;
    snprintf(place->folder, sizeof place->folder, "%.200s/test_tool.XXXXXX",
             tmp ? tmp : "/tmp");
    return mkdtemp(place->folder) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info, (void)kind, (void)at;
    return remove(path);
}

int workplace_remove(void **state)
{
    struct workplace *place = *state;
    const int failed = nftw(place->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    free(place);
    return failed;
}

const char *workplace_path(const struct workplace *place, const char *name)
{
    static char path[600];
    snprintf(path, sizeof path, "%s/%s", place->folder, name);
    return path;
}

/* What nftw() has found: it gives its callback no argument of ours. */
static char *found[MAX_PATHS];
static int found_count;

static int note_one(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info;
    if (at->level == 0)
        return 0;
    if (found_count == MAX_PATHS)
        return -1;
    return asprintf(&found[found_count++], "%s%s\n", path, kind == FTW_DP ? "/" : "") < 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

char *workplace_listing(const struct workplace *place)
{
    char *listing = NULL;
    size_t size = 0;
    found_count = 0;
    assert_int_equal(nftw(place->folder, note_one, 8, FTW_DEPTH | FTW_PHYS), 0);
    qsort(found, (size_t)found_count, sizeof found[0], by_name);
    FILE *out = open_memstream(&listing, &size);
    assert_non_null(out);
    for (int i = 0; i < found_count; i++) {
        fputs(found[i] + strlen(place->folder) + 1, out);
        free(found[i]);
    }
    assert_int_equal(fclose(out), 0);
    return listing;
}

static char *read_all(FILE *file)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    rewind(file);
    for (int c = fgetc(file); c != EOF; c = fgetc(file))
        fputc(c, out);
    assert_int_equal(fclose(out), 0);
    fclose(file);
    return text;
}

void tool_run(struct tool_run *run, const struct workplace *place, const char *format, ...)
{
    char program[] = FLASHLAB_TOOL, text[4096];
    char *words[MAX_WORDS + 2] = {program};
    int count = 1, status;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    char *rest = text;
    for (char *word = strsep(&rest, " "); word && count <= MAX_WORDS; word = strsep(&rest, " "))
        words[count++] = word;

    FILE *out = tmpfile(), *err = tmpfile();
    pid_t child;
    posix_spawn_file_actions_t actions;
    assert_true(out && err);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addchdir_np(&actions, place->folder);
    posix_spawn_file_actions_adddup2(&actions, fileno(out), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, fileno(err), STDERR_FILENO);
    assert_int_equal(posix_spawn(&child, program, &actions, NULL, words, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    assert_int_equal(waitpid(child, &status, 0), child);
    run->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    run->out = read_all(out);
    run->err = read_all(err);
}

void tool_run_free(struct tool_run *run)
{
    free(run->out);
    free(run->err);
}

double sample(uint64_t index)
{
    uint64_t z = (index + 1) * UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return ((double)((z ^ z >> 31) % 33) - 16) / 8;
}

/* Writes the value as descr says at element index of data. */
static void encode(unsigned char *data, size_t index, const char *descr, double value)
{
    const float single = (float)value;
    if (strcmp(descr, "<f8") == 0)
        memcpy(data + 8 * index, &value, 8);
    else if (strcmp(descr, "<f4") == 0)
        memcpy(data + 4 * index, &single, 4);
    else
        dtype_encode(data + 2 * index, DTYPE_F16, &single, 1);
}

void write_array(const struct workplace *place, const struct array_file *file)
{
    char header[200];
    int used =
        snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': %s, 'shape': (",
                 file->descr, file->fortran ? "True" : "False");
    size_t total = 1;
    for (int d = 0; d < file->ndim; d++) {
        total *= (size_t)file->shape[d];
        used += snprintf(header + used, sizeof header - (size_t)used, "%d, ", file->shape[d]);
    }
    snprintf(header + used, sizeof header - (size_t)used, "), }");
    const size_t bytes = (size_t)(file->descr[2] - '0');
    unsigned char *data = calloc(total ? total : 1, bytes);
    assert_non_null(data);
    for (size_t e = 0; e < total; e++) {
        /* e counts in C order; at is the place in a file in Fortran order. */
        size_t index[4] = {0}, left = e, at = 0, step = 1;
        for (int d = file->ndim - 1; d >= 0; d--) {
            index[d] = left % (size_t)file->shape[d];
            left /= (size_t)file->shape[d];
        }
        for (int d = 0; d < file->ndim; d++) {
            at += index[d] * step;
            step *= (size_t)file->shape[d];
        }
        encode(data, file->fortran ? at : e, file->descr, sample(file->first + e));
    }
    struct image image = image_of(1, header, data, total * bytes);
    write_bytes(workplace_path(place, file->name), image.bytes, image.size);
    free(image.bytes);
    free(data);
}
