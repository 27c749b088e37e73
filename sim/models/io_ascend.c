#include "models/io_ascend.h"

#include <string.h>

static int64_t min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* How often things happen, all planes of Q together. */
struct visits {
    int64_t queries;
    int64_t scores; /* elements of S that are computed */
    int64_t keys;   /* rows of K, and of V, that are loaded */
    int64_t rows;   /* rows of Q tiles that meet a K/V tile */
};

static struct visits visits_of(const struct attention *a)
{
    struct visits v = {0};
    for (int i = 0; i < attention_tiles_q(a); i++) {
        const int64_t rows = min(a->block_q, a->seqlen_q - (int64_t)i * a->block_q);
        const int64_t tiles = attention_visited_tiles(a, i);
        const int64_t keys = min(tiles * a->block_k, a->seqlen_k);
        v.queries += rows;
        v.scores += rows * keys;
        v.keys += keys;
        v.rows += rows * tiles;
    }
    const int64_t planes = attention_planes_q(a);
    return (struct visits){v.queries * planes, v.scores * planes, v.keys * planes,
                           v.rows * planes};
}

static void add(struct io_ascend *io, const char *tensor, enum direction direction,
                enum path path, int64_t bytes)
{
    account_tensor(&io->account, tensor)->of[direction].bytes += bytes;
    io->path_bytes[path] += bytes;
}

/* S, P and the products Oij, which one core makes and the other needs. */
static void add_exchanged(struct io_ascend *io, int64_t S, int64_t P, int64_t Oij)
{
    add(io, "S", DIRECTION_WRITE, PATH_L0C_TO_GM, S);
    add(io, "S", DIRECTION_READ, PATH_GM_TO_UB, S);
    add(io, "P", DIRECTION_WRITE, PATH_UB_TO_GM, P);
    add(io, "P", DIRECTION_READ, PATH_GM_TO_L1, P);
    add(io, "Oij", DIRECTION_WRITE, PATH_L0C_TO_GM, Oij);
    add(io, "Oij", DIRECTION_READ, PATH_GM_TO_UB, Oij);
}

static struct flops flops_of(const struct attention *a, const struct visits *v)
{
    const int64_t d = a->head_dim, dv = a->head_dim_v;
    /* a score: scale, max, s - m, sum; a row of a tile: m - m_new, c l, c O, and O + Oij, which
     * a GPU's matrix unit adds by itself; a query: O / l, L */
    return (struct flops){.matrix = 2 * v->scores * (d + dv),
                          .other =
                              4 * v->scores + v->rows * (2 + 2 * dv) + v->queries * (dv + 2),
                          .exp = v->scores + v->rows};
}

struct io_ascend io_ascend_predict(const struct attention *a, enum dtype scores, bool direct)
{
    const int64_t d = a->head_dim, dv = a->head_dim_v, size = dtype_bytes(a->dtype);
    const int64_t f32 = dtype_bytes(DTYPE_F32);
    const struct visits v = visits_of(a);
    struct io_ascend io = {.account.flops = flops_of(a, &v)};
    add(&io, "Q", DIRECTION_READ, PATH_GM_TO_L1, v.queries * d * size);
    add(&io, "K", DIRECTION_READ, PATH_GM_TO_L1, v.keys * d * size);
    add(&io, "V", DIRECTION_READ, PATH_GM_TO_L1, v.keys * dv * size);
    add(&io, "O", DIRECTION_WRITE, PATH_UB_TO_GM, v.queries * dv * size);
    add(&io, "LSE", DIRECTION_WRITE, PATH_UB_TO_GM, v.queries * f32);
    io.path_bytes[PATH_L1_TO_L0A] = (v.rows * d + v.scores) * size;
    io.path_bytes[PATH_L1_TO_L0B] = v.keys * (d + dv) * size;
    if (direct) {
        io.path_bytes[PATH_L0C_TO_UB] = (v.scores + v.rows * dv) * f32;
        io.path_bytes[PATH_UB_TO_L1] = v.scores * size;
    } else {
        add_exchanged(&io, v.scores * dtype_bytes(scores), v.scores * size, v.rows * dv * f32);
    }
    return io;
}

struct io_ascend io_ascend_of_launch(const struct launch_record *launch)
{
    struct io_ascend io = {.account = launch->account};
    for (int t = 0; t < io.account.tensor_count; t++)
        for (int k = 0; k < DIRECTION_COUNT; k++)
            io.account.tensor[t].traffic.of[k].sectors = 0;
    memcpy(io.path_bytes, launch->path_bytes, sizeof io.path_bytes);
    return io;
}

bool io_ascend_equal(const struct io_ascend *a, const struct io_ascend *b)
{
    return account_equal(&a->account, &b->account) &&
           memcmp(a->path_bytes, b->path_bytes, sizeof a->path_bytes) == 0;
}
