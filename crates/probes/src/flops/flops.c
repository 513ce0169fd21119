/*
 * The eight floating-point kernels in C, built at run time by the compilers that are to be compared.
 *
 * The same integrals by the same rule as in kernels.rs, with the same operations in each step: a test counts the
 * instructions that a compiler makes of them. It is a probe process: it takes the probe's argument list and gives the
 * probe's answer (protocol.rs). Called with the one word "results" it prints what each kernel computes.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#define STEPS 1000
#define TOLERANCE 1e-6
#define COEFFICIENTS 14
#define TARGET_NS 250000.0
#define MAX_SAMPLES 1000
#define MAX_CALIBRATION 40

typedef double kernel(long steps, double x, double h, const double *c);

static double module_1(long steps, double x, double h, const double *c) {
    double sum = 0;
    for (long i = 0; i < steps; i++) {
        double y = x * x;
        sum = sum + ((c[0] * y + c[1]) * y + c[2]) / (((c[3] * y + c[4]) * y + c[5]) * y + c[6]);
        x = x + h;
    }
    return sum;
}

static double module_2(long steps, double x, double h, const double *c) {
    double sum = 0;
    for (long i = 0; i < steps; i++) {
        sum = sum + (x - c[0]) / ((x + c[1]) * (x - c[2]));
        x = x + h;
    }
    return sum;
}

static double module_3(long steps, double x, double h, const double *c) {
    double sum = 0;
    for (long i = 0; i < steps; i++) {
        double y = x * x;
        double p = ((((((c[0] * y - c[1]) * y + c[2]) * y - c[3]) * y + c[4]) * y) + c[5]) * y + c[6];
        sum = sum + (c[7] * x) * p;
        x = x + h;
    }
    return sum;
}

static double module_4(long steps, double x, double h, const double *c) {
    double sum = 0;
    for (long i = 0; i < steps; i++) {
        double y = x * x;
        double p = ((((c[0] * y + c[1]) * y + c[2]) * y + c[3]) * y + c[4]) * y + c[5];
        sum = sum + (c[6] * y) * p;
        x = x + h;
    }
    return sum;
}

/* sinh(x)/x and cosh(x) for y = x * x: eleven multiplications and eleven additions. */
#define SINH(y) (((((c[0] * (y) + c[1]) * (y) + c[2]) * (y) + c[3]) * (y) + c[4]) * (y) + c[5])
#define COSH(y) ((((((c[6] * (y) + c[7]) * (y) + c[8]) * (y) + c[9]) * (y) + c[10]) * (y) + c[11]) * (y) + c[12])

static double module_5(long steps, double x, double h, const double *c) {
    double sum = 0;
    for (long i = 0; i < steps; i++) {
        double y = x * x, p = SINH(y), q = COSH(y);
        sum = sum + h * (((c[13] * x) * p) / q);
        x = x + h;
    }
    return sum;
}

static double module_6(long steps, double x, double h, const double *c) {
    double sum = 0;
    for (long i = 0; i < steps; i++) {
        double y = x * x, p = SINH(y), q = COSH(y);
        sum = sum + h * (((c[13] * x) * p) * q);
        x = x + h;
    }
    return sum;
}

static double module_7(long steps, double x, double h, const double *c) {
    double sum = 0;
    for (long i = 0; i < steps; i++) {
        double y = x * x;
        sum = sum + (c[0] / (x + c[1]) - (x / (y - c[2])) * ((c[3] * y) / (c[4] - y)));
        x = x + h;
    }
    return sum;
}

static double module_8(long steps, double x, double h, const double *c) {
    double sum = 0;
    for (long i = 0; i < steps; i++) {
        double y = x * x, p = SINH(y), q = COSH(y);
        sum = sum + h * (((c[13] * y) * (p * p)) * q);
        x = x + h;
    }
    return sum;
}

#define HYPERBOLIC(factor) \
    {1.0 / 39916800, 1.0 / 362880, 1.0 / 5040, 1.0 / 120, 1.0 / 6, 1, 1.0 / 479001600, 1.0 / 3628800, 1.0 / 40320, \
     1.0 / 720, 1.0 / 24, 1.0 / 2, 1, factor}

static const struct module {
    kernel *run;
    int operations; /* in one step */
    int weighs;     /* each step is multiplied by h already */
    double integral;
    double coefficients[COEFFICIENTS];
} modules[8] = {
    {module_1, 14, 0, 1.522907933120036, {6, 24, 22, 2, 12, 22, 12}},
    {module_2, 7, 0, 0.41849410839291784, {2, 1, 3}},
    {module_3, 17, 0, 0.9193953882637205,
     {1.0 / 6227020800, 1.0 / 39916800, 1.0 / 362880, 1.0 / 5040, 1.0 / 120, -1.0 / 6, 1, 2}},
    {module_4, 15, 0, 0.7174008807851491, {-1.0 / 3628800, 1.0 / 40320, -1.0 / 720, 1.0 / 24, -0.5, 1, 3}},
    {module_5, 29, 1, 0.8675616609660542, HYPERBOLIC(2)},
    {module_6, 29, 1, 1.3810978455418155, HYPERBOLIC(2)},
    {module_7, 12, 0, 0.8630462173553426, {1, 1, 2, 2, 3}},
    {module_8, 30, 1, 1.623067836619624, HYPERBOLIC(3)},
};

