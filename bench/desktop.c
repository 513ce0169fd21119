/* A desktop's three tasks as an independent program makes them: a thread that sleeps until its turn, a start of
 * /bin/true, a read of a file of 4 KiB. Each turn is timed from when it was due. Prints the latencies in nanoseconds, a
 * line for each task.
 *
 *     desktop FILE SECONDS
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static const char *file;
static uint64_t begin, length;

struct task {
    const char *name;
    uint64_t period, offset;
    void (*work)(void);
    uint64_t *took;
    size_t count;
};

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void nothing(void) {}

static void start(void) {
    posix_spawn_file_actions_t quiet;
    posix_spawn_file_actions_init(&quiet);
    for (int fd = 0; fd < 3; fd++)
        posix_spawn_file_actions_addopen(&quiet, fd, "/dev/null", fd ? O_WRONLY : O_RDONLY, 0);
    char *words[] = {"/bin/true", NULL};
    pid_t child;
    int status = 1;
    if (posix_spawn(&child, words[0], &quiet, NULL, words, environ) || waitpid(child, &status, 0) != child || status) {
        fputs("desktop: /bin/true failed\n", stderr);
        exit(1);
    }
    posix_spawn_file_actions_destroy(&quiet);
}

static void look(void) {
    char content[4096];
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, content, sizeof content) != sizeof content) {
        perror(file);
        exit(1);
    }
    close(fd);
}

static struct task tasks[] = {
    {"waker", 10000000, 0, nothing, NULL, 0},
    {"exec", 50000000, 2500000, start, NULL, 0},
    {"read", 10000000, 5000000, look, NULL, 0},
};

static void *turns(void *argument) {
    struct task *task = argument;
    for (uint64_t due = begin + task->offset; due < begin + length; due += task->period) {
        struct timespec at = {(time_t)(due / 1000000000), (long)(due % 1000000000)};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR) {}
        task->work();
        task->took[task->count++] = now() - due;
    }
    return NULL;
}

int main(int count, char **words) {
    if (count != 3) {
        fputs("usage: desktop FILE SECONDS\n", stderr);
        return 2;
    }
    file = words[1];
    length = (uint64_t)(atof(words[2]) * 1e9);
    begin = now() + 20000000;
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        tasks[i].took = calloc(length / tasks[i].period + 2, sizeof(uint64_t));
        pthread_create(&threads[i], NULL, turns, &tasks[i]);
    }
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 3; i++) {
        printf("%s", tasks[i].name);
        for (size_t n = 0; n < tasks[i].count; n++)
            printf(" %llu", (unsigned long long)tasks[i].took[n]);
        printf("\n");
    }
    return 0;
}
