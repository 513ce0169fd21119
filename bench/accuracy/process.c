/* Processes: fork, vfork, posix_spawn, exec, the shell. */
#define BATCH_NS 50000u /* as the probe: see HANDOVER_BATCH_NS */
#include "loop.h"

#include <libgen.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>

static const char *program;
static char *const *args;
static char *const environment[] = {NULL};

static void wait_for(pid_t pid) {
    int status;
    if (pid < 0) die("fork");
    if (waitpid(pid, &status, 0) != pid) die("waitpid");
    if (status != 0) {
        errno = 0;
        die("the child failed");
    }
}

static uint64_t fork_exit(uint64_t ops) {
    uint64_t begin = now_ns();
    while (ops--) {
        pid_t pid = fork();
        if (pid == 0) _exit(0);
        wait_for(pid);
    }
    return now_ns() - begin;
}

static uint64_t vfork_exit(uint64_t ops) {
    uint64_t begin = now_ns();
    while (ops--) {
        pid_t pid = vfork();
        if (pid == 0) _exit(0);
        wait_for(pid);
    }
    return now_ns() - begin;
}

static uint64_t fork_exec(uint64_t ops) {
    uint64_t begin = now_ns();
    while (ops--) {
        pid_t pid = fork();
        if (pid == 0) {
            execve(program, args, environment);
            _exit(127);
        }
        wait_for(pid);
    }
    return now_ns() - begin;
}

static uint64_t spawn(uint64_t ops) {
    uint64_t begin = now_ns();
    while (ops--) {
        pid_t pid;
        if (posix_spawn(&pid, program, NULL, NULL, args, environment)) die("posix_spawn");
        wait_for(pid);
    }
    return now_ns() - begin;
}

/* Touches `bytes` of memory in small pages. */
static void grow(size_t bytes) {
    if (!bytes) return;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) die("mmap");
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    for (size_t at = 0; at < bytes; at += (size_t)sysconf(_SC_PAGESIZE)) ((volatile char *)memory)[at] = 1;
}

int main(int argc, char **argv) {
    static char tiny[4096];
    snprintf(tiny, sizeof tiny, "%s/tiny", dirname(strdup(argv[0])));
    loop_args(argc, argv);
    grow(strtoul(param("resident", "0"), NULL, 10));
    char *plain[] = {tiny, NULL}, *true_args[] = {"/bin/true", NULL},
         *shell[] = {"/bin/sh", "-c", "\"$0\"", tiny, NULL};
    program = tiny;
    args = plain;
    if (!strcmp(loop_probe, "process.fork")) loop_run(fork_exit, 1);
    else if (!strcmp(loop_probe, "process.vfork")) loop_run(vfork_exit, 1);
    else if (!strcmp(loop_probe, "process.spawn")) loop_run(spawn, 1);
    else if (!strcmp(loop_probe, "process.exec")) loop_run(fork_exec, 1);
    else if (!strcmp(loop_probe, "process.exec_dynamic")) {
        program = *(args = true_args);
        loop_run(fork_exec, 1);
    } else if (!strcmp(loop_probe, "process.shell")) {
        program = *(args = shell);
        loop_run(fork_exec, 1);
    } else die("no such probe here");
    return 0;
}
