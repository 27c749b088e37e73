/* Outcomes of calls that a user's input can make fail, and checks for programmers' bugs.
 *
 * Interface:
 *   A call that can fail for a reason outside the program (a bad file, a shape that does not
 *   fit on chip) returns an enum status and explains itself in a struct error that the caller
 *   owns: error_set() fills both at once.
 *       if (head_dim < 1)
 *           return error_set(error, STATUS_BAD_ARGUMENT,
 *                            "--head-dim %d: must be at least 1", head_dim);
 *   CHECK(condition, ...) guards what only a bug can break. It is always compiled in, prints
 *   file, line and message, and aborts.
 */
#ifndef FLASHLAB_CORE_STATUS_H
#define FLASHLAB_CORE_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

enum status {
    STATUS_OK = 0,
    STATUS_BAD_ARGUMENT,  /* an argument outside what is allowed */
    STATUS_BAD_FILE,      /* a file that cannot be read, understood or written */
    STATUS_OUT_OF_MEMORY, /* the host cannot hold what was asked for */
    STATUS_ON_CHIP_FULL,  /* the tiles of a thread block exceed SRAM or registers */
};

struct error {
    enum status status;
    char text[2048]; /* one message, NUL-terminated, no newline at its end */
};

/* Stores status and the formatted message in *error (cut to fit) and gives status. A macro, so
 * that a reader's tools see which status it is. */
#define error_set(error, status, ...) (error_format(error, status, __VA_ARGS__), (status))

/* Use error_set. */
void error_format(struct error *error, enum status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts text in front of the message: the option that it is about. */
void error_prefix(struct error *error, const char *text);

/* Prints "file:line: bug: message" to stderr and aborts. Use CHECK. */
void check_failed(const char *file, int line, const char *format, ...)
    __attribute__((noreturn, format(printf, 3, 4)));

#define CHECK(condition, ...)                                                                  \
    do {                                                                                       \
        if (!(condition))                                                                      \
            check_failed(__FILE__, __LINE__, __VA_ARGS__);                                     \
    } while (0)

#ifdef __cplusplus
}
#endif

#endif
