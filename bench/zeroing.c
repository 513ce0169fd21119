/* Faults on pages of a file in memory that are allocated but not zeroed (new), or the same faults once they are
 * (again): zeroing new|again PAGES SECONDS CPU. Prints nanoseconds of CPU per page of a whole turn, and of the writes
 * alone. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static double clock_ns(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static void must(int ok, const char *what) {
    if (!ok) {
        perror(what);
        exit(1);
    }
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: zeroing new|again PAGES SECONDS CPU\n");
        return 2;
    }
    int new = strcmp(argv[1], "new") == 0;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = strtoul(argv[2], NULL, 10), bytes = (pages + 2) * page;
    double end = strtod(argv[3], NULL) * 1e9;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(atoi(argv[4]), &set);
    must(sched_setaffinity(0, sizeof set, &set) == 0, "sched_setaffinity");
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    int fd = memfd_create("zeroing", 0);
    must(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0, "memfd_create");
    volatile char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    must(p != MAP_FAILED, "mmap");
    for (size_t i = 0; i < pages + 2; i++)
        p[i * page] = 1;
    double begin = clock_ns(CLOCK_THREAD_CPUTIME_ID), writes = 0;
    long turns = 0;
    for (; clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin < end; turns++) {
        if (new) {
            must(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)page, (off_t)(pages * page)) == 0,
                 "fallocate");
            must(fallocate(fd, 0, (off_t)page, (off_t)(pages * page)) == 0, "fallocate");
        }
        p[0] = p[(pages + 1) * page] = 1;
        must(madvise((void *)p, bytes, MADV_DONTNEED) == 0, "madvise");
        double from = clock_ns(CLOCK_MONOTONIC);
        for (size_t i = 1; i <= pages; i++)
            p[i * page] = 1;
        writes += clock_ns(CLOCK_MONOTONIC) - from;
    }
    double all = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
    printf("%.2f %.2f\n", all / (double)turns / (double)pages, writes / (double)turns / (double)pages);
    return 0;
}
