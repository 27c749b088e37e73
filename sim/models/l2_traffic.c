#include "models/l2_traffic.h"

#include <stdlib.h>

#include "models/l2_sides.h"

/* What NVIDIA does not document was chosen so that the DRAM bytes of 108 runs and of the curves
 * of an H200 come out (lessons/recordings/h200_counters.csv, cuda/results/h200_l2.csv and
 * h200_l2_curves.csv); tests/test_l2_*.c show how well. The oldest of 32 ways is evicted:
 * FlashAttention-1 over 67 MB finds nothing again. At most 14 ways are dirty: no kernel leaves
 * more than 29.4 MB of dirty data. The 2 oldest are kept clean: less than that is left by most.
 * The copy that a write leaves in the writer's partition enters in the middle.
 */
enum { WAYS = 32, DIRTY_WAYS = 14, CLEAN_WAYS = 2, COPY_PLACE = 16 };

/* Memory in one piece fills the sets nearly evenly: data that are a little smaller than L2 fit.
 * Pieces of 1.5 MiB lie in the sets at random: how much of several arrays fits depends on their
 * places in memory. */
enum { STRIPE_LINES = 12288 };

/* One turn in 4 is lost, see TURN_BYTES. In step, the blocks of a head would share every tile,
 * and data that outgrow L2 would never be found again. */
enum { TURNS_PER_STALL = 4 };

/* Of a turn each older block of the SM takes a sixth. If all were alike, matrix products would
 * find half again as much in L2. */
enum { ELDER_PART = 6 };

enum { MOST_BLOCKS_PER_SM = 32, DEFAULT_SAMPLE = 8, FEWEST_SETS = 64 };
enum { LARGEST_SAMPLE = L2_HOME_LINES, MOST_SAMPLED = 1 << 24 };
enum { SECTORS = L2_LINE_BYTES / SECTOR_BYTES, SET_BYTES = L2_LINE_BYTES * WAYS };

/* A resident block, and how far it has come. */
struct l2_slot {
    struct move_list moves;
    int64_t next; /* move */
    int row;      /* of that move */
    int offset;   /* bytes of that row done */
    int64_t born; /* number among the blocks started */
    bool live;
};

static void observe(void *context, const struct thread_block *b, struct move_list *moves);

/* One where the machine says nothing of them. */
static int partitions_of(const struct machine *machine)
{
    return machine->l2_partitions > 0 ? machine->l2_partitions : 1;
}

/* Of a partition of the sample. */
static int64_t sets_of(const struct l2_options *o, int sample)
{
    return o->machine->l2_bytes / partitions_of(o->machine) / sample / SET_BYTES;
}

static enum status open_partitions(struct l2_traffic *l2, struct error *error)
{
    const struct l2_options *o = &l2->options;
    const struct l2_shape shape = {.bytes = sets_of(o, o->sample) * SET_BYTES,
                                   .line_bytes = L2_LINE_BYTES,
                                   .sector_bytes = SECTOR_BYTES,
                                   .ways = WAYS,
                                   .clean_ways = CLEAN_WAYS,
                                   .dirty_ways = DIRTY_WAYS,
                                   .hashed = true,
                                   .neighbours = l2->partitions,
                                   .stripe = STRIPE_LINES / l2->partitions / o->sample};
    for (int p = 0; p < l2->partitions; p++)
        if (l2_cache_init(&l2->partition[p], &shape, error))
            return error->status;
    return STATUS_OK;
}

/* As asked for, or 8; less where too few sets would be left of a small L2. */
static int sample_of(const struct l2_options *o)
{
    int sample = o->sample > 0 ? o->sample : DEFAULT_SAMPLE;
    while (o->sample == 0 && sample > 1 && sets_of(o, sample) < FEWEST_SETS)
        sample /= 2;
    return sample;
}

