#include "core/traffic.h"

#include <string.h>

#include "core/status.h"

struct traffic *account_tensor(struct account *account, const char *name)
{
    int i = 0;
    while (i < account->tensor_count && strcmp(account->tensor[i].name, name) != 0)
        i++;
    if (i == account->tensor_count) {
        CHECK(i < MAX_TENSORS, "more than %d tensors in an account", MAX_TENSORS);
        account->tensor[i].name = name;
        account->tensor[i].traffic = (struct traffic){0};
        account->tensor_count++;
    }
    return &account->tensor[i].traffic;
}

static void traffic_add(struct traffic *sum, const struct traffic *traffic)
{
    for (int k = 0; k < DIRECTION_COUNT; k++) {
        sum->of[k].bytes += traffic->of[k].bytes;
        sum->of[k].sectors += traffic->of[k].sectors;
    }
}

void account_add(struct account *sum, const struct account *account)
{
    for (int i = 0; i < account->tensor_count; i++)
        traffic_add(account_tensor(sum, account->tensor[i].name), &account->tensor[i].traffic);
    sum->flops.matrix += account->flops.matrix;
    sum->flops.other += account->flops.other;
    sum->flops.exp += account->flops.exp;
}

struct traffic account_total(const struct account *account)
{
    struct traffic total = {0};
    for (int i = 0; i < account->tensor_count; i++)
        traffic_add(&total, &account->tensor[i].traffic);
    return total;
}

/* The traffic of that name; all zeros if the account has no such tensor. */
static struct traffic traffic_of(const struct account *account, const char *name)
{
    for (int i = 0; i < account->tensor_count; i++)
        if (strcmp(account->tensor[i].name, name) == 0)
            return account->tensor[i].traffic;
    return (struct traffic){0};
}

static bool contained(const struct account *a, const struct account *b)
{
    for (int i = 0; i < a->tensor_count; i++) {
        const struct traffic other = traffic_of(b, a->tensor[i].name);
        for (int k = 0; k < DIRECTION_COUNT; k++)
            if (a->tensor[i].traffic.of[k].bytes != other.of[k].bytes ||
                a->tensor[i].traffic.of[k].sectors != other.of[k].sectors)
                return false;
    }
    return true;
}

bool account_equal(const struct account *a, const struct account *b)
{
    return contained(a, b) && contained(b, a) && a->flops.matrix == b->flops.matrix &&
           a->flops.other == b->flops.other && a->flops.exp == b->flops.exp;
}
