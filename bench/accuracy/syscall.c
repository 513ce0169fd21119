/* The simple system calls, as anyone would time them. */
#include "loop.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static int fd;
static char path[4096];

static uint64_t null_call(uint64_t ops) {
    uint64_t begin = now_ns();
    while (ops--) syscall(SYS_getppid);
    return now_ns() - begin;
}

static uint64_t read_byte(uint64_t ops) {
    char byte;
    uint64_t begin = now_ns();
    while (ops--)
        if (read(fd, &byte, 1) != 1) die("read");
    return now_ns() - begin;
}

static uint64_t write_byte(uint64_t ops) {
    char byte = 0;
    uint64_t begin = now_ns();
    while (ops--)
        if (write(fd, &byte, 1) != 1) die("write");
    return now_ns() - begin;
}

static uint64_t stat_path(uint64_t ops) {
    struct stat st;
    uint64_t begin = now_ns();
    while (ops--)
        if (stat(path, &st)) die("stat");
    return now_ns() - begin;
}

static uint64_t fstat_fd(uint64_t ops) {
    struct stat st;
    uint64_t begin = now_ns();
    while (ops--)
        if (fstat(fd, &st)) die("fstat");
    return now_ns() - begin;
}

static uint64_t open_close(uint64_t ops) {
    uint64_t begin = now_ns();
    while (ops--) {
        int f = open(path, O_RDONLY);
        if (f < 0) die("open");
        close(f);
    }
    return now_ns() - begin;
}

int main(int argc, char **argv) {
    loop_args(argc, argv);
    snprintf(path, sizeof path, "%s/file", loop_dir);
    fd = open(path, O_CREAT | O_RDWR, 0600);
    if (fd < 0) die(path);
    if (!strcmp(loop_probe, "syscall.null")) loop_run(null_call, 1);
    else if (!strcmp(loop_probe, "syscall.read") && (fd = open("/dev/zero", O_RDONLY)) >= 0) loop_run(read_byte, 1);
    else if (!strcmp(loop_probe, "syscall.write") && (fd = open("/dev/null", O_WRONLY)) >= 0) loop_run(write_byte, 1);
    else if (!strcmp(loop_probe, "syscall.stat")) loop_run(stat_path, 1);
    else if (!strcmp(loop_probe, "syscall.fstat")) loop_run(fstat_fd, 1);
    else if (!strcmp(loop_probe, "syscall.open_close")) {
        close(fd);
        loop_run(open_close, 1);
    } else die("no such probe here, or its device is missing");
    return 0;
}
