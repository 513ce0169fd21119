/* How much the place of a word in memory decides what two CPUs pay for it.
 *
 * Usage: places CPU CPU PAGES            (cc -O2 -pthread -o places bench/places.c)
 * In each of PAGES pages, elsewhere in each: a word goes there and back 20,000 times between the two CPUs, which spin
 * for it; then both take a mutex without a pause for 2 ms. Prints a line of nanoseconds per page, round trip and
 * acquisition, and the mean, least and most of all. What the probes ipc.shm (placement=cross) and sync.mutex_contended
 * (threads=2) say is to be compared with the means. Ends by itself. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

enum { TRIPS = 20000, WINDOW = 2000000, STRIDE = 4096 + 128 };

struct place {
    _Atomic unsigned turn;
    char apart[124];
    pthread_mutex_t lock;
    long guarded;
};

static char *base;
static int cpus[2];
static _Atomic int current = -1, ended;
static _Atomic long taken[2][16];

static struct place *at(int page) { return (struct place *)(base + (size_t)page * STRIDE); }

static long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set)) {
        perror("places: sched_setaffinity");
        exit(1);
    }
}

static void take(struct place *p, int side) {
    pthread_mutex_lock(&p->lock);
    p->guarded++;
    pthread_mutex_unlock(&p->lock);
    atomic_store_explicit(&taken[side][0], atomic_load_explicit(&taken[side][0], memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

/* Even stages are round trips in page stage / 2, odd ones contention for its mutex. */
static void *partner(void *unused) {
    pin(cpus[1]);
    for (int stage = 0, seen; (seen = atomic_load(&current)) != -2;) {
        if (seen < stage)
            continue;
        struct place *p = at(seen / 2);
        if (seen % 2 == 0) {
            for (int i = 0; i < TRIPS; i++) {
                while (atomic_load_explicit(&p->turn, memory_order_acquire) != 1)
                    __builtin_ia32_pause();
                atomic_store_explicit(&p->turn, 0, memory_order_release);
            }
        } else {
            while (atomic_load_explicit(&current, memory_order_relaxed) == seen)
                take(p, 1);
        }
        stage = seen + 1;
        atomic_store(&ended, stage);
    }
    return unused;
}

static double round_trips(struct place *p) {
    long begin = now();
    for (int i = 0; i < TRIPS; i++) {
        atomic_store_explicit(&p->turn, 1, memory_order_release);
        while (atomic_load_explicit(&p->turn, memory_order_acquire) != 0)
            __builtin_ia32_pause();
    }
    return (double)(now() - begin) / TRIPS;
}

static double acquisitions(struct place *p) {
    long begin = now(), before = taken[0][0] + taken[1][0], ns;
    do
        for (int i = 0; i < 16; i++)
            take(p, 0);
    while ((ns = now() - begin) < WINDOW);
    return (double)ns / (double)(taken[0][0] + taken[1][0] - before);
}

int main(int argc, char **argv) {
    int pages = argc == 4 ? atoi(argv[3]) : 0;
    if (pages < 1 || pages > 4096) {
        fprintf(stderr, "usage: places CPU CPU PAGES\n");
        return 2;
    }
    cpus[0] = atoi(argv[1]), cpus[1] = atoi(argv[2]);
    pin(cpus[0]);
    base = mmap(NULL, (size_t)(pages + 1) * STRIDE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_t other;
    if (base == MAP_FAILED || pthread_create(&other, NULL, partner, NULL))
        return 1;
    double sum[2] = {0, 0}, least[2] = {1e18, 1e18}, most[2] = {0, 0};
    for (int page = 0; page < pages; page++) {
        double ns[2];
        for (int kind = 0; kind < 2; kind++) {
            atomic_store(&current, 2 * page + kind);
            ns[kind] = kind ? acquisitions(at(page)) : round_trips(at(page));
            if (kind)
                atomic_store(&current, -1);
            while (atomic_load(&ended) != 2 * page + kind + 1)
                ;
            sum[kind] += ns[kind];
            least[kind] = ns[kind] < least[kind] ? ns[kind] : least[kind];
            most[kind] = ns[kind] > most[kind] ? ns[kind] : most[kind];
        }
        printf("%.1f %.1f\n", ns[0], ns[1]);
    }
    atomic_store(&current, -2);
    pthread_join(other, NULL);
    printf("round trip: mean %.1f, least %.1f, most %.1f; mutex: mean %.1f, least %.1f, most %.1f\n",
           sum[0] / pages, least[0], most[0], sum[1] / pages,
           least[1], most[1]);
    return 0;
}
