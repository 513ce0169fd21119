/* Signals: installing a handler, a signal to oneself, and the fault of a forbidden write. */
#include "loop.h"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

static volatile uint64_t caught;
static char *page;

static void count(int sig) {
    (void)sig;
    caught++;
}

static void check_caught(uint64_t before, uint64_t ops) {
    if (caught - before != ops) {
        errno = 0;
        die("the handler did not run once for each signal");
    }
}

static uint64_t install(uint64_t ops) {
    struct sigaction new, old;
    memset(&new, 0, sizeof new);
    new.sa_handler = count;
    uint64_t begin = now_ns();
    while (ops--)
        if (sigaction(SIGUSR1, &new, &old)) die("sigaction");
    return now_ns() - begin;
}

static uint64_t handle(uint64_t ops) {
    uint64_t n = ops, before = caught, begin = now_ns();
    pid_t me = getpid();
    while (ops--)
        if (kill(me, SIGUSR1)) die("kill");
    uint64_t ns = now_ns() - begin;
    check_caught(before, n);
    return ns;
}

static void step_over(int sig, siginfo_t *info, void *context) {
    (void)sig;
    if (info->si_addr != page) abort();
    ucontext_t *c = context;
#if defined(__x86_64__)
    c->uc_mcontext.gregs[REG_RIP] += 3; /* c6 00 00: movb $0, (%rax) */
#elif defined(__aarch64__)
    c->uc_mcontext.pc += 4;
#endif
    caught++;
}

static uint64_t fault(uint64_t ops) {
    uint64_t n = ops, before = caught, begin = now_ns();
    while (ops--) {
#if defined(__x86_64__)
        __asm__ volatile("movb $0, (%%rax)" : : "a"(page) : "memory");
#elif defined(__aarch64__)
        __asm__ volatile("strb wzr, [%0]" : : "r"(page) : "memory");
#endif
    }
    uint64_t ns = now_ns() - begin;
    check_caught(before, n);
    return ns;
}

int main(int argc, char **argv) {
    loop_args(argc, argv);
    struct sigaction sa;
    memset(&sa, 0, sizeof sa);
    sa.sa_handler = count;
    if (sigaction(SIGUSR1, &sa, NULL)) die("sigaction");
    sa.sa_sigaction = step_over;
    sa.sa_flags = SA_SIGINFO;
    if (sigaction(SIGSEGV, &sa, NULL)) die("sigaction");
    page = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) die("mmap");
    (void)*(volatile char *)page;
    if (!strcmp(loop_probe, "signal.install")) loop_run(install, 1);
    else if (!strcmp(loop_probe, "signal.handle")) loop_run(handle, 1);
    else if (!strcmp(loop_probe, "signal.fault")) loop_run(fault, 1);
    else die("no such probe here");
    return 0;
}
