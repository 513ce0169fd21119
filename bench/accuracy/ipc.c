/* One byte to another process and back: pipe, Unix socket, event counter, futex, and a ring of pipes. See loop.h for
 * the calling convention. */
#include "loop.h"

#include <linux/futex.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static int to_partner, from_partner;
static _Atomic uint32_t *turn;

static void give(int fd) {
    char byte = 'x';
    if (write(fd, &byte, 1) != 1) die("write");
}

static void take(int fd) {
    char byte;
    if (read(fd, &byte, 1) != 1) die("read");
}

static uint64_t bytes(uint64_t ops) {
    uint64_t begin = now_ns();
    for (uint64_t i = 0; i < ops; i++) {
        give(to_partner);
        take(from_partner);
    }
    return now_ns() - begin;
}

static void raise_event(int fd) {
    uint64_t one = 1;
    if (write(fd, &one, sizeof one) != sizeof one) die("write");
}

static void take_event(int fd) {
    uint64_t value;
    if (read(fd, &value, sizeof value) != sizeof value) die("read");
}

static uint64_t events(uint64_t ops) {
    uint64_t begin = now_ns();
    for (uint64_t i = 0; i < ops; i++) {
        raise_event(to_partner);
        take_event(from_partner);
    }
    return now_ns() - begin;
}

static void set_turn(uint32_t value) {
    *turn = value;
    syscall(SYS_futex, turn, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void wait_turn(uint32_t other) {
    while (*turn == other) syscall(SYS_futex, turn, FUTEX_WAIT, other, NULL, NULL, 0);
}

static uint64_t turns(uint64_t ops) {
    uint64_t begin = now_ns();
    for (uint64_t i = 0; i < ops; i++) {
        set_turn(1);
        wait_turn(1);
    }
    return now_ns() - begin;
}

static pid_t partner(void) {
    int cross = !strcmp(param("placement", "same"), "cross");
    pid_t parent = getpid(), pid = fork();
    if (pid < 0) die("fork");
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(1);
        pin_to(loop_cpus[cross ? 1 : 0]);
    }
    return pid;
}

static void pair_of_pipes(int *their_in, int *their_out) {
    int there[2], back[2];
    if (pipe(there) || pipe(back)) die("pipe");
    *their_in = there[0], to_partner = there[1];
    from_partner = back[0], *their_out = back[1];
}

int main(int argc, char **argv) {
    loop_args(argc, argv);
    int in = -1, out = -1;
    pid_t child;
    loop_body body = bytes;
    if (!strcmp(loop_probe, "ipc.pipe") || !strcmp(loop_probe, "switch.ring")) {
        pair_of_pipes(&in, &out);
    } else if (!strcmp(loop_probe, "ipc.unix")) {
        int ends[2];
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) die("socketpair");
        to_partner = from_partner = ends[0], in = out = ends[1];
    } else if (!strcmp(loop_probe, "ipc.eventfd")) {
        if ((to_partner = in = eventfd(0, 0)) < 0 || (from_partner = out = eventfd(0, 0)) < 0) die("eventfd");
        body = events;
    } else if (!strcmp(loop_probe, "ipc.futex")) {
        turn = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (turn == MAP_FAILED) die("mmap");
        body = turns;
    } else {
        errno = EINVAL;
        die("no such probe here");
    }
    if ((child = partner()) == 0) {
        for (;;) {
            if (body == turns) {
                wait_turn(0);
                set_turn(0);
            } else if (body == events) {
                take_event(in);
                raise_event(out);
            } else {
                take(in);
                give(out);
            }
        }
    }
    /* A round trip of two processes is two hops of a ring of two. */
    loop_run(body, strcmp(loop_probe, "switch.ring") ? 1 : 2);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return 0;
}
