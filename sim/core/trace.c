#include "core/trace.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* A block's records until its turn to hand them over comes. */
struct step_list {
    struct step_list *next;
    struct step_record record;
    float values[]; /* m, l and o_norm of the record */
};

static void append(struct thread_block *b, struct step_list *step)
{
    CHECK(step, "no host memory for a trace record");
    if (b->steps)
        b->last_step->next = step;
    else
        b->steps = step;
    b->last_step = step;
}

static struct step_record record_of(const struct thread_block *b, const char *step, int i,
                                    int j)
{
    struct step_record record = {
        .kernel = b->launch->name, .block = {b->x, b->y, b->z}, .i = i, .j = j, .step = step};
    for (int t = 0; t < b->gpu->tensor_count; t++) {
        record.read_bytes += b->counters.tensor[t].of[DIRECTION_READ].bytes;
        record.written_bytes += b->counters.tensor[t].of[DIRECTION_WRITE].bytes;
        record.reduced_bytes += b->counters.tensor[t].of[DIRECTION_REDUCE].bytes;
    }
    return record;
}

void block_step(struct thread_block *b, const char *step, int i, int j)
{
    if (!b->gpu->trace)
        return;
    struct step_list *list = calloc(1, sizeof *list);
    append(b, list);
    list->record = record_of(b, step, i, j);
}

static double row_norm(const struct tile *tile, size_t row)
{
    double square = 0;
    for (size_t c = 0; c < (size_t)tile->cols; c++) {
        const double value = tile->data[row * (size_t)tile->cols + c];
        square += value * value;
    }
    return sqrt(square);
}

/* tile NULL: not known, in any number of rows. */
static void check_rows(const struct thread_block *b, const struct tile *tile, int rows)
{
    CHECK(!tile || (rows > 0 && rows <= tile->rows), "%s: statistics of %d rows of tile %s",
          b->launch->name, rows, tile->name);
}

void block_step_rows(struct thread_block *b, const char *step, int i, int j, int rows,
                     const struct tile *m, const struct tile *l, const struct tile *O)
{
    if (!b->gpu->trace)
        return;
    CHECK(!m == !l && (m || O), "%s: rows have m and l, O or all three", b->launch->name);
    if (!(m ? m : O)->data) {
        block_step(b, step, i, j);
        return;
    }
    check_rows(b, m, rows);
    check_rows(b, l, rows);
    check_rows(b, O, rows);
    const size_t n = (size_t)rows;
    struct step_list *list = calloc(1, sizeof *list + 3 * n * sizeof(float));
    append(b, list);
    list->record = record_of(b, step, i, j);
    list->record.rows = rows;
    list->record.m = list->values;
    list->record.l = list->values + n;
    list->record.o_norm = list->values + 2 * n;
    for (size_t r = 0; r < n; r++) {
        list->record.m[r] = m ? m->data[r] : NAN;
        list->record.l[r] = l ? l->data[r] : NAN;
        list->record.o_norm[r] = O ? (float)row_norm(O, r) : NAN;
    }
}

void step_list_flush(struct thread_block *b)
{
    while (b->steps) {
        struct step_list *first = b->steps;
        b->gpu->trace->record(b->gpu->trace->context, &first->record);
        b->steps = first->next;
        free(first);
    }
}

static void write_floats(FILE *out, const char *key, const float *values, int count)
{
    fprintf(out, ",\"%s\":[", key);
    for (int i = 0; i < count; i++) {
        const double value = (double)values[i];
        const char *comma = i > 0 ? "," : "";
        if (isfinite(value))
            fprintf(out, "%s%.9g", comma, value);
        else
            fprintf(out, "%s\"%s\"", comma, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
    }
    fputc(']', out);
}

void trace_write_json(void *context, const struct step_record *record)
{
    FILE *out = context;
    fprintf(out, "{\"kernel\":\"%s\",\"block\":[%d,%d,%d],\"i\":%d,\"j\":%d,\"step\":\"%s\"",
            record->kernel, record->block[0], record->block[1], record->block[2], record->i,
            record->j, record->step);
    fprintf(out,
            ",\"read_bytes\":%" PRId64 ",\"written_bytes\":%" PRId64
            ",\"reduced_bytes\":%" PRId64,
            record->read_bytes, record->written_bytes, record->reduced_bytes);
    if (record->rows > 0) {
        write_floats(out, "m", record->m, record->rows);
        write_floats(out, "l", record->l, record->rows);
        write_floats(out, "o_norm", record->o_norm, record->rows);
    }
    fputs("}\n", out);
}
