/*
 * The loop of the independent C programs that check the probes: pin, calibrate, then batch after batch until the slice
 * is over.
 *
 * Calling convention of every program here (one program per family, bench/accuracy/FAMILY.c):
 *
 *     FAMILY PROBE CPUS SLICE_NS DIR [KEY=VALUE...]
 *
 * PROBE is the probe's name (syscall.null), CPUS a comma list (the first for this process, the second for a partner),
 * DIR a directory for files. It prints nanoseconds per operation, one line per batch, and exits with 0; with a sentence
 * on standard error and 1 when something went wrong.
 *
 * Nothing here is shared with the probes but the length of a batch (0.25 ms) and the definition of the operation.
 */
#ifndef LOOP_H
#define LOOP_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifndef BATCH_NS
#define BATCH_NS 250000u
#endif
#define MAX_BATCHES 1000

static const char *loop_probe, *loop_dir;
static int loop_cpus[64], loop_cpu_count;
static uint64_t loop_slice_ns;
static char **loop_pairs;

static void die(const char *what) {
    fprintf(stderr, "%s: %s: %s\n", loop_probe ? loop_probe : "accuracy", what, strerror(errno));
    exit(1);
}

static inline uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void pin_to(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set)) die("sched_setaffinity");
}

/* The value of a parameter, or the default. */
static inline const char *param(const char *name, const char *otherwise) {
    size_t n = strlen(name);
    for (char **p = loop_pairs; *p; p++)
        if (!strncmp(*p, name, n) && (*p)[n] == '=') return *p + n + 1;
    return otherwise;
}

static inline void loop_args(int argc, char **argv) {
    if (argc < 5) {
        fprintf(stderr, "usage: %s PROBE CPUS SLICE_NS DIR [KEY=VALUE...]\n", argv[0]);
        exit(2);
    }
    loop_probe = argv[1];
    for (char *s = strtok(argv[2], ","); s && loop_cpu_count < 64; s = strtok(NULL, ","))
        loop_cpus[loop_cpu_count++] = atoi(s);
    loop_slice_ns = strtoull(argv[3], NULL, 10);
    loop_dir = argv[4];
    loop_pairs = argv + 5;
    if (loop_cpu_count) pin_to(loop_cpus[0]);
}

/* A body does its operation `ops` times and returns the nanoseconds that took, without what it set up or cleared
 * away. */
typedef uint64_t (*loop_body)(uint64_t ops);

/* Measures and prints. One call of the operation counts as `per_op` operations (pages of a region, say). */
static inline void loop_run(loop_body body, double per_op) {
    static double value[MAX_BATCHES];
    uint64_t ops = 1, deadline = now_ns() + loop_slice_ns;
    for (int step = 0; step < 40 && now_ns() < deadline; step++) {
        uint64_t ns = body(ops);
        /* The first operation is cold: it settles nothing. */
        if (step && ((ns >= BATCH_NS / 2 && ns <= BATCH_NS * 2) || (ops == 1 && ns > BATCH_NS / 2))) break;
        double ideal = (double)ops * BATCH_NS / (double)(ns ? ns : 1);
        ops = ideal > 16.0 * (double)ops ? ops * 16 : ideal < 1 ? 1 : (uint64_t)ideal;
    }
    int n = 0;
    uint64_t begin = now_ns();
    while (n < MAX_BATCHES && (n == 0 || now_ns() - begin < loop_slice_ns))
        value[n++] = (double)body(ops) / ((double)ops * per_op);
    for (int i = 0; i < n; i++) printf("%.9g\n", value[i]);
}

#endif
