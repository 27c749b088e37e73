#include "core/machine.h"

#include <stddef.h>
#include <strings.h>

/* KB of on-chip memory are 1024 bytes; memory sizes and rates are decimal, as on datasheets.
 *
 * Shared memory per SM and per block, registers: CUDA C++ Programming Guide, table "Technical
 * Specifications per Compute Capability" (7.5: 64/64 KB, 7.0: 96/96, 8.0: 164/163, 8.9: 100/99,
 * 9.0 and 10.0: 228/227; 64K 32-bit registers an SM in all of them).
 * SMs, memory, L2, rates: NVIDIA's datasheets and architecture whitepapers of T4, V100 SXM2,
 * A100 SXM, RTX 4090, H100 SXM5, H200 SXM and B200. H200's L2 is what the driver reports. */
#define KB(x) ((x)*INT64_C(1024))
#define MB(x) KB((x)*INT64_C(1024))
#define GB(x) ((x)*INT64_C(1000000000))
#define TERA(x) ((x)*1e12)

/* clang-format off */
static const struct machine machines[] = {
    /* name        SMs  HBM      HBM B/s      L2       SRAM/SM  SRAM/block  registers tensor       fp32       */
    {"T4",          40, GB(16),  TERA(0.320), MB(4),   KB(64),  KB(64),  KB(256), TERA(65),   TERA(8.1),  "Turing, GDDR6"},
    {"V100",        80, GB(32),  TERA(0.900), MB(6),   KB(96),  KB(96),  KB(256), TERA(125),  TERA(15.7), "Volta, SXM2"},
    {"A100-40GB",  108, GB(40),  TERA(1.555), MB(40),  KB(164), KB(163), KB(256), TERA(312),  TERA(19.5), "Ampere, SXM"},
    {"A100-80GB",  108, GB(80),  TERA(2.039), MB(40),  KB(164), KB(163), KB(256), TERA(312),  TERA(19.5), "Ampere, SXM"},
    {"RTX-4090",   128, GB(24),  TERA(1.008), MB(72),  KB(100), KB(99),  KB(256), TERA(165),  TERA(82.6), "Ada, GDDR6X"},
    {"H100",       132, GB(80),  TERA(3.350), MB(50),  KB(228), KB(227), KB(256), TERA(989),  TERA(67),   "Hopper, SXM5"},
    {"H200",       132, GB(141), TERA(4.800), MB(60),  KB(228), KB(227), KB(256), TERA(989),  TERA(67),   "Hopper, SXM; copies reach 4.27 TB/s"},
    {"B200",       148, GB(180), TERA(7.670), MB(126), KB(228), KB(227), KB(256), TERA(2250), TERA(80),   "Blackwell; 256 KB tensor memory an SM not modelled"},
    {"teaching",     4, GB(1),   TERA(0.100), MB(1),   KB(48),  KB(48),  KB(256), TERA(1),    TERA(0.1),  "invented: 48 KB of SRAM, so that tiles do not fit"},
};
/* clang-format on */

const struct machine *machine_table(int *count)
{
    *count = (int)(sizeof machines / sizeof machines[0]);
    return machines;
}

const struct machine *machine_find(const char *name)
{
    for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++)
        if (strcasecmp(machines[i].name, name) == 0)
            return &machines[i];
    return NULL;
}

const struct machine *machine_default(void)
{
    return machine_find("H200");
}
