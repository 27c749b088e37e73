#include "cuda/observation.h"

#include <stdlib.h>

void observation_free(struct observation *x)
{
    step_log_free(&x->steps);
    free(x->o);
    free(x->lse);
    *x = (struct observation){0};
}
