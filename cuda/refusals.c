#include "cuda/refusals.h"

/* Turing: the oldest GPU that CUDA 13 compiles for. */
enum { OLDEST_MAJOR = 7, OLDEST_MINOR = 5 };

enum status refuse_old_gpu(const char *name, int major, int minor, struct error *error)
{
    if (major > OLDEST_MAJOR || (major == OLDEST_MAJOR && minor >= OLDEST_MINOR))
        return STATUS_OK;
    return error_set(error, STATUS_BAD_ARGUMENT,
                     "%s has compute capability %d.%d: %d.%d or later is needed", name, major,
                     minor, OLDEST_MAJOR, OLDEST_MINOR);
}

const char *counters_advice(enum counters_failure failure)
{
    switch (failure) {
    case COUNTERS_PRIVILEGED:
        return "\nThe driver lets only administrators read hardware counters: run as root, or "
               "have the\nadministrator load the nvidia module with "
               "NVreg_RestrictProfilingToAdminUsers=0\n"
               "(https://developer.nvidia.com/ERR_NVGPUCTRPERM).";
    case COUNTERS_TAKEN:
        return "\nAnother profiler watches this process: its counters can be read from what it "
               "writes\n(flashlab compare --ncu FILE).";
    default:
        return "";
    }
}
