#include "common/fault.h"

#include <omp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILD_SECONDS = 20 };

_Noreturn static void run_child(int error_end, void (*function)(void *context), void *context)
{
    const struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    dup2(error_end, STDERR_FILENO);
    close(error_end);
    signal(SIGSEGV, SIG_DFL); /* CMocka's handler would report the crash as its own */
    signal(SIGBUS, SIG_DFL);
    alarm(CHILD_SECONDS);
    omp_set_num_threads(1); /* the parent's other threads do not exist in the child */
    function(context);
    _exit(0);
}

/* Everything from the pipe; what exceeds size - 1 bytes is read, so that the writer does not
 * block, and dropped. */
static void read_text(int read_end, char *text, size_t size)
{
    char chunk[1024];
    size_t at = 0;
    for (ssize_t got; (got = read(read_end, chunk, sizeof chunk)) > 0;) {
        const size_t room = size - 1 - at;
        const size_t kept = (size_t)got < room ? (size_t)got : room;
        memcpy(text + at, chunk, kept);
        at += kept;
    }
    text[at] = '\0';
}

struct fault fault_of(void (*function)(void *context), void *context)
{
    struct fault fault = {false, "fault_of: no pipe or no child"};
    int ends[2];
    if (pipe(ends) != 0)
        return fault;
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        run_child(ends[1], function, context);
    }
    close(ends[1]);
    int outcome = 0;
    if (child > 0) {
        read_text(ends[0], fault.text, sizeof fault.text);
        waitpid(child, &outcome, 0);
        fault.aborted = WIFSIGNALED(outcome) && WTERMSIG(outcome) == SIGABRT;
    }
    close(ends[0]);
    return fault;
}

bool fault_is_bug(const struct fault *fault, const char *file, const char *message)
{
    const size_t length = strlen(file);
    if (!fault->aborted || strncmp(fault->text, file, length) != 0 ||
        fault->text[length] != ':')
        return false;
    char *rest;
    const char *digits = fault->text + length + 1;
    const long line = strtol(digits, &rest, 10);
    static const char label[] = ": bug: ";
    if (rest == digits || line < 1 || strncmp(rest, label, sizeof label - 1) != 0)
        return false;
    const char *end = strchr(rest, '\n');
    return end && end[1] == '\0' && strstr(rest + sizeof label - 1, message);
}
