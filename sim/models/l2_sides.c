#include "models/l2_sides.h"

/* How blocks are dealt out: the first 8 to SMs near partition 0, the others in equal shares to
 * 8 GPCs, one after the other. The third GPC has the SMs of the first 8 and gets half a share.
 */
enum { FIRST_BLOCKS = 8, HALF_SHARES = 15 };
static const uint8_t side_of_half_share[HALF_SHARES] = {0, 0, 1, 1, 0, 1, 1, 1,
                                                        1, 1, 1, 0, 0, 0, 0};

/* Homes alternate by 4 KiB. Which bits of the physical address decide is not known in full: the
 * parity of all of them gives each home half of every 8 KiB. */
int l2_home(int partitions, int64_t line)
{
    return partitions == 1 ? 0 : __builtin_parityll((uint64_t)line / L2_HOME_LINES);
}

int l2_side(int partitions, int block, int blocks)
{
    if (partitions == 1 || block < FIRST_BLOCKS)
        return 0;
    return side_of_half_share[(block - FIRST_BLOCKS) * HALF_SHARES / (blocks - FIRST_BLOCKS)];
}
