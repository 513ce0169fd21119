/*
 * A pointer chase in C, written apart from the probe: nanoseconds of a load by size and stride.
 *
 *     chase CPU SLICE_NS SIZE STRIDE small|huge
 *
 * The order is a Fisher-Yates shuffle of all lines, linked one behind the other; the probe makes its cycle otherwise.
 * With a stride of a page or more each line lies one line further into its page, as the probe defines it. Prints
 * nanoseconds per load, one line per batch.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define HUGE_PAGE (2ul << 20)
#define BATCH_NS 250000.0

static void die(const char *what) {
    fprintf(stderr, "chase: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t state = 88172645463325252u;

/* Marsaglia's xorshift. */
static uint64_t random64(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

#define ONE p = *(void *volatile *)p;
#define EIGHT ONE ONE ONE ONE ONE ONE ONE ONE

static void *volatile sink;

static void *walk(void *p, uint64_t eights) {
    for (uint64_t i = 0; i < eights; i++) { EIGHT }
    return p;
}

int main(int argc, char **argv) {
    if (argc != 6) {
        fprintf(stderr, "usage: chase CPU SLICE_NS SIZE STRIDE small|huge\n");
        return 2;
    }
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(atoi(argv[1]), &set);
    if (sched_setaffinity(0, sizeof set, &set)) die("sched_setaffinity");
    uint64_t slice = strtoull(argv[2], 0, 10), size = strtoull(argv[3], 0, 10), stride = strtoull(argv[4], 0, 10),
             count = size / stride;
    state ^= now_ns();
    uint64_t room = (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    char *base = aligned_alloc(HUGE_PAGE, room);
    uint64_t *order = malloc(count * sizeof *order);
    if (!base || !order) die("malloc");
    madvise(base, room, strcmp(argv[5], "huge") ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
    for (uint64_t i = 0; i < count; i++) order[i] = i * stride + (stride >= 4096 ? i * 64 % 4096 : 0);
    for (uint64_t i = count - 1; i > 0; i--) {
        uint64_t j = random64() % (i + 1), t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
    for (uint64_t i = 0; i < count; i++) *(void **)(base + order[i]) = base + order[(i + 1) % count];
    void *p = base + order[0];
    free(order);
    uint64_t eights = 1;
    for (int i = 0; i < 40; i++) {
        uint64_t begin = now_ns();
        p = walk(p, eights);
        double ns = (double)(now_ns() - begin);
        if (i && ns > BATCH_NS / 2 && ns < BATCH_NS * 2) break;
        double ideal = (double)eights * BATCH_NS / (ns + 1), most = (double)eights * 16;
        eights = (uint64_t)(ideal > most ? most : ideal < 1 ? 1 : ideal);
    }
    uint64_t start = now_ns();
    do {
        uint64_t begin = now_ns();
        p = walk(p, eights);
        printf("%.4f\n", (double)(now_ns() - begin) / (double)(eights * 8));
    } while (now_ns() - start < slice);
    sink = p;
    return 0;
}
