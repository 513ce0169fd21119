/* How much of the time a CPU is slowed by what no guest sees: a neighbour on its core, a clock rate that went down.
 *
 * Usage: pace CPU SECONDS [beside]
 * A turn of an empty loop takes the same time always. Every 8 ms, the least of three pieces of 32768 turns; prints the
 * nanoseconds of each such reading, in ascending order, one a line.
 * `beside` others, who have the CPU between: before all of them, every 5 ms the least of three pieces of 16384 turns
 * (20 us each); prints the time on the monotonic clock and the piece's length, both in nanoseconds, one reading a line
 * as it comes. Ends by itself. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

static long piece(long turns) {
    long begin = now();
    for (long i = 0; i < turns; i++)
        __asm__ volatile("" ::: "memory");
    return now() - begin;
}

static int ascending(const void *a, const void *b) {
    return (*(const long *)a > *(const long *)b) - (*(const long *)a < *(const long *)b);
}

static long least_of_three(long turns) {
    long least = piece(turns);
    for (int i = 0; i < 2; i++) {
        long ns = piece(turns);
        least = ns < least ? ns : least;
    }
    return least;
}

static int beside_others(long end) {
    struct sched_param first = {.sched_priority = 50};
    if (sched_setscheduler(0, SCHED_FIFO, &first)) {
        perror("pace: sched_setscheduler");
        return 1;
    }
    while (now() < end) {
        long least = least_of_three(16384);
        printf("%ld %ld\n", now(), least);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    return 0;
}

int main(int argc, char **argv) {
    int beside = argc == 4 && !strcmp(argv[3], "beside");
    if (argc != 3 && !beside) {
        fprintf(stderr, "usage: pace CPU SECONDS [beside]\n");
        return 2;
    }
    cpu_set_t cpu;
    CPU_ZERO(&cpu);
    CPU_SET(atoi(argv[1]), &cpu);
    if (sched_setaffinity(0, sizeof cpu, &cpu)) {
        perror("pace: sched_setaffinity");
        return 1;
    }
    if (beside)
        return beside_others(now() + atol(argv[2]) * 1000000000L);
    size_t most = (size_t)atoi(argv[2]) * 125 + 1, n = 0;
    long *readings = malloc(most * sizeof *readings), end = now() + atol(argv[2]) * 1000000000L;
    if (!readings)
        return 1;
    while (now() < end && n < most) {
        readings[n++] = least_of_three(32768);
        for (long next = now() + 8000000; now() < next;)
            ;
    }
    qsort(readings, n, sizeof *readings, ascending);
    for (size_t i = 0; i < n; i++)
        printf("%ld\n", readings[i]);
    return 0;
}
