#include "common/figure.h"

#include <errno.h>
#include <spawn.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/output_file.h"

extern char **environ;

enum { PATH_LENGTH = 4096 };

static enum status write_csv(const char *path, figure_data *data, const struct options *o,
                             struct error *error)
{
    struct output_file csv;
    if (output_open(&csv, o->csv ? "--csv" : "--plot", path, error))
        return error->status;
    if (data(csv.stream, o, error)) {
        output_abandon(&csv);
        return error->status;
    }
    return output_commit(&csv, error);
}

/* Runs gnuplot on the commands and the script, which it may change; 0 if it succeeded. */
static int run_gnuplot(char *commands, char *script)
{
    char program[] = "gnuplot", option[] = "-e";
    char *const argv[] = {program, option, commands, script, NULL};
    pid_t child;
    int state;
    const int failed = posix_spawnp(&child, program, NULL, NULL, argv, environ);
    if (failed)
        return failed;
    if (waitpid(child, &state, 0) != child || !WIFEXITED(state) || WEXITSTATUS(state) != 0)
        return EIO;
    return 0;
}

static enum status draw(const struct figure *figure, const char *csv, const char *output,
                        struct error *error)
{
    char commands[4 * PATH_LENGTH], script[PATH_LENGTH], path[PATH_LENGTH];
    struct stat info;
    const char *ending = strrchr(output, '.');
    snprintf(path, sizeof path, "%.*s-%s%s", (int)(ending - output), output, figure->suffix,
             ending);
    snprintf(commands, sizeof commands,
             "csv='%s'; output_file='%s'; is_svg=%d; plots='%s/plots/'", csv, path,
             strcmp(ending, ".svg") == 0, FLASHLAB_ROOT);
    snprintf(script, sizeof script, "%s/plots/%s.gp", FLASHLAB_ROOT, figure->name);
    unlink(path);
    const int failed = run_gnuplot(commands, script);
    if (failed == ENOENT)
        return error_set(error, STATUS_BAD_FILE,
                         "--plot %.1000s: gnuplot is not installed (package gnuplot-nox)",
                         output);
    if (failed || stat(path, &info) != 0 || info.st_size == 0)
        return error_set(error, STATUS_BAD_FILE,
                         "--plot %.1000s: gnuplot made no picture from %s", output,
                         figure->name);
    fprintf(stderr, "figure: %s\n", path);
    return STATUS_OK;
}

enum status figure_make(const struct options *o, figure_data *data,
                        const struct figure *figures, int count, struct error *error)
{
    char beside[PATH_LENGTH];
    const char *csv = o->csv;
    if (!o->csv && !o->plot)
        return STATUS_OK;
    if (!csv) {
        snprintf(beside, sizeof beside, "%.*s.csv", (int)(strrchr(o->plot, '.') - o->plot),
                 o->plot);
        csv = beside;
    }
    /* Names go into gnuplot commands in quotes, and leave room for what is added to them. */
    if (strpbrk(csv, "'\n") || (o->plot && strpbrk(o->plot, "'\n")) ||
        strlen(csv) > PATH_LENGTH / 2 || (o->plot && strlen(o->plot) > PATH_LENGTH / 2))
        return error_set(error, STATUS_BAD_FILE,
                         "--csv %.500s: must be a shorter name without quotes", csv);
    if (write_csv(csv, data, o, error))
        return error->status;
    for (int i = 0; o->plot && i < count; i++)
        if (draw(&figures[i], csv, o->plot, error))
            return error->status;
    return STATUS_OK;
}
