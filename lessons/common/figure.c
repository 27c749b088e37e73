#include "common/figure.h"

#include <errno.h>
#include <spawn.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { PATH_LENGTH = 4096 };

FILE *figure_csv_open(const char *path, struct error *error)
{
    char partial[PATH_LENGTH];
    snprintf(partial, sizeof partial, "%.4000s.partial", path);
    FILE *file = fopen(partial, "w");
    if (!file)
        error_set(error, STATUS_BAD_FILE, "--csv %.1000s: cannot be written: %s", path,
                  strerror(errno));
    return file;
}

enum status figure_csv_close(FILE *file, const char *path, struct error *error)
{
    char partial[PATH_LENGTH];
    snprintf(partial, sizeof partial, "%.4000s.partial", path);
    const int failed = ferror(file) | fclose(file);
    if (!failed && rename(partial, path) == 0)
        return STATUS_OK;
    error_set(error, STATUS_BAD_FILE, "--csv %.1000s: cannot be written: %s", path,
              strerror(errno));
    unlink(partial);
    return error->status;
}

void figure_csv_abandon(FILE *file, const char *path)
{
    char partial[PATH_LENGTH];
    snprintf(partial, sizeof partial, "%.4000s.partial", path);
    fclose(file);
    unlink(partial);
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

enum status figure_draw(const char *name, const char *csv, const char *output,
                        const char *suffix, struct error *error)
{
    char commands[3 * PATH_LENGTH], script[PATH_LENGTH], path[PATH_LENGTH];
    struct stat info;
    const char *ending = strrchr(output, '.');
    snprintf(path, sizeof path, "%.*s-%s%s", (int)(ending - output), output, suffix, ending);
    if (strpbrk(path, "'\"\n") || strpbrk(csv, "'\"\n"))
        return error_set(error, STATUS_BAD_FILE,
                         "--plot %.1000s: quotes are not allowed in the name", output);
    snprintf(commands, sizeof commands, "csv='%s'; output_file='%s'; is_svg=%d; plots='%s/plots/'", csv, path,
             strcmp(ending, ".svg") == 0, FLASHLAB_ROOT);
    snprintf(script, sizeof script, "%s/plots/%s.gp", FLASHLAB_ROOT, name);
    unlink(path);
    const int failed = run_gnuplot(commands, script);
    if (failed == ENOENT)
        return error_set(error, STATUS_BAD_FILE,
                         "--plot %.1000s: gnuplot is not installed (package gnuplot-nox)",
                         output);
    if (failed || stat(path, &info) != 0 || info.st_size == 0)
        return error_set(error, STATUS_BAD_FILE,
                         "--plot %.1000s: gnuplot made no picture from %.200s", output, script);
    fprintf(stderr, "figure: %s\n", path);
    return STATUS_OK;
}
