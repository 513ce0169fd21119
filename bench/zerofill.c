/* The article's loop with mmap, written independently of the probes: zerofill alloc|touch PAGES CPU SLICE_NS.
 * Prints nanoseconds per turn, one number per batch of about 0.1 ms. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static void turn(size_t bytes, size_t page, int touch) {
    volatile char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    if (touch)
        for (size_t i = 0; i < bytes; i += page)
            p[i] = 1;
    if (munmap((void *)p, bytes) != 0) {
        perror("munmap");
        exit(1);
    }
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: zerofill alloc|touch PAGES CPU SLICE_NS\n");
        return 2;
    }
    int touch = strcmp(argv[1], "touch") == 0;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = strtoul(argv[2], NULL, 10) * page;
    double slice = strtod(argv[4], NULL);
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(atoi(argv[3]), &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) {
        perror("sched_setaffinity");
        return 1;
    }
    /* Base pages, as for the probe. */
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    long turns = 1;
    for (;;) {
        double begin = now();
        for (long i = 0; i < turns; i++)
            turn(bytes, page, touch);
        if (now() - begin > 5e4 || turns > 1 << 20)
            break;
        turns *= 2;
    }
    for (double begin = now(); now() - begin < slice;) {
        double from = now();
        for (long i = 0; i < turns; i++)
            turn(bytes, page, touch);
        printf("%.3f\n", (now() - from) / turns);
    }
    return 0;
}
