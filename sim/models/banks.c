#include "models/banks.h"

#include <string.h>

/* Words that one pass or several have to move, by bank. */
struct banks {
    int words[BANKS];
    uint32_t word[BANKS][BANK_LANES]; /* distinct ones; at most one a lane in each bank */
};

static void want(struct banks *banks, uint32_t word)
{
    const uint32_t bank = word % BANKS;
    for (int n = 0; n < banks->words[bank]; n++)
        if (banks->word[bank][n] == word)
            return;
    banks->word[bank][banks->words[bank]++] = word;
}

/* What is served together: lanes first .. first + lanes - 1. ideal: as if every word could go
 * to any bank. */
static int passes(const uint32_t *offset, uint32_t active, int first, int lanes, int bytes,
                  bool ideal)
{
    struct banks banks;
    int most = 0, words = 0;
    memset(banks.words, 0, sizeof banks.words);
    for (int lane = first; lane < first + lanes; lane++)
        for (int byte = 0; active >> lane & 1 && byte < bytes; byte += BANK_BYTES)
            want(&banks, (offset[lane] + (uint32_t)byte) / BANK_BYTES);
    for (int bank = 0; bank < BANKS; bank++) {
        words += banks.words[bank];
        if (banks.words[bank] > most)
            most = banks.words[bank];
    }
    return ideal ? (words + BANKS - 1) / BANKS : most;
}

/* Every lane has the address of the lane whose number differs by the bit apart. */
static bool in_pairs(const uint32_t *offset, uint32_t active, int first, int lanes, int apart)
{
    for (int lane = first; lane < first + lanes; lane++) {
        const int other = lane ^ apart;
        if (active >> lane & active >> other & 1 && offset[lane] != offset[other])
            return false;
    }
    return true;
}

/* The lanes of two groups are loaded together if they come in pairs, neighbours or next but
 * one: then they want no more than one group does. */
static bool loaded_together(const uint32_t *offset, uint32_t active, int first, int lanes)
{
    return in_pairs(offset, active, first, lanes, 1) ||
           in_pairs(offset, active, first, lanes, 2);
}

static int all_passes(const uint32_t *offset, uint32_t active, int bytes, bool is_load,
                      bool ideal)
{
    if (bytes <= BANK_BYTES)
        return passes(offset, active, 0, BANK_LANES, bytes, ideal);
    const int group = BANK_LANES * BANK_BYTES / bytes; /* lanes that fill all banks */
    int sum = 0;
    for (int first = 0; first < BANK_LANES; first += 2 * group) {
        if (is_load && loaded_together(offset, active, first, 2 * group))
            sum += passes(offset, active, first, 2 * group, bytes, ideal);
        else
            sum += passes(offset, active, first, group, bytes, ideal) +
                   passes(offset, active, first + group, group, bytes, ideal);
    }
    return sum;
}

/* What most requests are: a word a lane, no two of a bank. */
static bool one_pass(const uint32_t *offset, uint32_t active)
{
    uint32_t word[BANKS], used = 0;
    for (int lane = 0; lane < BANK_LANES; lane++) {
        const uint32_t wanted = offset[lane] / BANK_BYTES, bank = wanted % BANKS;
        if (!(active >> lane & 1))
            continue;
        if (used >> bank & 1 && word[bank] != wanted)
            return false;
        used |= 1u << bank;
        word[bank] = wanted;
    }
    return active != 0;
}

int bank_wavefronts(const uint32_t offset[BANK_LANES], uint32_t active, int bytes, bool is_load)
{
    if (bytes <= BANK_BYTES && one_pass(offset, active))
        return 1;
    return all_passes(offset, active, bytes, is_load, false);
}

int bank_least_wavefronts(const uint32_t offset[BANK_LANES], uint32_t active, int bytes,
                          bool is_load)
{
    return all_passes(offset, active, bytes, is_load, true);
}

int bank_matrix_wavefronts(const uint32_t offset[BANK_LANES], int matrices)
{
    enum { ROWS = 8, ROW_BYTES = 16 };
    int sum = 0;
    for (int m = 0; m < matrices; m++)
        sum += passes(offset, 0xffffffff, m * ROWS, ROWS, ROW_BYTES, false);
    return sum;
}
