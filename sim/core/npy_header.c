/* Parsing and writing the headers of .npy files. The format is described in npy_header.h.
 *
 * The dict literal is parsed in two steps: parse_dict() splits it into the texts of its three
 * values, which are then read one by one. So a refusal can quote the whole value, whatever it
 * is.
 *
 * Source: NumPy's format description (numpy.lib.format).
 */
#include "core/npy_header.h"

#include <stdio.h>
#include <string.h>

static const char magic[6] = {'\x93', 'N', 'U', 'M', 'P', 'Y'};

static const struct {
    const char *descr;
    size_t bytes;
} elements[NPY_ELEMENT_COUNT] = {{"<f2", 2}, {"<f4", 4}, {"<f8", 8}};

/* Bytes not yet consumed, inside a header that someone else owns. */
struct text {
    const char *at, *end;
};

/* Where messages go, and the file that they name. */
struct report {
    const char *name;
    struct error *error;
};

enum key { KEY_DESCR, KEY_FORTRAN_ORDER, KEY_SHAPE, KEY_COUNT };
static const char *const key_names[KEY_COUNT] = {"descr", "fortran_order", "shape"};
#define KEYS_ALLOWED "'descr', 'fortran_order' and 'shape'"

/* The bytes made printable and cut, to be quoted in a message: "PK\x03\x04". */
struct excerpt {
    char text[4 * 80 + sizeof "..."];
};

static struct excerpt excerpt_of(const void *bytes, size_t size)
{
    struct excerpt excerpt;
    char *to = excerpt.text;
    const unsigned char *from = bytes;
    size_t shown = size < 80 ? size : 80;
    for (size_t i = 0; i < shown; i++) {
        if (from[i] >= ' ' && from[i] <= '~')
            *to++ = (char)from[i];
        else
            to += sprintf(to, "\\x%02x", from[i]);
    }
    strcpy(to, size > shown ? "..." : "");
    return excerpt;
}

static struct excerpt excerpt_of_text(struct text t)
{
    return excerpt_of(t.at, (size_t)(t.end - t.at));
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f';
}

static void skip_space(struct text *t)
{
    while (t->at < t->end && is_space(*t->at))
        t->at++;
}

/* Not isdigit(): that one follows the locale. */
static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Consumes the character c if it is next. */
static bool take(struct text *t, char c)
{
    if (t->at == t->end || *t->at != c)
        return false;
    t->at++;
    return true;
}

/* Consumes a quoted string; *inside is what is between the quotes. Escapes are not decoded: no
 * key or type that is accepted has one. */
static bool take_string(struct text *t, struct text *inside)
{
    if (t->at == t->end || (*t->at != '\'' && *t->at != '"'))
        return false;
    const char *begin = t->at + 1;
    const char *close = memchr(begin, *t->at, (size_t)(t->end - begin));
    if (!close)
        return false;
    *inside = (struct text){begin, close};
    t->at = close + 1;
    return true;
}

/* Consumes any value, up to the ',' or closing bracket that ends it: brackets nest, and
 * strings hide all of these. */
static struct text take_value(struct text *t)
{
    struct text value = {t->at, t->at};
    int64_t depth = 0;
    char quote = '\0';
    for (; t->at < t->end; t->at++) {
        char c = *t->at;
        if (quote) {
            if (c == '\\' && t->at + 1 < t->end)
                t->at++;
            else if (c == quote)
                quote = '\0';
        } else if (c == '\'' || c == '"') {
            quote = c;
        } else if (c == '(' || c == '[' || c == '{') {
            depth++;
        } else if (c == ')' || c == ']' || c == '}') {
            if (depth-- == 0)
                break;
        } else if (depth == 0 && c == ',') {
            break;
        }
    }
    value.end = t->at;
    while (value.end > value.at && is_space(value.end[-1]))
        value.end--;
    return value;
}

static bool text_is(struct text t, const char *word)
{
    size_t size = (size_t)(t.end - t.at);
    return size == strlen(word) && memcmp(t.at, word, size) == 0;
}

static enum status syntax_error(struct report to, const char *expected, struct text rest)
{
    if (rest.at == rest.end)
        return error_set(to.error, STATUS_BAD_FILE,
                         "%s: the header is not a dict literal: expected %s, found its end",
                         to.name, expected);
    return error_set(to.error, STATUS_BAD_FILE,
                     "%s: the header is not a dict literal: expected %s, found \"%s\"", to.name,
                     expected, excerpt_of_text(rest).text);
}

