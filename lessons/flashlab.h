/* The subcommands of the flashlab tool, one a file. */
#ifndef FLASHLAB_LESSONS_FLASHLAB_H
#define FLASHLAB_LESSONS_FLASHLAB_H

/* Each gets the arguments after its own name (argv[0] is the name) and returns the exit status.
 */
int flashlab_attention(int argc, char **argv);
int flashlab_traffic(int argc, char **argv);
int flashlab_compare(int argc, char **argv);
int flashlab_run_kernel(int argc, char **argv);
int flashlab_record(int argc, char **argv);
int flashlab_counters(int argc, char **argv);
int flashlab_occupancy(int argc, char **argv);
int flashlab_roofline(int argc, char **argv);
int flashlab_times(int argc, char **argv);
int flashlab_machines(int argc, char **argv);

#endif
