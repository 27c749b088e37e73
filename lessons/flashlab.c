/* flashlab: the command-line tool. Finds the subcommand and hands over. */
#include "flashlab.h"

#include <stdio.h>
#include <string.h>

#include "common/options.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} commands[] = {
    {"attention", flashlab_attention, "attention on your own Q, K, V, with its traffic"},
    {"traffic", flashlab_traffic, "traffic of a shape: counted, nothing computed"},
    {"compare", flashlab_compare, "simulator and CUDA kernel side by side, step by step"},
    {"run-kernel", flashlab_run_kernel, "a CUDA kernel on this CPU, observed line by line"},
    {"record", flashlab_record, "keep a GPU's run for machines without one"},
    {"counters", flashlab_counters, "the hardware counters that are read on a GPU"},
    {"occupancy", flashlab_occupancy, "how many blocks an SM holds, and what limits them"},
    {"roofline", flashlab_roofline, "what bounds an algorithm, on which machine"},
    {"times", flashlab_times, "recorded times beside those of the model"},
    {"machines", flashlab_machines, "the GPUs that can be simulated"},
};

enum { COMMANDS = sizeof commands / sizeof commands[0] };

static void print_help(FILE *out)
{
    fprintf(out, "usage: flashlab COMMAND [options]\n\n"
                 "Simulates the GPU memory hierarchy and counts every byte.\n\ncommands:\n");
    for (int i = 0; i < COMMANDS; i++)
        fprintf(out, "  %-12s %s\n", commands[i].name, commands[i].help);
    fprintf(out, "\n'flashlab COMMAND --help' lists a command's options.\n");
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    if (strcmp(name, "--help") == 0 || strcmp(name, "help") == 0) {
        print_help(stdout);
        return EXIT_OK;
    }
    if (argc > 1)
        fprintf(stderr, "flashlab: %s: unknown command\n", name);
    print_help(stderr);
    return EXIT_USAGE;
}
