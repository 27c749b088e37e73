/* Accesses to memory, as the running thread makes them: what most need is done inline. */
#ifndef FLASHLAB_CUDA_CPU_ACCESS_H
#define FLASHLAB_CUDA_CPU_ACCESS_H

#include "cuda/cpu/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CPU_WORD = 4 }; /* bytes that checks tell apart */

/* Where a kernel accesses memory, and how the pointer came there: the line of the kernel's own
 * file on which it was last moved or handed on (0: none) times 2^16, plus the last such line of
 * a header since then. */
struct cpu_where {
    const char *file;
    int line, origin;
};

/* What is done at a place. */
struct cpu_kind {
    enum cpu_way way;
    bool shared;
    int bytes;
};

/* What an access is and where, in one number: origin, line, bytes, shared or not, way. */
enum { CPU_SITE_SHARED = 4 };
static inline uint64_t cpu_site(enum cpu_way way, bool shared, int bytes, int line, int origin)
{
    return (uint64_t)(uint32_t)origin << 32 | (uint64_t)line << 8 | (uint64_t)bytes << 3 |
           (shared ? CPU_SITE_SHARED : 0) | (uint64_t)way;
}
/* Where cpu_now keeps the place of a site, and beside it another that goes there too: on one
 * line may stand accesses to two arrays. */
static inline unsigned cpu_slot(uint64_t site)
{
    return (unsigned)(site * 0x9e3779b97f4a7c15 >>
                      (64 - CPU_SLOT_BITS)); /* 2^64 / golden ratio */
}

/* What is known of a word of shared memory: 16 bytes, for there are many. Stamps grow with
 * every stretch of a warp between two barriers or __syncwarp(). */
struct cpu_word {
    /* Of the last; plus CPU_STORED if that is an atomic, and its warp has stored in an earlier
     * stretch since the block's last barrier. */
    uint32_t write_stamp;
    /* So, plus CPU_UNSETTLED if the word has been written since the block's last barrier: what
     * reads it now is to be checked even if others have read it at that stamp. */
    uint32_t read_stamp;
    uint32_t read_lanes;                   /* of the warp that read at read_stamp */
    uint32_t writer : 10, write_place : 8; /* the last; places are numbers of the worker's */
    /* The first warp that has read since the block's last barrier, whether others have, and
     * where: read_warp + 2^5 read_by_others + 2^6 read_place */
    uint32_t reader : 14;
};
#define CPU_STORED 0x80000000u
#define CPU_UNSETTLED 0x80000000u
enum { CPU_READ_WARP = 31, CPU_READ_BY_OTHERS = 32, CPU_READ_PLACE_SHIFT = 6 };

/* What a request costs: sectors of HBM, passes over the banks of shared memory. */
struct cpu_cost {
    int sectors, wavefronts, least_wavefronts;
};

/* A place of the kernel, with the accesses there that are not requests yet. What every access
 * looks at comes first. */
struct cpu_place {
    uint64_t quick;   /* its site, if cpu_access_quickly() can do what an access needs; or 0 */
    const char *file; /* with site: which place this is */
    const char *base; /* of the array */
    uint64_t last;    /* index of the last element in it */
    union {
        unsigned char *written; /* the array's, in HBM */
        struct cpu_word *words; /* of the array, in shared memory */
    };
    /* End of offset[]; or its beginning, as if it were full, until there are accesses that are
     * not requests yet. */
    const uint32_t *end;
    uint32_t number; /* of the worker's places */
    /* by lane, where its next offset goes: offset + CPU_WARP * accesses + lane */
    uint32_t *next[CPU_WARP];
    uint32_t *offset;         /* of each access in the array, by n and lane; owned */
    size_t room;              /* of offset[] */
    struct cpu_place *beside; /* the one before it in its slot */
    uint64_t site;
    struct cpu_where at;
    struct cpu_kind kind;
    const struct cpu_array *array;
    bool uneven; /* see struct cpu_line */
    struct cpu_traffic traffic;
    /* The last request of which it was found out: those of a place are much alike. */
    struct cpu_cost known_cost;
    uint32_t known_active, known_offset[CPU_WARP]; /* 0: none yet */
};

/* Before its first access that is pending. */
void cpu_touch(struct cpu_place *place);

/* Before each access: what is checked and counted. */
void cpu_access(const void *at, uint64_t site, const char *file);

static inline uint32_t cpu_read_at(const struct cpu_word *word)
{
    return word->read_stamp & ~CPU_UNSETTLED;
}

