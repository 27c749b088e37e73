/* Shared memory of a block: where it lies, and what may be wrong with an access to it.
 *
 * Warps run one after the other between two barriers of the block, and each without a break, so
 * a word's last write and its reads since the last barrier tell whether another thread could
 * come between: accesses of two threads of which one writes need a barrier of the block between
 * them, or, in one warp, a __syncwarp(). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/status.h"
#include "cuda/cpu/stack.h"
#include "cuda/cpu/worker.h"

enum {
    WORDS = 2 * CPU_SHARED_HALF / CPU_WORD,
    MOST_STATIC = 48 * 1024,
    BETWEEN_ARRAYS = 256,    /* bytes around a static array that belong to none */
    STAMP_LIMIT = 0x3fffffff /* the next block may begin with stamp 1 again */
};

void cpu_shared_make(struct worker *worker)
{
    worker->shared = stack_map((size_t)2 * CPU_SHARED_HALF);
    worker->words = stack_map(WORDS * sizeof *worker->words);
}

/* What a block finds in shared memory is NaN, and nobody has written it. */
void cpu_shared_block(struct worker *worker, size_t dynamic_bytes)
{
    memset(worker->shared, 0xff, dynamic_bytes);
    worker->region[0] = (struct cpu_array){
        .name = "shared memory", .base = worker->shared, .bytes = (int64_t)dynamic_bytes};
    worker->regions = 1;
    memset(cpu_now.statics, 0, sizeof cpu_now.statics);
    if (cpu_now.stamp > STAMP_LIMIT) {
        memset(worker->words, 0, WORDS * sizeof *worker->words);
        cpu_now.stamp = 0;
    }
    cpu_now.block_stamp = cpu_now.epoch_stamp = ++cpu_now.stamp;
}

void *cpu_shared_dynamic(void)
{
    return cpu_worker->shared;
}

/* The first thread of a block comes to an array. */
static __attribute__((noinline)) void *make_static(struct worker *worker, const char *name,
                                                   int64_t bytes, int key)
{
    char *next = worker->shared + CPU_SHARED_HALF;
    int64_t sum = bytes;
    for (int n = 1; n < worker->regions; n++) {
        const struct cpu_array *region = &worker->region[n];
        sum += region->bytes;
        next = worker->shared + (region->base - worker->shared) +
               (region->bytes + 2 * BETWEEN_ARRAYS - 1) / BETWEEN_ARRAYS * BETWEEN_ARRAYS;
    }
    CHECK(worker->regions <= CPU_MAX_STATIC, "more than %d static arrays in shared memory",
          CPU_MAX_STATIC);
    if (sum > MOST_STATIC)
        cpu_stop(cpu_now.file, key,
                 "%s: %" PRId64 " bytes of static shared memory; CUDA has %d", name, sum,
                 MOST_STATIC);
    if (sum + worker->region[0].bytes > cpu_options.shared_bytes)
        cpu_stop(cpu_now.file, key,
                 "%s: %" PRId64 " bytes of static and %" PRId64 " of dynamic shared memory; a "
                 "block may have %" PRId64,
                 name, sum, worker->region[0].bytes, cpu_options.shared_bytes);
    memset(next, 0xff, (size_t)bytes);
    worker->region[worker->regions++] =
        (struct cpu_array){.name = name, .base = next, .bytes = bytes, .key = key};
    return next;
}

void *cpu_shared_static(const char *name, int64_t bytes, int key)
{
    struct worker *worker = cpu_worker;
    int n = 1;
    while (n < worker->regions && worker->region[n].key != key)
        n++;
    void *base = n < worker->regions
                     ? worker->shared + (worker->region[n].base - worker->shared)
                     : make_static(worker, name, bytes, key);
    cpu_now.statics[key % CPU_STATICS].key = key;
    cpu_now.statics[key % CPU_STATICS].base = base;
    return base;
}

/* who did what at that place, unordered with the running thread's access to the word, one of
 * the array. */
static void stop_race(const struct cpu_place *place, uint32_t word, const char *who,
                      const char *what, unsigned at, const char *missing)
{
    const struct cpu_place *theirs = &cpu_worker->place[at];
    cpu_stop(place->at.file, place->at.line,
             "race: %s element %u of %s, which %s %s at %s:%d%s, no %s between%s",
             place->kind.way == CPU_LOAD ? "reads" : "writes", word, place->array->name, who,
             what, cpu_path(theirs->at.file), theirs->at.line, cpu_called_at(&theirs->at).text,
             missing, cpu_called_at(&place->at).text);
}

static const char *thread_text(unsigned number)
{
    static __thread char text[64];
    const struct cpu_index dim = cpu_now.block_dim;
    snprintf(text, sizeof text, "thread (%u, %u, %u)", number % dim.x, number / dim.x % dim.y,
             number / dim.x / dim.y);
    return text;
}

static const char *missing_between(unsigned warp, unsigned other)
{
    return warp == other ? "__syncwarp() or __syncthreads()" : "__syncthreads()";
}

static void stop_written(const struct cpu_place *place, uint32_t n, const struct cpu_word *word)
{
    const unsigned warp = (unsigned)cpu_now.warp;
    stop_race(place, n, thread_text(word->writer), "writes", word->write_place,
              missing_between(warp, word->writer / CPU_WARP));
}

