#include "core/machine.h"

#include <pthread.h>
#include <stddef.h>
#include <strings.h>

#include "core/machine_file.h"

/* The table is read from its text when it is first asked for, and never changes. */
enum { MOST_MACHINES = 16 };
static struct machine machines[MOST_MACHINES];
static int machine_count;

static void read_table(void)
{
    struct error error;
    CHECK(machine_file_parse(machines, MOST_MACHINES, &machine_count, machine_table_text,
                             "sim/core/machines.txt", &error) == STATUS_OK,
          "%s", error.text);
}

const struct machine *machine_table(int *count)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_table);
    *count = machine_count;
    return machines;
}

const struct machine *machine_find(const char *name)
{
    int count;
    const struct machine *table = machine_table(&count);
    for (int i = 0; i < count; i++)
        if (strcasecmp(table[i].name, name) == 0)
            return &table[i];
    return NULL;
}

const struct machine *machine_default(void)
{
    return machine_find("H200");
}