/* The running lane reads the word. */
CPU_INLINE void cpu_shared_note_read(struct cpu_word *word, uint32_t place)
{
    if (cpu_read_at(word) != cpu_now.stamp) {
        const uint32_t before = word->reader;
        const uint32_t mine = place << CPU_READ_PLACE_SHIFT | (uint32_t)cpu_now.warp;
        if (cpu_read_at(word) < cpu_now.epoch_stamp)
            word->reader = mine;
        else if ((before ^ mine) & CPU_READ_WARP)
            word->reader = before | CPU_READ_BY_OTHERS;
        else
            word->reader = mine | (before & CPU_READ_BY_OTHERS);
        word->read_stamp = cpu_now.stamp;
        word->read_lanes = 0;
    }
    word->read_lanes |= 1u << cpu_now.lane;
}
/* The same in short, for a load of a word that the block wrote before its last barrier, as most
 * are: false if it is none. */
CPU_INLINE bool cpu_shared_read(struct cpu_word *word, uint32_t place)
{
    if (CPU_LIKELY(word->read_stamp == cpu_now.stamp)) {
        word->read_lanes |= 1u << cpu_now.lane;
        return true;
    }
    if (word->write_stamp < cpu_now.block_stamp || word->write_stamp >= cpu_now.epoch_stamp)
        return false;
    cpu_shared_note_read(word, place);
    return true;
}

/* The running lane writes the word, which nobody has touched since the block's last barrier:
 * false if somebody has. */
CPU_INLINE bool cpu_shared_write(struct cpu_word *word, uint32_t place)
{
    if (word->write_stamp >= cpu_now.epoch_stamp || cpu_read_at(word) >= cpu_now.epoch_stamp)
        return false;
    *word = (struct cpu_word){cpu_now.stamp, 0, 0, cpu_thread_number() & 1023, place & 255, 0};
    return true;
}

/* Its index in the array: a large number for one that is misaligned, or before the array. */
CPU_INLINE uint64_t cpu_element(const struct cpu_place *place, const char *at, int bytes)
{
    const uint64_t offset = (uint64_t)(at - place->base);
    const int shift = __builtin_ctz((unsigned)bytes);
    return offset >> shift | offset << (64 - shift);
}

CPU_INLINE bool cpu_is_quick(const struct cpu_place *place, uint64_t element, uint64_t site,
                             const char *file)
{
    return CPU_LIKELY(place->quick == site) && CPU_LIKELY(place->file == file) &&
           CPU_LIKELY(element <= place->last);
}

/* A load or store of a word of HBM, or of shared memory that no other access may race with, of
 * what has been written: anything else is cpu_access()'s, which comes then. Blocks on
 * other OpenMP threads may look at the same HBM. */
CPU_INLINE bool cpu_access_quickly(const void *at, struct cpu_kind kind, uint64_t site,
                                   const char *file)
{
    struct cpu_place *place = cpu_now.slot[cpu_slot(site)];
    uint64_t element = cpu_element(place, (const char *)at, kind.bytes);
    if (!CPU_LIKELY(cpu_is_quick(place, element, site, file))) {
        place = place->beside;
        element = cpu_element(place, (const char *)at, kind.bytes);
        if (!cpu_is_quick(place, element, site, file))
            return false;
    }
    uint32_t **const to = &place->next[cpu_now.lane], *const next = *to;
    if (!CPU_LIKELY(next < place->end)) {
        cpu_touch(place);
        if (next >= place->end)
            return false;
    }
    if (kind.shared) {
        struct cpu_word *word = &place->words[element * (uint64_t)(kind.bytes / CPU_WORD)];
        for (int n = 0; n < kind.bytes / CPU_WORD; n++)
            if (!CPU_LIKELY(kind.way == CPU_LOAD ? cpu_shared_read(word + n, place->number)
                                                 : cpu_shared_write(word + n, place->number)))
                return false;
    } else if (kind.way == CPU_STORE) {
        __atomic_store_n(&place->written[element], 1, __ATOMIC_RELAXED);
    } else if (!CPU_LIKELY(__atomic_load_n(&place->written[element], __ATOMIC_RELAXED))) {
        return false;
    }
    cpu_now.last = place;
    *next = (uint32_t)element * (uint32_t)kind.bytes;
    *to = next + CPU_WARP;
    return true;
}
/* Of which kind are such accesses? */
static inline bool cpu_may_be_quick(struct cpu_kind kind)
{
    return kind.way != CPU_REDUCE &&
           (kind.bytes == CPU_WORD || (kind.shared && kind.bytes == 4 * CPU_WORD));
}

#ifdef __cplusplus
}
#endif

#endif