static enum status check_machine(const struct l2_options *o, struct error *error)
{
    const struct machine *m = o->machine;
    if (m->l2_line_bytes != 0 && m->l2_line_bytes != L2_LINE_BYTES)
        return error_set(error, STATUS_BAD_ARGUMENT,
                         "machine %s: l2_line = %d B: the model of L2 has lines of %d B",
                         m->name, m->l2_line_bytes, L2_LINE_BYTES);
    if (m->l2_sector_bytes != 0 && m->l2_sector_bytes != SECTOR_BYTES)
        return error_set(error, STATUS_BAD_ARGUMENT,
                         "machine %s: l2_sector = %d B: the model of L2 has sectors of %d B",
                         m->name, m->l2_sector_bytes, SECTOR_BYTES);
    const int64_t least = (int64_t)partitions_of(m) * sample_of(o) * SET_BYTES;
    if (m->l2_bytes < least)
        return error_set(error, STATUS_BAD_ARGUMENT,
                         "machine %s: l2_size = %lld B: the model of L2 needs at least %lld B",
                         m->name, (long long)m->l2_bytes, (long long)least);
    return STATUS_OK;
}

static enum status check_options(const struct l2_options *o, struct error *error)
{
    if (o->sample < 0 || o->sample > LARGEST_SAMPLE || (o->sample & (o->sample - 1)) != 0)
        return error_set(error, STATUS_BAD_ARGUMENT,
                         "sample %d: must be a power of two up to %d", o->sample,
                         LARGEST_SAMPLE);
    if (partitions_of(o->machine) > L2_MAX_PARTITIONS)
        return error_set(error, STATUS_BAD_ARGUMENT,
                         "machine %s: %d L2 partitions, must be 1 to %d", o->machine->name,
                         o->machine->l2_partitions, L2_MAX_PARTITIONS);
    return check_machine(o, error);
}

enum status l2_traffic_init(struct l2_traffic *l2, const struct l2_options *options,
                            struct error *error)
{
    *l2 = (struct l2_traffic){0};
    if (check_options(options, error))
        return error->status;
    *l2 = (struct l2_traffic){.options = *options,
                              .partitions = partitions_of(options->machine),
                              .observer = {observe, l2},
                              .observed = -1,
                              .random = 1};
    l2->options.sample = sample_of(options);
    if (open_partitions(l2, error)) {
        l2_traffic_free(l2);
        return error->status;
    }
    return STATUS_OK;
}

void l2_traffic_free(struct l2_traffic *l2)
{
    for (int p = 0; p < l2->partitions; p++)
        l2_cache_free(&l2->partition[p]);
    for (int k = 0; k < l2->slot_room; k++)
        move_list_free(&l2->slots[k].moves);
    free(l2->slots);
    l2->slots = NULL;
    l2->slot_room = 0;
}

static struct l2_launch *launch_now(struct l2_traffic *l2)
{
    return &l2->launches[l2->launch_count - 1];
}

static int count(uint8_t sectors)
{
    return __builtin_popcount(sectors);
}

/* Counts what the access wrote back; returns what it missed. */
static uint8_t settle(struct l2_traffic *l2, struct l2_result r)
{
    launch_now(l2)->dram_written_bytes += (int64_t)r.written_back * SECTOR_BYTES;
    return r.missed;
}

/* Sectors found in partition p, or brought there: those that were not there. */
static uint8_t read_at(struct l2_traffic *l2, int p, uint32_t line, uint8_t sectors)
{
    return settle(l2, l2_cache_read(&l2->partition[p], line, sectors));
}

static void read_line(struct l2_traffic *l2, int side, int home, uint32_t line, uint8_t sectors)
{
    uint8_t missed = read_at(l2, side, line, sectors);
    if (missed && home != side)
        missed = read_at(l2, home, line, missed);
    launch_now(l2)->read_sectors += count(sectors);
    launch_now(l2)->miss_sectors += count(missed);
}

static void write_line(struct l2_traffic *l2, int side, int home, uint32_t line,
                       uint8_t sectors, bool reduce)
{
    struct l2_launch *launch = launch_now(l2);
    if (reduce) /* the home adds to what it has */
        launch->miss_sectors += count(read_at(l2, home, line, sectors));
    (void)settle(l2, l2_cache_write(&l2->partition[home], line, sectors));
    launch->write_sectors += count(sectors);
    for (int p = 0; p < l2->partitions; p++) {
        if (p == home)
            continue;
        if (p == side && !reduce)
            (void)settle(l2,
                         l2_cache_read_behind(&l2->partition[p], line, sectors, COPY_PLACE));
        else
            l2_cache_invalidate(&l2->partition[p], line, sectors);
    }
}

