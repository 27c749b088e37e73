#include "core/machine_file.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/machine_figures.h"

/* Where the reader is. The machine of the block is machines[count - 1]. */
struct reader {
    const char *file;
    struct error *error;
    struct machine *machines;
    int most, count;
    int line;                  /* from 1 */
    int header;                /* the line of the block's name */
    int line_of[FIGURE_COUNT]; /* where the block has the figure; 0: nowhere */
    int line_of_note;
};

/* Refuses the file because of a line; gives STATUS_BAD_FILE. */
static enum status __attribute__((format(printf, 3, 4)))
refuse(const struct reader *r, int line, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return error_set(r->error, STATUS_BAD_FILE, "%s:%d: %s", r->file, line, text);
}

/* Cuts blanks off both ends, in place; returns where the text begins now. */
static char *trim(char *text)
{
    text += strspn(text, " ");
    size_t length = strlen(text);
    while (length > 0 && text[length - 1] == ' ')
        length--;
    text[length] = '\0';
    return text;
}

/* What is not a comment is to be ASCII, because messages quote it. Tabs become blanks. */
static enum status check_bytes(const struct reader *r, char *line)
{
    const size_t outside = strcspn(line, "#");
    for (size_t i = 0; line[i]; i++) {
        const unsigned char c = (unsigned char)line[i];
        const bool text = (c >= ' ' && c <= '~') || (c > 0x7f && i > outside);
        if (!text && c != '\t')
            return refuse(r, r->line, "byte %zu is 0x%02x: must be text%s", i + 1, c,
                          c > 0x7f ? ", in ASCII outside comments" : "");
        if (c == '\t')
            line[i] = ' ';
    }
    return STATUS_OK;
}

static enum status missing(const struct reader *r, const struct machine *m,
                           enum machine_figure f)
{
    char allowed[FIGURE_ALLOWED_SIZE];
    return refuse(r, r->header, "[%s]: %s is missing: must be %s", m->name,
                  machine_figures[f].key, machine_figure_allowed(allowed, f));
}

/* Refuses figures that cannot both be true. Both are known. */
static enum status contradiction(const struct reader *r, enum machine_figure f,
                                 enum machine_figure g, const char *must)
{
    char one[FIGURE_TEXT_SIZE], other[FIGURE_TEXT_SIZE];
    const struct machine *m = &r->machines[r->count - 1];
    return refuse(r, r->line_of[f], "%s = %s: must be %s %s = %s of line %d",
                  machine_figures[f].key, machine_figure_format(one, m, f), must,
                  machine_figures[g].key, machine_figure_format(other, m, g), r->line_of[g]);
}

/* Bits of an address say which sector of which line it is in. */
static enum status check_powers_of_two(const struct reader *r)
{
    static const enum machine_figure figures[] = {FIGURE_L2_LINE, FIGURE_L2_SECTOR};
    const struct machine *m = &r->machines[r->count - 1];
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        const enum machine_figure f = figures[i];
        const int64_t bytes = (int64_t)machine_figure_get(m, f);
        char text[FIGURE_TEXT_SIZE];
        if ((bytes & (bytes - 1)) != 0)
            return refuse(r, r->line_of[f], "%s = %s: must be a power of two",
                          machine_figures[f].key, machine_figure_format(text, m, f));
    }
    return STATUS_OK;
}

static enum status check_figures(const struct reader *r)
{
    static const struct {
        enum machine_figure f, g;
        enum { AT_MOST, MULTIPLE, AT_MOST_A_WARP_EACH } rule;
    } rules[] = {
        {FIGURE_SRAM_PER_BLOCK, FIGURE_SRAM_PER_SM, AT_MOST},
        {FIGURE_L2_SIZE, FIGURE_HBM_SIZE, AT_MOST},
        {FIGURE_L2_SECTOR, FIGURE_L2_LINE, AT_MOST},
        {FIGURE_L2_SIZE, FIGURE_L2_LINE, MULTIPLE},
        {FIGURE_WARPS_PER_SM, FIGURE_THREADS_PER_SM, AT_MOST_A_WARP_EACH},
        {FIGURE_BLOCKS_PER_SM, FIGURE_WARPS_PER_SM, AT_MOST},
        {FIGURE_THREADS_PER_BLOCK, FIGURE_THREADS_PER_SM, AT_MOST},
    };
    const struct machine *m = &r->machines[r->count - 1];
    if (check_powers_of_two(r))
        return r->error->status;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        const int64_t f = (int64_t)machine_figure_get(m, rules[i].f);
        const int64_t g = (int64_t)machine_figure_get(m, rules[i].g);
        if (f == 0 || g == 0)
            continue;
        if (rules[i].rule == AT_MOST && f > g)
            return contradiction(r, rules[i].f, rules[i].g, "at most");
        if (rules[i].rule == MULTIPLE && f % g != 0)
            return contradiction(r, rules[i].f, rules[i].g, "a multiple of");
        if (rules[i].rule == AT_MOST_A_WARP_EACH && f > g / WARP_THREADS)
            return contradiction(r, rules[i].f, rules[i].g, "at most a 32nd of");
    }
    if (m->register_bytes % 4 != 0)
        return refuse(r, r->line_of[FIGURE_REGISTERS_PER_SM],
                      "registers_per_sm = %lld B: must be a multiple of the 4 of a register",
                      (long long)m->register_bytes);
    return STATUS_OK;
}

