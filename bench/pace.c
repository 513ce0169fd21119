/* How much of the time a CPU is slowed by what no guest sees: a neighbour on its core, a clock rate that went down.
 *
 * Usage: pace CPU SECONDS
 * A turn of an empty loop takes the same time always. Every 8 ms, the least of three pieces of 32768 turns; prints the nanoseconds of
 * each such reading, in ascending order, one a line. Ends by itself. */
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
    for (long i = 0; i < 32768; i++)
        __asm__ volatile("" ::: "memory");
    return now() - begin;
}

static int ascending(const void *a, const void *b) {
    return (*(const long *)a > *(const long *)b) - (*(const long *)a < *(const long *)b);
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: pace CPU SECONDS\n");
        return 2;
    }
    cpu_set_t cpu;
    CPU_ZERO(&cpu);
    CPU_SET(atoi(argv[1]), &cpu);
    if (sched_setaffinity(0, sizeof cpu, &cpu)) {
        perror("pace: sched_setaffinity");
        return 1;
    }
    size_t most = (size_t)atoi(argv[2]) * 125 + 1, n = 0;
    long *readings = malloc(most * sizeof *readings), end = now() + atol(argv[2]) * 1000000000L;
    if (!readings)
        return 1;
    while (now() < end && n < most) {
        long least = piece();
        for (int i = 0; i < 2; i++) {
            long ns = piece();
            least = ns < least ? ns : least;
        }
        readings[n++] = least;
        for (long next = now() + 8000000; now() < next;)
            ;
    }
    qsort(readings, n, sizeof *readings, ascending);
    for (size_t i = 0; i < n; i++)
        printf("%ld\n", readings[i]);
    return 0;
}
