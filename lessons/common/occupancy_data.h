/* What an H200 said of occupancy (cuda/results), beside the models: for lesson 14.
 *
 * Interface:
 *   struct occupancy_data d;
 *   occupancy_data_read(&d, &error);
 *   d.blocks_equal of d.blocks_rows            rows whose blocks an SM are predicted
 *   d.point[i]                                 the sweeps of occupancy
 *   occupancy_data_tile(&tile, &d, "flash2_forward", 64, 16, &error)
 *   occupancy_data_free(&d);
 */
#ifndef FLASHLAB_LESSONS_OCCUPANCY_DATA_H
#define FLASHLAB_LESSONS_OCCUPANCY_DATA_H

#include "common/results_table.h"
#include "models/occupancy.h"

/* One launch of a sweep: what an SM had in flight, and what all reached together. */
struct sweep_point {
    bool is_load;      /* a vector read, or else chains of FMAs */
    int independent;   /* loads or FMAs of a thread in flight */
    double occupancy;  /* of the SM's warps, 0 to 1 */
    int warps;         /* an SM */
    int64_t in_flight; /* bytes an SM, or FMAs of a warp a scheduler */
    /* bytes/s, or FLOP/s */
    double predicted; /* Little's law */
    double simulated; /* the same, played through */
    double measured;
};

enum { SWEEP_MOST = 128 };

struct occupancy_data {
    struct results_table sizes;    /* h200_occupancy.csv */
    struct results_table times;    /* h200_times.csv */
    struct results_table sweeps;   /* h200_occupancy_times.csv */
    int blocks_rows, blocks_equal; /* of sizes and sweeps */
    double load_latency_ns;        /* of one load after the other */
    int64_t needed_bytes;          /* in flight an SM, by Little's law; of all loads ... */
    int points;                    /* ... and the sweeps that they predict */
    struct sweep_point point[SWEEP_MOST];
};

/* A compiled size of a kernel: its block, its time on the largest problem of the table. */
struct timed_tile {
    struct block_needs needs;
    struct occupancy occupancy;
    double tflops;
};

/* STATUS_BAD_FILE if a file is missing or not what make gpu-occupancy, gpu-bench or
 * gpu-occupancy-times write; the message begins with its path. */
enum status occupancy_data_read(struct occupancy_data *d, struct error *error);
void occupancy_data_free(struct occupancy_data *d);

/* The block of a kernel of the sizes. head_dim: "" where it has none; tile: Br or that of a
 * matmul, "" where it has none. */
enum status occupancy_data_needs(struct block_needs *needs, const struct occupancy_data *d,
                                 const char *kernel, const char *head_dim, const char *tile,
                                 struct error *error);

/* The same with its time: attention without a mask, a product of 8192^3. */
enum status occupancy_data_tile(struct timed_tile *timed, const struct occupancy_data *d,
                                const char *kernel, const char *head_dim, const char *tile,
                                struct error *error);

/* The largest that was measured of loads or of FMAs. */
double sweep_best(const struct occupancy_data *d, bool is_load);

/* Its share that a setting reaches; 0 if there is no such setting. */
double sweep_share(const struct occupancy_data *d, bool is_load, int independent, int warps);

/* measured / predicted - 1, or measured / simulated - 1, of the settings of a sweep. */
struct deviation {
    double lowest, highest; /* -0.1: 10 % below */
    int settings;
};

struct deviation sweep_deviation(const struct occupancy_data *d, bool is_load, bool simulated);

/* How far settings of the loads with the same bytes in flight, or of the same occupancy, are
 * apart: 0.1 if one reaches 10 % less than another. */
struct spread {
    double largest;
    int pairs;
};

struct spread sweep_spread(const struct occupancy_data *d, bool by_occupancy);

/* The least bytes in flight from which on every setting reaches that share of the best. */
int64_t sweep_in_flight_for(const struct occupancy_data *d, double share);

/* Settings of an occupancy of at least high, and those of them of whose rate one of the same
 * sweep with at most low reaches 95 %. */
struct sweep_matches {
    int settings, matched;
};

struct sweep_matches sweep_matches(const struct occupancy_data *d, double high, double low);

#endif
