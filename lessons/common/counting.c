#include "common/counting.h"

#include <string.h>

#include "models/io.h"

enum status counting_run(struct counted *c, const struct simulation *base,
                         enum algorithm algorithm, const struct attention *a,
                         struct error *error)
{
    *c = (struct counted){.simulation = *base};
    c->simulation.algorithm = algorithm;
    c->simulation.attention = *a;
    if (attention_count(&c->simulation, error))
        return error->status;
    c->simulated = gpu_account(&c->simulation.gpu);
    c->predicted = io_predict(algorithm, a, base->tma);
    c->equal = account_equal(&c->simulated, &c->predicted);
    return STATUS_OK;
}

struct attention counting_with_seqlen(const struct attention *a, int seqlen)
{
    struct attention changed = *a;
    changed.seqlen_q = changed.seqlen_k = seqlen;
    return changed;
}

int64_t counting_tensor_bytes(const struct account *account, const char *name)
{
    for (int i = 0; i < account->tensor_count; i++) {
        const struct traffic *t = &account->tensor[i].traffic;
        if (strcmp(account->tensor[i].name, name) == 0)
            return t->of[DIRECTION_READ].bytes + t->of[DIRECTION_WRITE].bytes;
    }
    return 0;
}

int64_t counting_matrix_bytes(const struct account *account)
{
    static const char *const matrices[] = {"Q", "K", "V", "O", "S", "P"};
    int64_t sum = 0;
    for (int i = 0; i < (int)(sizeof matrices / sizeof matrices[0]); i++)
        sum += counting_tensor_bytes(account, matrices[i]);
    return sum;
}

int64_t counting_tile_bytes(const struct counted *c, const char *tile)
{
    const struct launch_record *first = &c->simulation.gpu.launches[0];
    for (int i = 0; i < first->tile_count; i++)
        if (strcmp(first->tiles[i].name, tile) == 0)
            return first->tiles[i].bytes;
    return 0;
}