/* Consumes "'key': value" and stores the value's text under its key. */
static enum status parse_entry(struct text values[KEY_COUNT], struct text *t, struct report to)
{
    struct text name;
    if (!take_string(t, &name))
        return syntax_error(to, "a quoted key", *t);
    skip_space(t);
    if (!take(t, ':'))
        return syntax_error(to, "':' after a key", *t);
    skip_space(t);
    struct text rest = *t;
    struct text value = take_value(t);
    if (value.at == value.end)
        return syntax_error(to, "a value after ':'", rest);
    for (int key = 0; key < KEY_COUNT; key++) {
        if (!text_is(name, key_names[key]))
            continue;
        if (values[key].at)
            return error_set(
                to.error, STATUS_BAD_FILE, "%s: the header has '%s' twice: %s and %s", to.name,
                key_names[key], excerpt_of_text(values[key]).text, excerpt_of_text(value).text);
        values[key] = value;
        return STATUS_OK;
    }
    return error_set(to.error, STATUS_BAD_FILE,
                     "%s: the header has the unknown key '%s'; allowed are " KEYS_ALLOWED,
                     to.name, excerpt_of_text(name).text);
}

/* Splits the header into the texts of its values. */
static enum status parse_dict(struct text values[KEY_COUNT], struct text header,
                              struct report to)
{
    struct text t = header;
    skip_space(&t);
    if (!take(&t, '{'))
        return syntax_error(to, "'{'", t);
    for (;;) {
        skip_space(&t);
        if (take(&t, '}'))
            break;
        enum status status = parse_entry(values, &t, to);
        if (status != STATUS_OK)
            return status;
        if (!take(&t, ',') && (t.at == t.end || *t.at != '}'))
            return syntax_error(to, "',' or '}'", t);
    }
    skip_space(&t);
    if (t.at != t.end)
        return syntax_error(to, "nothing after '}'", t);
    for (int key = 0; key < KEY_COUNT; key++) {
        if (!values[key].at)
            return error_set(to.error, STATUS_BAD_FILE,
                             "%s: the header has no '%s', it needs " KEYS_ALLOWED
                             "; it is \"%s\"",
                             to.name, key_names[key], excerpt_of_text(header).text);
    }
    return STATUS_OK;
}

/* Consumes an integer as Python writes it: no sign, no leading zero. One that exceeds int64_t
 * becomes INT64_MAX, which npy_count_elements() refuses. */
static bool take_integer(struct text *t, int64_t *value)
{
    const char *begin = t->at;
    *value = 0;
    for (; t->at < t->end && is_digit(*t->at); t->at++) {
        if (*value > (INT64_MAX - 9) / 10)
            *value = INT64_MAX;
        else
            *value = *value * 10 + (*t->at - '0');
    }
    return t->at - begin == 1 || (t->at > begin && *begin != '0');
}

bool npy_count_elements(int64_t *count, int ndim, const int64_t *shape)
{
    int64_t product = 1;
    bool empty = false;
    for (int d = 0; d < ndim; d++) {
        if (shape[d] == 0)
            empty = true;
        else if (shape[d] > NPY_MAX_ELEMENTS / product)
            return false;
        else
            product *= shape[d];
    }
    *count = empty ? 0 : product;
    return true;
}

/* Consumes "()", "(2,)", "(2, 3)" or "(2, 3,)"; false at anything else. Dimensions past
 * NPY_MAX_DIMS are counted, not stored. */
static bool take_tuple(struct text *t, int64_t *ndim, int64_t shape[NPY_MAX_DIMS])
{
    if (!take(t, '('))
        return false;
    bool comma = true;
    *ndim = 0;
    for (skip_space(t); !take(t, ')'); skip_space(t)) {
        int64_t dim;
        if (!comma || !take_integer(t, &dim))
            return false;
        if (*ndim < NPY_MAX_DIMS)
            shape[*ndim] = dim;
        *ndim += 1;
        skip_space(t);
        comma = take(t, ',');
    }
    /* "(2)" is a number in parentheses. */
    return t->at == t->end && (comma || *ndim != 1);
}

static enum status parse_shape(struct npy_header *h, struct text value, struct report to)
{
    int64_t ndim;
    struct text t = value;
    if (!take_tuple(&t, &ndim, h->shape))
        return error_set(to.error, STATUS_BAD_FILE,
                         "%s: shape is %s, it must be a tuple of non-negative integers",
                         to.name, excerpt_of_text(value).text);
    if (ndim > NPY_MAX_DIMS)
        return error_set(to.error, STATUS_BAD_FILE,
                         "%s: shape %s has %lld dimensions, at most %d are allowed", to.name,
                         excerpt_of_text(value).text, (long long)ndim, NPY_MAX_DIMS);
    h->ndim = (int)ndim;
    if (!npy_count_elements(&h->count, h->ndim, h->shape))
        return error_set(to.error, STATUS_BAD_FILE,
                         "%s: shape %s has too many elements, at most %lld are allowed",
                         to.name, excerpt_of_text(value).text, (long long)NPY_MAX_ELEMENTS);
    return STATUS_OK;
}

static enum status parse_element(enum npy_element *element, struct text value, struct report to)
{
    struct text t = value, descr;
    if (take_string(&t, &descr) && t.at == t.end) {
        for (int i = 0; i < NPY_ELEMENT_COUNT; i++) {
            *element = (enum npy_element)i;
            if (text_is(descr, elements[i].descr))
                return STATUS_OK;
        }
    }
    return error_set(to.error, STATUS_BAD_FILE,
                     "%s: descr is %s, allowed are '<f2', '<f4' and '<f8'; convert the array "
                     "with .astype('<f4')",
                     to.name, excerpt_of_text(value).text);
}

