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
    uint32_t write_stamp, read_stamp;      /* of the last */
    uint32_t read_lanes;                   /* of the warp that read at read_stamp */
    uint32_t writer : 10, write_place : 8; /* the last; places are numbers of the worker's */
    /* The first warp that has read since the block's last barrier, whether others have, and
     * where: read_warp + 2^5 read_by_others + 2^6 read_place */
    uint32_t reader : 14;
};
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
    uint64_t last;    /* offset of the last element in it */
    uint32_t *offset; /* [room] of each access in the array, by n and lane; owned */
    uint32_t room;    /* CPU_WARP * accesses of a lane that fit in there */
    uint32_t number;  /* of the worker's places */
    union {
        unsigned char *written; /* the array's, in HBM */
        struct cpu_word *words; /* of the array, in shared memory */
    };
    uint32_t
        next[CPU_WARP]; /* by lane, where its next offset goes: CPU_WARP * accesses + lane */
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

/* Before each access: what is checked and counted. */
void cpu_access(const void *at, uint64_t site, const char *file);

/* The running lane reads the word. */
CPU_INLINE void cpu_shared_note_read(struct cpu_word *word, uint32_t place)
{
    if (word->read_stamp != cpu_now.stamp) {
        const uint32_t before = word->reader;
        const uint32_t mine = place << CPU_READ_PLACE_SHIFT | (uint32_t)cpu_now.warp;
        if (word->read_stamp < cpu_now.epoch_stamp)
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
    if (word->write_stamp - cpu_now.block_stamp >= cpu_now.epoch_stamp - cpu_now.block_stamp)
        return false;
    cpu_shared_note_read(word, place);
    return true;
}

CPU_INLINE bool cpu_is_quick(const struct cpu_place *place, const char *at, uint64_t site,
                             const char *file)
{
    return place->quick == site && place->file == file &&
           (uint64_t)(at - place->base) <= place->last;
}

/* A load or store of a word of HBM, or a load from shared memory, at a place where the lane has
 * been, of what has been written: anything else is cpu_access()'s, which comes then. Blocks on
 * other OpenMP threads may look at the same HBM. */
CPU_INLINE bool cpu_access_quickly(const void *at, struct cpu_kind kind, uint64_t site,
                                   const char *file)
{
    struct cpu_place *place = cpu_now.slot[cpu_slot(site)];
    if (!cpu_is_quick(place, (const char *)at, site, file)) {
        place = place->beside;
        if (!cpu_is_quick(place, (const char *)at, site, file))
            return false;
    }
    const uint32_t offset = (uint32_t)((const char *)at - place->base);
    const uint32_t next = place->next[cpu_now.lane];
    if (next >= place->room || offset % (uint32_t)kind.bytes != 0)
        return false;
    if (kind.shared) {
        struct cpu_word *word = &place->words[offset / CPU_WORD];
        for (int n = 0; n < kind.bytes / CPU_WORD; n++)
            if (!cpu_shared_read(word + n, place->number))
                return false;
    } else if (kind.way == CPU_STORE) {
        __atomic_store_n(&place->written[offset / CPU_WORD], 1, __ATOMIC_RELAXED);
    } else if (!__atomic_load_n(&place->written[offset / CPU_WORD], __ATOMIC_RELAXED)) {
        return false;
    }
    cpu_now.last = place;
    cpu_now.touched[place->number] = true;
    place->offset[next] = offset;
    place->next[cpu_now.lane] = next + CPU_WARP;
    return true;
}
/* Of which kind are such accesses? */
static inline bool cpu_may_be_quick(struct cpu_kind kind)
{
    if (kind.shared)
        return kind.way == CPU_LOAD && (kind.bytes == CPU_WORD || kind.bytes == 4 * CPU_WORD);
    return kind.way != CPU_REDUCE && kind.bytes == CPU_WORD;
}

#ifdef __cplusplus
}
#endif

#endif
