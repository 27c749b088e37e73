/* The moves of a thread block between HBM and on-chip memory, one after the other: what a model
 * of the memory behind the SMs is fed with.
 *
 * Interface:
 *   gpu.observer = &(struct move_observer){.block = my_block, .context = &mine};
 *   gpu_launch(&gpu, ...);
 * calls my_block() for every block of the grid, in order of block number, from one thread at a
 * time, when the block has ended. Every block then runs, and every iteration of its loops, in
 * counts-only mode too. Without an observer nothing is kept.
 */
#ifndef FLASHLAB_CORE_MOVES_H
#define FLASHLAB_CORE_MOVES_H

#include <stdint.h>

#include "core/launch.h"
#include "core/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

/* rows pieces of row_bytes bytes; the first begins at address, each stride bytes after the one
 * before. Whole rows of a tensor are one piece. Addresses are those of hbm_tensor.address. */
struct move {
    int64_t address, stride;
    int32_t rows, row_bytes;
    enum direction direction;
};

/* Oldest first. Zero is the empty list. */
struct move_list {
    int64_t count, room;
    struct move *moves; /* owned */
};

struct move_observer {
    /* The block has ended. moves is valid during the call; the observer may keep its contents
     * by leaving another list, whose contents are no longer needed, in its place. */
    void (*block)(void *context, const struct thread_block *b, struct move_list *moves);
    void *context;
};

/* Appends a move. A piece that goes on where the last one ended, as the requests of a warp do,
 * lengthens it, up to MOVE_BYTES. */
enum { MOVE_BYTES = 4096 };
void move_list_add(struct move_list *list, const struct move *move);

/* Core only: appends a window of rows x cols elements of the tensor, the first of them element
 * first. */
void move_list_add_window(struct move_list *list, const struct hbm_tensor *t,
                          enum direction direction, int64_t first, int rows, int cols);

/* Core only: appends a warp's request, a piece for each run of lanes that access neighbouring
 * elements, or the same one. address: in bytes from the tensor's first element. */
void move_list_add_request(struct move_list *list, const struct hbm_tensor *t,
                           enum direction direction, const int64_t *address, int active);

void move_list_free(struct move_list *list);

#ifdef __cplusplus
}
#endif

#endif