static enum status parse_order(bool *fortran, struct text value, struct report to)
{
    *fortran = text_is(value, "True");
    if (*fortran || text_is(value, "False"))
        return STATUS_OK;
    return error_set(to.error, STATUS_BAD_FILE,
                     "%s: fortran_order is %s, it must be True or False", to.name,
                     excerpt_of_text(value).text);
}

/* Checks magic and version, and finds the header among the file's size bytes. */
static enum status find_header(struct text *header, const char *bytes, size_t size,
                               struct report to)
{
    if (size == 0)
        return error_set(to.error, STATUS_BAD_FILE, "%s: the file is empty", to.name);
    if (memcmp(bytes, magic, size < sizeof magic ? size : sizeof magic) != 0)
        return error_set(to.error, STATUS_BAD_FILE,
                         "%s: not a .npy file: it begins with \"%s\", not \"\\x93NUMPY\"",
                         to.name,
                         excerpt_of(bytes, size < sizeof magic ? size : sizeof magic).text);
    const unsigned char *u = (const unsigned char *)bytes;
    if (size >= 8 && (u[6] < 1 || u[6] > 3 || u[7] != 0))
        return error_set(to.error, STATUS_BAD_FILE,
                         "%s: format version %d.%d, allowed are 1.0, 2.0 and 3.0", to.name,
                         u[6], u[7]);
    size_t begin = size >= 8 && u[6] == 1 ? 10 : 12;
    if (size < begin)
        return error_set(to.error, STATUS_BAD_FILE,
                         "%s: truncated: the file has %zu bytes, less than the %zu before the "
                         "header",
                         to.name, size, begin);
    size_t length = u[8] | (size_t)u[9] << 8;
    if (begin == 12)
        length |= (size_t)u[10] << 16 | (size_t)u[11] << 24;
    if (length > size - begin)
        return error_set(to.error, STATUS_BAD_FILE,
                         "%s: truncated: the header should have %zu bytes, the file has only "
                         "%zu more",
                         to.name, length, size - begin);
    if (length > NPY_LONGEST_HEADER)
        return error_set(to.error, STATUS_BAD_FILE,
                         "%s: a header of %zu bytes, at most %d are allowed", to.name, length,
                         NPY_LONGEST_HEADER);
    *header = (struct text){bytes + begin, bytes + begin + length};
    return STATUS_OK;
}

enum status npy_header_parse(struct npy_header *header, const void *bytes, size_t size,
                             const char *name, struct error *error)
{
    struct report to = {name, error};
    struct text text = {0}, values[KEY_COUNT] = {{0}};
    enum status status = find_header(&text, bytes, size, to);
    if (status == STATUS_OK)
        status = parse_dict(values, text, to);
    if (status == STATUS_OK)
        status = parse_element(&header->element, values[KEY_DESCR], to);
    if (status == STATUS_OK)
        status = parse_order(&header->fortran_order, values[KEY_FORTRAN_ORDER], to);
    if (status == STATUS_OK)
        status = parse_shape(header, values[KEY_SHAPE], to);
    if (status != STATUS_OK)
        return status;
    header->data_at = (size_t)(text.end - (const char *)bytes);
    size_t promised = (size_t)header->count * elements[header->element].bytes;
    size_t found = size - header->data_at;
    if (found != promised)
        return error_set(error, STATUS_BAD_FILE,
                         "%s: %s: shape %s of '%s' needs %zu bytes of data, the file has %zu",
                         name, found < promised ? "truncated" : "too long",
                         excerpt_of_text(values[KEY_SHAPE]).text,
                         elements[header->element].descr, promised, found);
    return STATUS_OK;
}

void npy_header_format(char bytes[NPY_HEADER_BYTES], int ndim, const int64_t *shape)
{
    int64_t count;
    CHECK(npy_count_elements(&count, ndim, shape), "a shape that npy_write() refuses");
    memset(bytes, ' ', NPY_HEADER_BYTES);
    memcpy(bytes, magic, sizeof magic);
    /* NOLINTNEXTLINE(bugprone-not-null-terminated-result): bytes, not a string */
    memcpy(bytes + sizeof magic, "\x01\x00\x76\x00", 4); /* version 1.0, 118 more bytes */
    char *to = bytes + 10;
    to += sprintf(to, "{'descr': '<f4', 'fortran_order': False, 'shape': (");
    for (int d = 0; d < ndim; d++)
        to += sprintf(to, d == 0 ? "%lld" : ", %lld", (long long)shape[d]);
    to += sprintf(to, ndim == 1 ? ",), }" : "), }");
    *to = ' '; /* where sprintf() put its NUL */
    bytes[NPY_HEADER_BYTES - 1] = '\n';
}
