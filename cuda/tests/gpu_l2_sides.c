/* Prints which partition of L2 each SM is near to, which is the home of each line, and which
 * SMs the blocks of small grids get, as CSV: what sim/models/l2_sides.c says of them.
 *
 * Atomic additions are done at the home of their line; from an SM near to it they return some
 * 200 cycles sooner. Side 0 is the one near the SM of block 0.
 */
#include <stdio.h>
#include <stdlib.h>

#include "l2_side_kernels.h"
#include "results.h"

enum { LINES = 1024, LINE_BYTES = 128, MOST_SMS = 256 };

static const int grids[] = {16, 132};
enum { GRIDS = sizeof grids / sizeof grids[0] };

struct sides {
    int sms;
    int first_sm; /* of block 0 */
    int cycles[MOST_SMS][LINES];
    int side[MOST_SMS], home[LINES];
};

static double mean(const int *values, int count)
{
    double sum = 0;
    for (int k = 0; k < count; k++)
        sum += values[k];
    return sum / count;
}

/* Mean cycles of the SM to the lines of that home. */
static double cycles_to_home(const struct sides *s, int sm, int home)
{
    double sum = 0;
    int lines = 0;
    for (int line = 0; line < LINES; line++) {
        if (s->home[line] != home)
            continue;
        sum += s->cycles[sm][line];
        lines++;
    }
    return lines > 0 ? sum / lines : 0;
}

/* A line that is further than the mean from the first SM has its home on side 1; an SM that is
 * further from those of side 0 is near side 1. */
static void find_sides(struct sides *s)
{
    const double middle = mean(s->cycles[s->first_sm], LINES);
    for (int line = 0; line < LINES; line++)
        s->home[line] = s->cycles[s->first_sm][line] > middle;
    for (int sm = 0; sm < s->sms; sm++)
        s->side[sm] = cycles_to_home(s, sm, 0) > cycles_to_home(s, sm, 1);
}

static enum status measure(struct sides *s, void *memory, void *results, struct error *error)
{
    for (int sm = 0; sm < s->sms; sm++)
        if (launch_distance(results, sm, memory, LINES, error) ||
            device_download(s->cycles[sm], results, sizeof s->cycles[sm], error))
            return error->status;
    if (launch_where(results, grids[0], error) ||
        device_download(&s->first_sm, results, sizeof s->first_sm, error))
        return error->status;
    find_sides(s);
    return STATUS_OK;
}

static enum status print_grid(const struct sides *s, int blocks, void *results,
                              struct error *error)
{
    int sms[MOST_SMS];
    if (launch_where(results, blocks, error) ||
        device_download(sms, results, (size_t)blocks * sizeof *sms, error))
        return error->status;
    for (int block = 0; block < blocks; block++)
        printf("block of %d,%d,%d,%d,,\n", blocks, block, s->side[sms[block]], sms[block]);
    return STATUS_OK;
}

static enum status print_sides(struct sides *s, void *memory, void *results,
                               struct error *error)
{
    if (measure(s, memory, results, error))
        return error->status;
    printf("what,number,side,sm,cycles_to_side_0,cycles_to_side_1\n");
    for (int sm = 0; sm < s->sms; sm++)
        printf("sm,%d,%d,,%.0f,%.0f\n", sm, s->side[sm], cycles_to_home(s, sm, 0),
               cycles_to_home(s, sm, 1));
    for (int line = 0; line < LINES; line++)
        printf("line,%d,%d,,,\n", line, s->home[line]);
    for (int k = 0; k < GRIDS; k++)
        if (print_grid(s, grids[k], results, error))
            return error->status;
    return STATUS_OK;
}

int main(void)
{
    static struct sides sides;
    struct error error = {0};
    struct device_info info;
    void *memory = NULL, *results = NULL;
    if (!results_machine(stdout, "make gpu-l2-sides", &error) && !device_query(&info, &error) &&
        !device_alloc(&memory, "lines", (size_t)LINES * LINE_BYTES, &error) &&
        !device_alloc(&results, "results", sizeof(int) * LINES, &error)) {
        sides.sms = info.sms < MOST_SMS ? info.sms : MOST_SMS;
        print_sides(&sides, memory, results, &error);
    }
    device_free(results);
    device_free(memory);
    if (error.status)
        fprintf(stderr, "gpu_l2_sides: %s\n", error.text);
    return error.status ? EXIT_FAILURE : EXIT_SUCCESS;
}
