/* What an OpenMP thread has to run blocks: for the files of cuda/cpu only. */
#ifndef FLASHLAB_CUDA_CPU_WORKER_H
#define FLASHLAB_CUDA_CPU_WORKER_H

#include "cuda/cpu/engine.h"

enum {
    CPU_MAX_PLACES = 256, /* struct word has 8 bits for one */
    CPU_MAX_STATIC = 15,
    /* Dynamic shared memory, then static: more than any GPU has of each. */
    CPU_SHARED_HALF = 256 * 1024,
    CPU_WORD = 4, /* bytes that checks tell apart */
    CPU_MAX_STEP_ROWS = 256,
};

/* A piece of memory with a name: an array of HBM, or of the block's shared memory. */
struct cpu_array {
    const char *name;
    const char *base;
    int64_t bytes;
    unsigned char *written; /* by word; HBM only; owned */
    int key;                /* static shared memory only */
};

/* What is done at a place. */
struct cpu_kind {
    enum cpu_way way;
    bool shared;
    int bytes;
};

/* To be cleared at once: memset() of so little is slow with some compilers. */
typedef uint32_t made_of_all
    __attribute__((vector_size(CPU_WARP * sizeof(uint32_t)), aligned(4)));

/* A place of the kernel, with the accesses there that are not requests yet. What every access
 * looks at comes first. */
struct place {
    uint64_t site; /* with file: which place this is, see cpu_site() */
    const char *file;
    const char *base;       /* of the array */
    uint64_t last;          /* offset of the last element in it */
    uint32_t bytes;         /* of an element */
    uint8_t number;         /* of the worker's places */
    bool one_word;          /* an element is a word, and no step counts its bytes */
    unsigned char *written; /* the array's, in HBM */
    struct word *words;     /* of the array, in shared memory */
    uint32_t *offset;       /* [capacity][CPU_WARP] of each access in the array; owned */
    uint32_t room;          /* accesses of a lane that fit in there; 0: before the first one */
    union {
        uint32_t made[CPU_WARP]; /* accesses, by lane */
        made_of_all made_of_all;
    };
    struct place *after[2]; /* that followed when this was last left, and the time before */
    struct cpu_place at;
    struct cpu_kind kind;
    const struct cpu_array *array;
    uint32_t capacity;
    bool uneven; /* see struct cpu_line */
    struct cpu_traffic traffic;
};

/* What is known of a word of shared memory: 16 bytes, for there are many. Stamps grow with
 * every stretch of a warp between two barriers or __syncwarp(). */
struct word {
    uint32_t write_stamp, read_stamp; /* of the last */
    uint32_t read_lanes;              /* of the warp that read at read_stamp */
    /* The last writer; the first warp that has read since the block's last barrier, and
     * whether others have. Places are numbers of the worker's. */
    uint32_t writer : 10, write_place : 8, read_warp : 5, read_by_others : 1, read_place : 8;
};

struct worker {
    bool in_lane; /* a thread of a kernel is running */

    /* requests.c */
    int places;
    struct place place[CPU_MAX_PLACES];
    struct place *last;
    int touched;
    struct place *touched_place[CPU_MAX_PLACES]; /* with requests */
    int64_t rounds;       /* how often the lanes of a warp began to run */
    int64_t run_accesses; /* of the running one since it began */
    int64_t read_bytes[CPU_MAX_THREADS], written_bytes[CPU_MAX_THREADS]; /* HBM, of the block */
    struct cpu_launch_counts counts;

    /* shared.c */
    char *shared;
    struct word *words;
    uint32_t stamp;       /* now */
    uint32_t block_stamp; /* when the block began */
    uint32_t epoch_stamp; /* when its last barrier was passed */
    int regions;          /* the dynamic one, then static ones */
    struct cpu_array region[1 + CPU_MAX_STATIC];

    /* steps.c */
    struct step_list *steps;
};

extern __thread struct worker *cpu_worker;
extern struct cpu_options cpu_options; /* no zeros */

/* fibers.c: runs all blocks of a grid that is right; the running lane lets the others come up
 * with it. */
void cpu_run_threads(const struct cpu_grid *grid);
void cpu_pause(const char *file, int line);

/* arrays.c. NULL: none. */
const struct cpu_array *cpu_array_at(const void *at, int bytes);
const struct cpu_array *cpu_array_before(const void *at);
struct cpu_launch_counts *cpu_launch_begin(const char *kernel, const char *file);
/* Adds a worker's counts to those of the launch. */
void cpu_counts_join(struct cpu_launch_counts *launch, const struct worker *worker);

/* requests.c: the worker begins a launch; the warp has converged, so that what is pending
 * becomes requests. */
void cpu_requests_begin(struct worker *worker);
void cpu_requests_merge(struct worker *worker);

/* shared.c */
void cpu_shared_make(struct worker *worker);
void cpu_shared_block(struct worker *worker, size_t dynamic_bytes); /* a block begins */
/* Is the access right: written before, no race? offset: in the place's array. */
void cpu_shared_check(struct worker *worker, uint32_t offset, const struct place *place);
/* The running lane reads the word. */
static inline void cpu_shared_note_read(const struct worker *worker, struct word *word,
                                        unsigned place)
{
    const unsigned warp = (unsigned)cpu_now.warp;
    if (word->read_stamp != worker->stamp) {
        if (word->read_stamp < worker->epoch_stamp) {
            word->read_warp = warp;
            word->read_by_others = 0;
            word->read_place = place;
        } else if (word->read_warp != warp) {
            word->read_by_others = 1;
        } else {
            word->read_place = place;
        }
        word->read_stamp = worker->stamp;
        word->read_lanes = 0;
    }
    word->read_lanes |= 1u << cpu_now.lane;
}
/* The same in short, for a load of a word that the block wrote before its last barrier, as most
 * are: false if it is none. */
static inline bool cpu_shared_read(const struct worker *worker, struct word *word,
                                   unsigned place)
{
    if (word->write_stamp - worker->block_stamp >= worker->epoch_stamp - worker->block_stamp)
        return false;
    cpu_shared_note_read(worker, word, place);
    return true;
}
/* A warp goes on after a wait that orders memory; all warps have reached a barrier. */
static inline void cpu_shared_stretch(struct worker *worker)
{
    worker->stamp++;
}
static inline void cpu_shared_barrier(struct worker *worker)
{
    worker->epoch_stamp = ++worker->stamp;
}

/* steps.c: a block begins; a worker has run its blocks of a launch; so have all, and the steps
 * go to the log in order. */
void cpu_steps_block(struct worker *worker);
void cpu_steps_join(struct worker *worker);
void cpu_steps_end(const char *kernel);

/* watchdog.c: stops the program if a worker does nothing for too long. */
void cpu_watch_begin(void);
void cpu_watch_worker(const struct worker *worker, const struct cpu_now *now);
void cpu_watch_end(void);

/* grid.c: " (called at FILE:LINE)", the kernel's own line through which a place in a header was
 * reached; empty where that is not known. */
struct called_text {
    char text[128];
};
struct called_text cpu_called_at(const struct cpu_place *place);
/* A path of a source as the repository has it. */
const char *cpu_path(const char *file);
/* check_failed() with such paths. */
void cpu_fail(const struct cpu_now *now, const char *file, int line, const char *text)
    __attribute__((noreturn));

#endif