/* The sectors of the line that the bytes [start, end) touch. */
static uint8_t sectors_of_line(int64_t line, int64_t start, int64_t end)
{
    const int64_t first = start / SECTOR_BYTES - line * SECTORS;
    const int64_t last = (end - 1) / SECTOR_BYTES - line * SECTORS;
    const int low = first > 0 ? (int)first : 0;
    const int high = last < SECTORS ? (int)last : SECTORS - 1;
    return (uint8_t)(((1u << (high - low + 1)) - 1) << low);
}

/* The one line of a group of sample neighbours that is modelled. */
static int64_t line_of_group(int64_t group, int64_t sample)
{
    return group * sample + (int64_t)(l2_hash((uint32_t)group) >> 8) % sample;
}

/* What the caches know the line by: by its place among those of its home that are modelled, and
 * by its home. The lines of both homes in one place share a set. */
static uint32_t number_of(const struct l2_traffic *l2, int64_t line, int home)
{
    const int64_t sample = l2->options.sample;
    if (l2->partitions == 1)
        return (uint32_t)(line / sample);
    const int64_t place = line / (2 * L2_HOME_LINES) * L2_HOME_LINES + line % L2_HOME_LINES;
    return (uint32_t)(place / sample * 2 + home);
}

static void access_bytes(struct l2_traffic *l2, int side, enum direction direction,
                         int64_t start, int64_t bytes)
{
    const int64_t end = start + bytes;
    CHECK(start >= 0 && (end - 1) / L2_LINE_BYTES <= UINT32_MAX, "a move of bytes %lld to %lld",
          (long long)start, (long long)end);
    const int64_t first = start / L2_LINE_BYTES, last = (end - 1) / L2_LINE_BYTES;
    const int64_t sample = l2->options.sample;
    for (int64_t group = first / sample; group <= last / sample; group++) {
        const int64_t line = line_of_group(group, sample);
        if (line < first || line > last)
            continue;
        const int home = l2_home(l2->partitions, line);
        const uint32_t number = number_of(l2, line, home);
        const uint8_t sectors = sectors_of_line(line, start, end);
        if (direction == DIRECTION_READ)
            read_line(l2, side, home, number, sectors);
        else
            write_line(l2, side, home, number, sectors, direction == DIRECTION_REDUCE);
    }
}

static bool loses_its_turn(struct l2_traffic *l2)
{
    l2->random ^= l2->random << 13;
    l2->random ^= l2->random >> 7;
    l2->random ^= l2->random << 17;
    return (l2->random >> 32) % TURNS_PER_STALL == 0;
}

/* Bytes that the block moves in a turn: whole lines, so that no sector is asked for twice. */
static int turn_bytes(const struct l2_traffic *l2, const struct l2_slot *slot, int sm)
{
    int bytes = TURN_BYTES;
    if (l2->options.in_step)
        return bytes;
    for (int k = sm; k < l2->residents; k += l2->options.machine->sms)
        if (l2->slots[k].live && l2->slots[k].born < slot->born)
            bytes -= bytes / ELDER_PART;
    return bytes < L2_LINE_BYTES ? L2_LINE_BYTES : bytes / L2_LINE_BYTES * L2_LINE_BYTES;
}

/* One turn of a block on that SM. */
static void advance(struct l2_traffic *l2, struct l2_slot *slot, int sm)
{
    const int sms = l2->options.machine->sms; /* numbered as they get their first blocks */
    const int side = l2_side(l2->partitions, sm, l2->residents < sms ? l2->residents : sms);
    int left = turn_bytes(l2, slot, sm);
    while (left > 0 && slot->next < slot->moves.count) {
        const struct move *move = &slot->moves.moves[slot->next];
        const int rest = move->row_bytes - slot->offset;
        const int bytes = rest < left ? rest : left;
        access_bytes(l2, side, move->direction,
                     move->address + slot->row * move->stride + slot->offset, bytes);
        left -= bytes;
        slot->offset += bytes;
        if (slot->offset < move->row_bytes)
            continue;
        slot->offset = 0;
        if (++slot->row == move->rows) {
            slot->row = 0;
            slot->next++;
        }
    }
    slot->live = slot->next < slot->moves.count;
}

/* Turns until a block has ended; returns its slot. One is live. */
static int run_until_free(struct l2_traffic *l2)
{
    for (;;) {
        const int k = l2->turn;
        struct l2_slot *slot = &l2->slots[k];
        l2->turn = (k + 1) % l2->residents;
        if (!slot->live || loses_its_turn(l2))
            continue;
        advance(l2, slot, k % l2->options.machine->sms);
        if (slot->live)
            continue;
        l2->live--;
        return k;
    }
}

