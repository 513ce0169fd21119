/* The pace of a CPU while others use it: a neighbour on its core and a clock rate that changes slow it, and no guest sees them.
 *
 * Usage: paced CPU SECONDS
 * Before all others on the CPU, every 5 ms the least of three pieces of 16384 turns of an empty loop (20 us each); prints the time on the
 * monotonic clock and the piece's length, both in nanoseconds, one reading a line. Ends by itself. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

static long piece(void) {
    long begin = now();
    for (long i = 0; i < 16384; i++)
        __asm__ volatile("" ::: "memory");
    return now() - begin;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: paced CPU SECONDS\n");
        return 2;
    }
    cpu_set_t cpu;
    CPU_ZERO(&cpu);
    CPU_SET(atoi(argv[1]), &cpu);
    struct sched_param first = {.sched_priority = 50};
    if (sched_setaffinity(0, sizeof cpu, &cpu) || sched_setscheduler(0, SCHED_FIFO, &first)) {
        perror("paced");
        return 1;
    }
    for (long end = now() + atol(argv[2]) * 1000000000L; now() < end;) {
        long least = piece();
        for (int i = 0; i < 2; i++) {
            long ns = piece();
            least = ns < least ? ns : least;
        }
        printf("%ld %ld\n", now(), least);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    return 0;
}