/* The block is complete: the next begins, or the file ends. */
static enum status end_block(const struct reader *r)
{
    if (r->count == 0)
        return STATUS_OK;
    for (int f = 0; f < FIGURE_COUNT; f++)
        if (machine_figures[f].required && r->line_of[f] == 0)
            return missing(r, &r->machines[r->count - 1], (enum machine_figure)f);
    return check_figures(r);
}

/* "[NAME]": line has the bracket that opens. */
static enum status begin_block(struct reader *r, char *line)
{
    static const char characters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                     "0123456789-_";
    if (end_block(r))
        return r->error->status;
    char *name = line + 1;
    const size_t length = strspn(name, characters);
    if (length < 1 || length >= MACHINE_NAME_SIZE || strcmp(name + length, "]") != 0)
        return refuse(r, r->line, "%.60s: must be [NAME], of 1 to %d letters, digits, - and _",
                      line, MACHINE_NAME_SIZE - 1);
    name[length] = '\0';
    for (int i = 0; i < r->count; i++)
        if (strcasecmp(r->machines[i].name, name) == 0)
            return refuse(r, r->line, "[%s]: must be another name than that of machine %d",
                          name, i + 1);
    if (r->count == r->most)
        return refuse(r, r->line, "[%s]: must be the end: the file may have %d machine%s", name,
                      r->most, r->most == 1 ? "" : "s");
    struct machine *m = &r->machines[r->count++];
    memset(m, 0, sizeof *m);
    memcpy(m->name, name, length + 1);
    memset(r->line_of, 0, sizeof r->line_of);
    r->line_of_note = 0;
    r->header = r->line;
    return STATUS_OK;
}

static enum status twice(const struct reader *r, const char *key, int line)
{
    return refuse(r, r->line, "%s: must be given once, line %d has it", key, line);
}

static enum status read_note(struct reader *r, const char *value)
{
    struct machine *m = &r->machines[r->count - 1];
    if (r->line_of_note > 0)
        return twice(r, "note", r->line_of_note);
    if (*value == '\0' || strlen(value) >= sizeof m->note)
        return refuse(r, r->line, "note = %.60s: must be a text of 1 to %zu bytes", value,
                      sizeof m->note - 1);
    strcpy(m->note, value);
    r->line_of_note = r->line;
    return STATUS_OK;
}

static enum status read_figure(struct reader *r, enum machine_figure f, const char *value,
                               const char *source)
{
    struct machine *m = &r->machines[r->count - 1];
    char allowed[FIGURE_ALLOWED_SIZE];
    double number;
    if (r->line_of[f] > 0)
        return twice(r, machine_figures[f].key, r->line_of[f]);
    if (!machine_figure_parse(&number, f, value))
        return refuse(r, r->line, "%s = %.60s: must be %s", machine_figures[f].key, value,
                      machine_figure_allowed(allowed, f));
    if (strlen(source) >= sizeof m->source[f])
        return refuse(r, r->line, "%s: the source after # must have at most %zu bytes",
                      machine_figures[f].key, sizeof m->source[f] - 1);
    machine_figure_set(m, f, number);
    strcpy(m->source[f], source);
    r->line_of[f] = r->line;
    return STATUS_OK;
}

/* "key = value  # source" */
static enum status read_entry(struct reader *r, char *line, const char *source)
{
    char *equals = strchr(line, '=');
    if (!equals)
        return refuse(r, r->line, "%.60s: must be [NAME], key = value or # a comment", line);
    *equals = '\0';
    const char *key = trim(line), *value = trim(equals + 1);
    if (r->count == 0)
        return refuse(r, r->line, "%.60s: must come after the [NAME] of a machine", key);
    if (strcmp(key, "note") == 0)
        return read_note(r, value);
    for (int f = 0; f < FIGURE_COUNT; f++)
        if (strcmp(key, machine_figures[f].key) == 0)
            return read_figure(r, (enum machine_figure)f, value, source);
    return refuse(r, r->line, "%.60s: unknown key; `flashlab machines H200` has them all", key);
}

static enum status read_line(struct reader *r, char *line)
{
    static char nothing[] = "";
    if (check_bytes(r, line))
        return r->error->status;
    char *comment = strchr(line, '#');
    if (comment)
        *comment++ = '\0';
    line = trim(line);
    if (*line == '\0')
        return STATUS_OK;
    if (*line == '[')
        return begin_block(r, line);
    return read_entry(r, line, trim(comment ? comment : nothing));
}

static enum status read_lines(struct reader *r, const char *text)
{
    while (*text) {
        char line[MACHINE_MOST_LINE + 1];
        const size_t length = strcspn(text, "\n");
        size_t used = length; /* without the \r of files from Windows */
        if (used > 0 && text[used - 1] == '\r')
            used--;
        r->line++;
        if (used > MACHINE_MOST_LINE)
            return refuse(r, r->line, "the line has %zu bytes: must be at most %d", used,
                          MACHINE_MOST_LINE);
        memcpy(line, text, used);
        line[used] = '\0';
        if (read_line(r, line))
            return r->error->status;
        text += length + (text[length] == '\n');
    }
    if (r->count == 0)
        return refuse(r, r->line, "the file ends: must have a machine, [NAME]");
    return end_block(r);
}

enum status machine_file_parse(struct machine *machines, int most, int *count, const char *text,
                               const char *name, struct error *error)
{
    struct reader reader = {.file = name, .error = error, .machines = machines, .most = most};
    *count = 0;
    if (read_lines(&reader, text))
        return error->status;
    *count = reader.count;
    return STATUS_OK;
}
