#include "common/transpositions.h"

#include <string.h>

enum { TILE = TRANSPOSITION_TILE, WORD = 4 };

static const char *const names[TRANSPOSITION_KINDS] = {"strided_store", "strided_load",
                                                       "unpadded", "padded", "swizzled"};

const char *transposition_name(enum transposition_kind kind)
{
    return names[kind];
}

bool transposition_parse(enum transposition_kind *kind, const char *name)
{
    for (int k = 0; k < TRANSPOSITION_KINDS; k++) {
        *kind = (enum transposition_kind)k;
        if (strcmp(names[k], name) == 0)
            return true;
    }
    return false;
}

/* Whole tiles, ragged on one side or both, less than a tile, one row, one column. */
#define EACH_KIND(rows, cols)                                                                  \
    {TRANSPOSE_STRIDED_STORE, 4, rows, cols}, {TRANSPOSE_STRIDED_LOAD, 4, rows, cols},         \
        {TRANSPOSE_UNPADDED, 4, rows, cols}, {TRANSPOSE_PADDED, 4, rows, cols},                \
    {                                                                                          \
        TRANSPOSE_SWIZZLED, 4, rows, cols                                                      \
    }
#define EACH_WIDE_KIND(rows, cols)                                                             \
    {TRANSPOSE_UNPADDED, 16, rows, cols}, {TRANSPOSE_PADDED, 16, rows, cols},                  \
    {                                                                                          \
        TRANSPOSE_SWIZZLED, 16, rows, cols                                                     \
    }

const struct transposition *transposition_list(int *count)
{
    static const struct transposition list[] = {
        EACH_KIND(32, 32),          EACH_KIND(1024, 1024),     EACH_KIND(1000, 777),
        EACH_KIND(777, 1000),       EACH_KIND(33, 31),         EACH_KIND(7, 13),
        EACH_KIND(1, 100),          EACH_KIND(100, 1),         EACH_WIDE_KIND(32, 32),
        EACH_WIDE_KIND(1024, 1024), EACH_WIDE_KIND(1000, 780), EACH_WIDE_KIND(780, 1000),
        EACH_WIDE_KIND(36, 28),     EACH_WIDE_KIND(4, 100)};
    *count = (int)(sizeof list / sizeof list[0]);
    return list;
}

/* A walk at one tile. */
struct tile_walk {
    const struct transposition *t;
    int row, col;   /* of A, where the tile begins */
    int rows, cols; /* of the tile, inside A */
    transposition_request *request;
    void *context;
};

/* The word of element (row, col) of the tile in A, in B and in shared memory. */
typedef int64_t element_word(const struct tile_walk *w, int row, int col);

static int64_t word_of_A(const struct tile_walk *w, int row, int col)
{
    return (int64_t)(w->row + row) * w->t->cols + w->col + col;
}

static int64_t word_of_B(const struct tile_walk *w, int row, int col)
{
    return (int64_t)(w->col + col) * w->t->rows + w->row + row;
}

static int64_t word_of_tile(const struct tile_walk *w, int row, int col)
{
    return w->t->kind == TRANSPOSE_PADDED     ? row * (TILE + 1) + col
           : w->t->kind == TRANSPOSE_SWIZZLED ? row * TILE + (col ^ row)
                                              : row * TILE + col;
}

/* The tile's elements, accessed bytes a lane, by warps along its rows or else its columns. */
static void walk_lanes(const struct tile_walk *w, enum probe_access access, int bytes,
                       bool by_rows, element_word *word)
{
    const int vector = w->t->bytes / WORD, lanes = TILE / vector;
    const int outer = by_rows ? w->rows : w->cols, inner = by_rows ? w->cols : w->rows;
    for (int first = 0; first < outer; first += vector) {
        for (int k = 0; k < vector; k += bytes / WORD) {
            struct warp_request r = {.access = access, .bytes = bytes};
            for (int lane = 0; lane < PROBE_LANES; lane++) {
                const int i = first + lane / lanes, j = lane % lanes * vector + k;
                if (i >= outer || j >= inner)
                    continue;
                r.active |= UINT32_C(1) << lane;
                r.address[lane] = WORD * (by_rows ? word(w, i, j) : word(w, j, i));
            }
            w->request(w->context, &r);
        }
    }
}

static void walk_tile(const struct tile_walk *w)
{
    const enum transposition_kind kind = w->t->kind;
    const int bytes = w->t->bytes;
    if (kind == TRANSPOSE_STRIDED_STORE || kind == TRANSPOSE_STRIDED_LOAD) {
        const bool by_rows = kind == TRANSPOSE_STRIDED_STORE;
        walk_lanes(w, PROBE_GLOBAL_LOAD, bytes, by_rows, word_of_A);
        walk_lanes(w, PROBE_GLOBAL_STORE, bytes, by_rows, word_of_B);
    } else {
        walk_lanes(w, PROBE_GLOBAL_LOAD, bytes, true, word_of_A);
        walk_lanes(w, PROBE_SHARED_STORE, WORD, true, word_of_tile);
        walk_lanes(w, PROBE_SHARED_LOAD, WORD, false, word_of_tile);
        walk_lanes(w, PROBE_GLOBAL_STORE, bytes, false, word_of_B);
    }
}

void transposition_walk(const struct transposition *t, transposition_request *request,
                        void *context)
{
    for (int row = 0; row < t->rows; row += TILE) {
        for (int col = 0; col < t->cols; col += TILE) {
            const struct tile_walk w = {
                .t = t,
                .row = row,
                .col = col,
                .rows = t->rows - row < TILE ? t->rows - row : TILE,
                .cols = t->cols - col < TILE ? t->cols - col : TILE,
                .request = request,
                .context = context,
            };
            walk_tile(&w);
        }
    }
}
