/* Threads: making one and waiting for its end. */
#define BATCH_NS 50000u /* as the probe: see HANDOVER_BATCH_NS */
#include "loop.h"

#include <pthread.h>

static void *nothing(void *argument) { return argument; }

static uint64_t create_join(uint64_t ops) {
    static int mark;
    uint64_t begin = now_ns();
    while (ops--) {
        pthread_t thread;
        void *answer;
        if (pthread_create(&thread, NULL, nothing, &mark) || pthread_join(thread, &answer) || answer != &mark)
            die("pthread_create");
    }
    return now_ns() - begin;
}

int main(int argc, char **argv) {
    loop_args(argc, argv);
    if (strcmp(loop_probe, "thread.create")) die("no such probe here");
    loop_run(create_join, 1);
    return 0;
}
