#include "common/kernel_lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/kernel_report.h"
#include "common/report.h"
#include "common/text_file.h"

enum { MOST_SOURCE = 1 << 20 };

static bool same_row(const struct cpu_line *a, const struct cpu_line *b)
{
    return a->line == b->line && a->shared == b->shared && a->way == b->way &&
           strcmp(a->file, b->file) == 0 && strcmp(a->array, b->array) == 0;
}

/* Launches of one run share lines of the file only through functions that they share. */
static void add(struct kernel_lines *k, const struct cpu_line *line)
{
    int at = 0;
    while (at < k->count && !same_row(&k->line[at], line))
        at++;
    if (at < k->count) {
        cpu_traffic_add(&k->line[at].traffic, &line->traffic);
        k->line[at].uneven |= line->uneven;
        return;
    }
    CHECK(k->count < CPU_MAX_LINES, "%s: more than %d lines", k->file, CPU_MAX_LINES);
    k->line[k->count++] = *line;
}

/* HBM first, loads first. */
static int compare(const void *a, const void *b)
{
    const struct cpu_line *x = a, *y = b;
    const int files = strcmp(x->file, y->file);
    if (files != 0)
        return files;
    if (x->line != y->line)
        return x->line - y->line;
    if (x->shared != y->shared)
        return x->shared - y->shared;
    return x->way != y->way ? (int)x->way - (int)y->way : strcmp(x->array, y->array);
}

enum status kernel_lines_make(struct kernel_lines *k, const struct kernel_run *run,
                              const char *root, struct error *error)
{
    char path[4096];
    *k = (struct kernel_lines){.count = 0};
    snprintf(k->file, sizeof k->file, "cuda/kernels/%s.cu", cpu_kernel_name(run->run.kernel));
    snprintf(path, sizeof path, "%s/%s", root, k->file);
    if (text_file_read(&k->source, path, MOST_SOURCE, error)) {
        error_prefix(error, "--lines: ");
        return error->status;
    }
    for (int n = 0; n < run->counts->launches; n++)
        for (int i = 0; i < run->counts->launch[n].lines; i++)
            add(k, &run->counts->launch[n].line[i]);
    qsort(k->line, (size_t)k->count, sizeof *k->line, compare);
    return STATUS_OK;
}

static void print_row(const struct cpu_line *row)
{
    const struct cpu_traffic *t = &row->traffic;
    const int64_t units = row->shared ? t->wavefronts : t->sectors;
    char x[3][32];
    printf("   > %-6s %-13s %13s requests %14s %-10s %5.1f /request", kernel_way_name(row->way),
           row->array, report_grouped(x[0], t->requests), report_grouped(x[1], units),
           row->shared ? "wavefronts" : "sectors", (double)units / (double)t->requests);
    if (row->shared)
        printf(" %10s conflicts", report_grouped(x[2], kernel_conflicts(t)));
    else
        printf("  %5.1f %% efficient", kernel_efficiency(t));
    printf("%s\n", row->uneven ? ", uneven" : "");
}

static void print_source(const struct kernel_lines *k)
{
    const char *at = k->source;
    for (int number = 1; *at; number++) {
        const size_t length = strcspn(at, "\n");
        printf("%4d%s%.*s\n", number, length > 0 ? "  " : "", (int)length, at);
        for (int i = 0; i < k->count; i++)
            if (k->line[i].line == number && strcmp(k->line[i].file, k->file) == 0)
                print_row(&k->line[i]);
        at += length + (at[length] == '\n');
    }
}

void kernel_lines_print(const struct kernel_lines *k)
{
    const struct cpu_line *previous = NULL;
    printf("\n%s; below each line what it moves: requests of warps;\n"
           "of HBM, sectors of 32 bytes, and which part of them lanes asked for (above 100 %%: "
           "lanes share elements);\nof shared memory, wavefronts, which are passes over its "
           "banks, and conflicts, those beyond the fewest.\n\n",
           k->file);
    print_source(k);
    for (int i = 0; i < k->count; i++) {
        const struct cpu_line *row = &k->line[i];
        if (strcmp(row->file, k->file) == 0)
            continue;
        if (!previous)
            printf("\nThrough other files:\n");
        if (!previous || strcmp(previous->file, row->file) != 0 || previous->line != row->line)
            printf("%s:%d\n", row->file, row->line);
        print_row(row);
        previous = row;
    }
    for (int i = 0; i < k->count; i++) {
        if (k->line[i].uneven) {
            printf(
                "\nuneven: some lanes of a warp came here more often than others, in rounds of "
                "a "
                "loop\nthat others left out, perhaps: requests may be others than a GPU's.\n");
            return;
        }
    }
}

cJSON *kernel_lines_json(const struct kernel_lines *k)
{
    cJSON *lines = cJSON_CreateArray();
    for (int i = 0; i < k->count; i++) {
        const struct cpu_line *row = &k->line[i];
        cJSON *object = cJSON_CreateObject();
        cJSON_AddItemToArray(lines, object);
        cJSON_AddStringToObject(object, "file", row->file);
        report_add_integer(object, "line", row->line);
        cJSON_AddStringToObject(object, "memory", row->shared ? "shared" : "hbm");
        cJSON_AddStringToObject(object, "array", row->array);
        cJSON_AddStringToObject(object, "way", kernel_way_name(row->way));
        kernel_report_add_traffic(object, &row->traffic, row->shared);
        cJSON_AddBoolToObject(object, "uneven", row->uneven);
    }
    return lines;
}

void kernel_lines_free(struct kernel_lines *k)
{
    free(k->source);
    k->source = NULL;
}
