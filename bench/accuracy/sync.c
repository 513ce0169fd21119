/* A free mutex, and a condition variable to and fro. See loop.h for the calling convention. */
#include "loop.h"

#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ours = PTHREAD_COND_INITIALIZER, theirs = PTHREAD_COND_INITIALIZER;
static volatile uint64_t guarded;
static int partner_cpu;

static uint64_t lock_unlock(uint64_t ops) {
    uint64_t begin = now_ns();
    for (uint64_t i = 0; i < ops; i++) {
        pthread_mutex_lock(&mutex);
        guarded++;
        pthread_mutex_unlock(&mutex);
    }
    return now_ns() - begin;
}

static uint64_t to_and_fro(uint64_t ops) {
    uint64_t begin = now_ns();
    for (uint64_t i = 0; i < ops; i++) {
        pthread_mutex_lock(&mutex);
        guarded = 1;
        pthread_cond_signal(&theirs);
        while (guarded == 1) pthread_cond_wait(&ours, &mutex);
        pthread_mutex_unlock(&mutex);
    }
    return now_ns() - begin;
}

static void *answer(void *unused) {
    pin_to(partner_cpu);
    pthread_mutex_lock(&mutex);
    for (;;) {
        while (guarded == 0) pthread_cond_wait(&theirs, &mutex);
        guarded = 0;
        pthread_cond_signal(&ours);
    }
    return unused;
}

static void *sleep_on(void *unused) {
    for (;;) pause();
    return unused;
}

int main(int argc, char **argv) {
    loop_args(argc, argv);
    int condvar = !strcmp(loop_probe, "sync.condvar");
    partner_cpu = loop_cpus[!strcmp(param("placement", "same"), "cross")];
    pthread_t thread;
    if (pthread_create(&thread, NULL, condvar ? answer : sleep_on, NULL)) die("pthread_create");
    loop_run(condvar ? to_and_fro : lock_unlock, 1);
    return 0;
}