/* The compiler must know neither the kernel nor its arguments: it would compute the result itself. */
static kernel *volatile chosen;
static const double *volatile coefficients;
static volatile long steps = STEPS;
static volatile double step = 1.0 / STEPS;
static volatile double sink;

static double integral(const struct module *m) { return m->weighs ? sink : sink * step; }

static int wrong(const struct module *m) {
    double off = integral(m) / m->integral - 1;
    return !(off < TOLERANCE && off > -TOLERANCE);
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Runs the kernel so many times and gives the nanoseconds. */
static uint64_t batch(uint64_t operations) {
    uint64_t begin = now_ns();
    for (uint64_t i = 0; i < operations; i++) sink = chosen(steps, step / 2, step, coefficients);
    return now_ns() - begin;
}

static uint64_t calibrate(uint64_t hint, uint64_t slice) {
    uint64_t operations = hint ? hint : 1, deadline = now_ns() + slice;
    for (int i = 0; i < MAX_CALIBRATION && now_ns() < deadline; i++) {
        double ns = (double)batch(operations);
        /* The first batch is cold: it settles nothing. */
        if (i && ((ns >= TARGET_NS / 2 && ns <= TARGET_NS * 2) || (operations == 1 && ns > TARGET_NS / 2))) break;
        double ideal = (double)operations * TARGET_NS / (ns > 1 ? ns : 1), most = (double)operations * 16;
        operations = (uint64_t)(ideal > most ? most : ideal < 1 ? 1 : ideal);
    }
    return operations;
}

/* Whether this thread was switched out against its will, or moved, since the last call. */
static int disturbed(void) {
    static long switches = -1;
    static int cpu;
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    int here = sched_getcpu(), hit = switches >= 0 && (usage.ru_nivcsw != switches || here != cpu);
    switches = usage.ru_nivcsw;
    cpu = here;
    return hit;
}

static int fail(const char *sentence) {
    printf("fail %s\n", sentence);
    return 0;
}

static int measure(const struct module *m, uint64_t slice, uint64_t hint) {
    static uint64_t taken[MAX_SAMPLES];
    static int flags[MAX_SAMPLES];
    uint64_t operations = calibrate(hint, slice), begin = now_ns();
    int n = 0;
    disturbed();
    do {
        taken[n] = batch(operations);
        flags[n] = disturbed();
        n++;
    } while (n < MAX_SAMPLES && now_ns() - begin < slice);
    if (wrong(m)) {
        printf("fail the result is %.15g, and the integral is %.15g\n", integral(m), m->integral);
        return 0;
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("resident %llu\nbatch %llu\n", 1024ull * (unsigned long long)usage.ru_maxrss,
           (unsigned long long)operations);
    for (int i = 0; i < n; i++)
        printf("s %llu %llu %d\n", (unsigned long long)operations * STEPS * (unsigned long long)m->operations,
               (unsigned long long)taken[i], flags[i]);
    printf("end\n");
    return 0;
}

static void choose(const struct module *m) {
    chosen = m->run;
    coefficients = m->coefficients;
}

static int print_results(void) {
    for (int i = 0; i < 8; i++) {
        choose(&modules[i]);
        batch(1);
        printf("%.17g\n", integral(&modules[i]));
    }
    return 0;
}

/* __probe NAME SLICE_NS BATCH_OPS CPUS COUNTERS DIR [KEY=VALUE...] */
int main(int argc, char **argv) {
    if (argc == 2 && !strcmp(argv[1], "results")) return print_results();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (argc < 8 || strcmp(argv[1], "__probe")) return fail("the request to the probe process is not well-formed");
    long module = 0;
    for (int i = 8; i < argc; i++)
        if (!strncmp(argv[i], "module=", 7)) module = atol(argv[i] + 7);
    if (module < 1 || module > 8) return fail("parameter module must be a whole number from 1 to 8");
    if (argv[5][0]) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(atoi(argv[5]), &set);
        if (sched_setaffinity(0, sizeof set, &set)) return fail("cannot use the CPU that was asked for");
    }
    choose(&modules[module - 1]);
    return measure(&modules[module - 1], strtoull(argv[3], 0, 10), strtoull(argv[4], 0, 10));
}
