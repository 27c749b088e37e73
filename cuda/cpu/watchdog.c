/* Notices a kernel that runs on without an access to memory or a wait, which nothing else
 * counts: a thread looks at the workers every second while a grid runs. The process has one,
 * for a launch that started it and waited for its end would take longer than a small grid. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "core/status.h"
#include "cuda/cpu/worker.h"

enum { MAX_WORKERS = 1024 };

static struct {
    pid_t process; /* that has the thread: fork() does not give it to a child */
    pthread_mutex_t lock;
    bool running;
    int workers;
    struct watched {
        const struct worker *worker;
        const struct cpu_now *now;
        int64_t rounds; /* when it was last looked at */
        int lane;
        int silent; /* looks since it did anything */
    } watched[MAX_WORKERS];
} dog;

static void stop_silent(const struct watched *w)
{
    char text[160];
    const struct cpu_place *last = w->now->last;
    snprintf(text, sizeof text,
             "no access to memory and no wait for %d s: does the loop after this line end?",
             w->silent);
    cpu_fail(w->now, last && last->at.file ? last->at.file : w->now->file,
             last ? last->at.line : 0, text);
}

/* A lane that makes accesses pauses now and then. A worker that has run out of blocks does
 * nothing either: it has no kernel then. */
static void look(struct watched *w)
{
    const int64_t rounds = __atomic_load_n(&w->worker->rounds, __ATOMIC_RELAXED);
    const bool busy = __atomic_load_n(&w->worker->in_lane, __ATOMIC_RELAXED);
    const int lane = __atomic_load_n(&w->now->lane, __ATOMIC_RELAXED);
    const bool same = rounds == w->rounds && lane == w->lane;
    w->silent = busy && same ? w->silent + 1 : 0;
    w->rounds = rounds;
    w->lane = lane;
    if (w->silent >= cpu_options.silent_seconds)
        stop_silent(w);
}

static void *watch(void *unused)
{
    for (;;) {
        sleep(1);
        pthread_mutex_lock(&dog.lock);
        for (int n = 0; dog.running && n < dog.workers; n++)
            look(&dog.watched[n]);
        pthread_mutex_unlock(&dog.lock);
    }
    return unused;
}

static void start(void)
{
    pthread_t thread;
    pthread_mutex_init(&dog.lock, NULL);
    CHECK(pthread_create(&thread, NULL, watch, NULL) == 0, "no thread for the watchdog");
    pthread_detach(thread);
    dog.process = getpid();
}

void cpu_watch_begin(void)
{
    if (dog.process != getpid())
        start();
    pthread_mutex_lock(&dog.lock);
    dog.workers = 0;
    dog.running = true;
    pthread_mutex_unlock(&dog.lock);
}

void cpu_watch_worker(const struct worker *worker, const struct cpu_now *now)
{
    pthread_mutex_lock(&dog.lock);
    CHECK(dog.workers < MAX_WORKERS, "more than %d OpenMP threads", MAX_WORKERS);
    dog.watched[dog.workers++] = (struct watched){.worker = worker, .now = now};
    pthread_mutex_unlock(&dog.lock);
}

void cpu_watch_end(void)
{
    pthread_mutex_lock(&dog.lock);
    dog.running = false;
    pthread_mutex_unlock(&dog.lock);
}