void l2_traffic_begin(struct l2_traffic *l2, const char *name, int residents)
{
    l2_traffic_finish(l2);
    CHECK(residents > 0 && l2->launch_count < MAX_LAUNCHES, "%s: %d residents in launch %d",
          name, residents, l2->launch_count);
    l2->launches[l2->launch_count++] = (struct l2_launch){.name = name};
    if (residents > l2->slot_room) {
        l2->slots = realloc(l2->slots, (size_t)residents * sizeof *l2->slots);
        CHECK(l2->slots, "no host memory for %d thread blocks", residents);
        for (int k = l2->slot_room; k < residents; k++)
            l2->slots[k] = (struct l2_slot){0};
        l2->slot_room = residents;
    }
    l2->residents = residents;
    l2->live = l2->turn = 0;
    for (int p = 0; l2->options.cold && p < l2->partitions; p++)
        l2_cache_clear(&l2->partition[p]);
}

void l2_traffic_block(struct l2_traffic *l2, struct move_list *moves)
{
    if (moves->count == 0)
        return;
    /* At first slots fill in order; then each block follows one that has ended. */
    int k = l2->live;
    if (l2->live == l2->residents)
        k = run_until_free(l2);
    struct l2_slot *slot = &l2->slots[k];
    const struct move_list taken = *moves;
    *moves = slot->moves;
    *slot = (struct l2_slot){.moves = taken, .live = true, .born = l2->started++};
    l2->live++;
}

/* Counts of a sample stand for those of all lines. */
static void scale(struct l2_launch *launch, int sample)
{
    launch->read_sectors *= sample;
    launch->write_sectors *= sample;
    launch->miss_sectors *= sample;
    launch->dram_written_bytes *= sample;
    launch->dram_read_bytes = launch->miss_sectors * SECTOR_BYTES;
}

void l2_traffic_finish(struct l2_traffic *l2)
{
    if (l2->residents == 0)
        return;
    while (l2->live > 0)
        (void)run_until_free(l2);
    struct l2_launch *launch = launch_now(l2);
    int64_t dirty = 0;
    for (int p = 0; p < l2->partitions; p++)
        dirty += l2_cache_dirty_sectors(&l2->partition[p]);
    launch->dirty_bytes = dirty * SECTOR_BYTES * l2->options.sample;
    scale(launch, l2->options.sample);
    l2->residents = 0;
    l2->observed = -1;
}

int l2_sample_of(int64_t sectors)
{
    int sample = DEFAULT_SAMPLE;
    while (sample < LARGEST_SAMPLE && sectors / sample > MOST_SAMPLED)
        sample *= 2;
    return sample;
}

int l2_blocks_per_sm(const struct machine *machine, const int64_t used[LEVEL_COUNT])
{
    const int64_t limit[LEVEL_COUNT] = {
        [LEVEL_SRAM] = machine->sram_bytes_per_sm, [LEVEL_REGISTERS] = machine->register_bytes};
    int64_t blocks = MOST_BLOCKS_PER_SM;
    for (int level = 0; level < LEVEL_COUNT; level++)
        if (used[level] > 0 && limit[level] / used[level] < blocks)
            blocks = limit[level] / used[level];
    return blocks > 0 ? (int)blocks : 1; /* launches without limits run one at a time */
}

int l2_residents(const struct thread_block *b, int blocks_per_sm)
{
    const struct grid *grid = &b->launch->grid;
    const int64_t blocks = (int64_t)grid->x * grid->y * grid->z;
    const int64_t most = (int64_t)blocks_per_sm * b->gpu->machine->sms;
    return (int)(blocks < most ? blocks : most);
}

static void observe(void *context, const struct thread_block *b, struct move_list *moves)
{
    struct l2_traffic *l2 = context;
    if (l2->observed != b->gpu->launch_count) {
        const int blocks = l2->options.blocks_per_sm;
        const int per_sm = blocks > 0 ? blocks : l2_blocks_per_sm(l2->options.machine, b->used);
        l2_traffic_begin(l2, b->launch->name, l2_residents(b, per_sm));
        l2->observed = b->gpu->launch_count;
    }
    l2_traffic_block(l2, moves);
}
