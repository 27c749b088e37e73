#include "common/ascend_report.h"

#include "common/report.h"

#define WAY(path) (1u << (path))

/* Bytes on all ways of a set. */
static int64_t bytes_on(const struct ascend_counted *c, unsigned ways)
{
    int64_t bytes = 0;
    for (int path = 0; path < PATH_COUNT; path++)
        if (ways & WAY(path))
            bytes += c->simulated.path_bytes[path];
    return bytes;
}

void ascend_print_levels(struct lesson *l, const struct ascend_counted *c)
{
    static const struct {
        const char *name;
        enum level level;
        unsigned in, out;
    } levels[] = {
        {"L1", LEVEL_L1, WAY(PATH_GM_TO_L1), WAY(PATH_L1_TO_L0A) | WAY(PATH_L1_TO_L0B)},
        {"L0A", LEVEL_L0A, WAY(PATH_L1_TO_L0A), 0},
        {"L0B", LEVEL_L0B, WAY(PATH_L1_TO_L0B), 0},
        {"L0C", LEVEL_L0C, 0, WAY(PATH_L0C_TO_GM)},
        {"UB, both", LEVEL_UB, WAY(PATH_GM_TO_UB), WAY(PATH_UB_TO_GM)},
    };
    const unsigned to_gm = WAY(PATH_L0C_TO_GM) | WAY(PATH_UB_TO_GM);
    const unsigned from_gm = WAY(PATH_GM_TO_L1) | WAY(PATH_GM_TO_UB);
    const struct launch_record *launch = &c->run.gpu.launches[0];
    char x[4][32];
    lesson_say(l, "%-10s %15s %15s %18s %18s\n%-10s %15s %15s %18s %18s\n", "", "bytes of",
               "of them", "bytes", "bytes", "level", "an AI core", "with tiles", "in", "out");
    lesson_say(l, "%-10s %15s %15s %18s %18s\n", "GM, L2", "", "",
               report_grouped(x[0], bytes_on(c, to_gm)),
               report_grouped(x[1], bytes_on(c, from_gm)));
    for (size_t k = 0; k < sizeof levels / sizeof levels[0]; k++)
        lesson_say(l, "%-10s %15s %15s %18s %18s\n", levels[k].name,
                   report_grouped(x[0], c->chip.capacity[levels[k].level]),
                   report_grouped(x[1], launch->peak_bytes[levels[k].level]),
                   report_grouped(x[2], bytes_on(c, levels[k].in)),
                   report_grouped(x[3], bytes_on(c, levels[k].out)));
}

void ascend_print_tensors(struct lesson *l, struct ascend_beside_gpu *both)
{
    static const char *const tensors[] = {"Q", "K", "V", "O", "LSE", "S", "P", "Oij"};
    struct account *ascend = &both->ascend.simulated.account, *gpu = &both->gpu.simulated;
    char x[4][32];
    lesson_say(l, "%-7s %16s %33s\n%-7s %16s %16s %16s %16s\n", "",
               "Ascend 910B:", "GPU:", "tensor", "read", "written", "read", "written");
    for (size_t t = 0; t < sizeof tensors / sizeof tensors[0]; t++) {
        const struct amount *a = account_tensor(ascend, tensors[t])->of;
        const struct amount *g = account_tensor(gpu, tensors[t])->of;
        lesson_say(l, "%-7s %16s %16s %16s %16s\n", tensors[t],
                   report_grouped(x[0], a[DIRECTION_READ].bytes),
                   report_grouped(x[1], a[DIRECTION_WRITE].bytes),
                   report_grouped(x[2], g[DIRECTION_READ].bytes),
                   report_grouped(x[3], g[DIRECTION_WRITE].bytes));
    }
}
