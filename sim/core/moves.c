#include "core/moves.h"

#include <stdbool.h>
#include <stdlib.h>

static bool lengthened(struct move *last, const struct move *move)
{
    if (last->direction != move->direction || last->rows != 1 || move->rows != 1 ||
        last->address + last->row_bytes != move->address ||
        last->row_bytes + move->row_bytes > MOVE_BYTES)
        return false;
    last->row_bytes += move->row_bytes;
    return true;
}

void move_list_add(struct move_list *list, const struct move *move)
{
    if (list->count > 0 && lengthened(&list->moves[list->count - 1], move))
        return;
    if (list->count == list->room) {
        list->room = list->room > 0 ? 2 * list->room : 64;
        list->moves = realloc(list->moves, (size_t)list->room * sizeof *list->moves);
        CHECK(list->moves, "no host memory for %lld moves", (long long)list->room);
    }
    list->moves[list->count++] = *move;
}

void move_list_add_window(struct move_list *list, const struct hbm_tensor *t,
                          enum direction direction, int64_t first, int rows, int cols)
{
    const int bytes = dtype_bytes(t->dtype);
    struct move move = {.address = t->address + first * bytes,
                        .stride = (int64_t)t->cols * bytes,
                        .rows = rows,
                        .row_bytes = cols * bytes,
                        .direction = direction};
    if (move.row_bytes == move.stride && move.stride * rows <= INT32_MAX) {
        move.row_bytes *= rows;
        move.rows = 1;
    }
    move_list_add(list, &move);
}

void move_list_add_request(struct move_list *list, const struct hbm_tensor *t,
                           enum direction direction, const int64_t *address, int active)
{
    const int bytes = dtype_bytes(t->dtype);
    for (int lane = 0; lane < active;) {
        int end = lane + 1;
        while (end < active &&
               (address[end] == address[end - 1] || address[end] == address[end - 1] + bytes))
            end++;
        const int row_bytes = (int)(address[end - 1] - address[lane]) + bytes;
        move_list_add(list, &(struct move){.address = t->address + address[lane],
                                           .stride = row_bytes,
                                           .rows = 1,
                                           .row_bytes = row_bytes,
                                           .direction = direction});
        lane = end;
    }
}

void move_list_free(struct move_list *list)
{
    free(list->moves);
    *list = (struct move_list){0};
}