static unsigned read_warp(const struct cpu_word *word)
{
    return word->reader & CPU_READ_WARP;
}

/* The first warp to read is the other one, or the word has been read by the writer's own warp
 * alone: warps run one after the other. */
static void stop_read(const struct cpu_place *place, uint32_t n, const struct cpu_word *word,
                      uint32_t lanes)
{
    const unsigned warp = (unsigned)cpu_now.warp, reader = read_warp(word);
    char text[64];
    if (reader != warp && word->reader & CPU_READ_BY_OTHERS)
        snprintf(text, sizeof text, "a thread of warp %u", reader);
    else
        snprintf(text, sizeof text, "%s",
                 thread_text(reader * CPU_WARP + (unsigned)__builtin_ctz(lanes)));
    stop_race(place, n, text, "reads", word->reader >> CPU_READ_PLACE_SHIFT,
              missing_between(warp, reader));
}

static void stop_unwritten(const struct cpu_place *place, uint32_t n)
{
    cpu_stop(place->at.file, place->at.line,
             "reads element %u of %s, which nobody has written%s", n, place->array->name,
             cpu_called_at(&place->at).text);
}

/* A store of the writer's warp; which lane's is not known. */
static void stop_stored(const struct cpu_place *place, uint32_t n, const struct cpu_word *word)
{
    char text[64];
    snprintf(text, sizeof text, "a thread of warp %d", word->writer / CPU_WARP);
    stop_race(place, n, text, "has stored to before the atomic", word->write_place,
              "__syncthreads()");
}

static inline uint32_t written_at(const struct cpu_word *word)
{
    return word->write_stamp & ~CPU_STORED;
}

/* Has nothing ordered the word's last write, by another thread, before now? */
static inline bool written_beside(const struct cpu_word *word, unsigned self)
{
    return written_at(word) >= cpu_now.epoch_stamp && word->writer != self &&
           (written_at(word) == cpu_now.stamp || word->writer / CPU_WARP != self / CPU_WARP);
}

static inline bool is_atomic(const struct worker *worker, const struct cpu_word *word)
{
    return worker->place[word->write_place].kind.way == CPU_REDUCE;
}

/* Stops if the last write, or one of its warp before, races with the running thread's access.
 */
static inline void check_writes(const struct worker *worker, const struct cpu_word *word,
                                uint32_t n, const struct cpu_place *place, unsigned self)
{
    if (!written_beside(word, self))
        return;
    if (place->kind.way != CPU_REDUCE || !is_atomic(worker, word))
        stop_written(place, n, word);
    if (word->write_stamp & CPU_STORED && word->writer / CPU_WARP != self / CPU_WARP)
        stop_stored(place, n, word);
}

static inline void check_reads(const struct cpu_word *word, uint32_t n,
                               const struct cpu_place *place, unsigned self)
{
    const uint32_t others = word->read_lanes & ~(1u << self % CPU_WARP);
    if (cpu_read_at(word) < cpu_now.epoch_stamp)
        return;
    if (read_warp(word) != self / CPU_WARP)
        stop_read(place, n, word, word->read_lanes);
    if (cpu_read_at(word) == cpu_now.stamp && others)
        stop_read(place, n, word, others);
}

/* Before an atomic access: is the last write what later ones may race with? An atomic of
 * another thread, which the last thread to add does not hide from itself; or the thread's own
 * store. */
static inline bool write_stays(const struct worker *worker, const struct cpu_word *word,
                               unsigned self)
{
    return written_beside(word, self) ||
           (written_at(word) == cpu_now.stamp && !is_atomic(worker, word));
}

static inline void note_write(const struct worker *worker, struct cpu_word *word,
                              const struct cpu_place *place, unsigned self)
{
    const bool stored = written_at(word) >= cpu_now.epoch_stamp &&
                        (word->write_stamp & CPU_STORED || !is_atomic(worker, word));
    const bool hides = place->kind.way == CPU_REDUCE && stored;
    word->write_stamp = cpu_now.stamp | (hides ? CPU_STORED : 0);
    word->writer = self & 1023;
    word->write_place = place->number & (CPU_MAX_PLACES - 1);
}

void cpu_shared_check(struct worker *worker, uint32_t offset, const struct cpu_place *place)
{
    const unsigned self = cpu_thread_number();
    const enum cpu_way way = place->kind.way;
    const uint32_t end = offset + (uint32_t)place->kind.bytes;
    for (uint32_t n = offset / CPU_WORD; n * CPU_WORD < end; n++) {
        struct cpu_word *word = &place->words[n];
        if (way != CPU_STORE && written_at(word) < cpu_now.block_stamp)
            stop_unwritten(place, n);
        check_writes(worker, word, n, place, self);
        if (way == CPU_LOAD) {
            cpu_shared_note_read(word, place->number);
            if (written_at(word) >= cpu_now.epoch_stamp)
                word->read_stamp |= CPU_UNSETTLED;
            continue;
        }
        check_reads(word, n, place, self);
        if (word->read_stamp == cpu_now.stamp)
            word->read_stamp |= CPU_UNSETTLED;
        if (way != CPU_REDUCE || !write_stays(worker, word, self))
            note_write(worker, word, place, self);
    }
}
