/* One line about the GPU and exit status 0, or why there is none and 2: for the Makefile. */
#include <stdio.h>

#include "results.h"

int main(void)
{
    struct error error;
    if (results_machine(stdout, "GPU found", &error)) {
        printf("%s\n", error.text);
        return 2;
    }
    return 0;
}
