/* Memory mappings and page faults. Each timed region is mapped afresh, 2 MiB apart from the next, with small pages. */
#include "loop.h"

#include <fcntl.h>
#include <sys/mman.h>

#define SLOTS 64
#define MAPPINGS 32

static size_t page, pages, stride;
static char *slots, *region[MAPPINGS];
static unsigned region_count;
static int fd = -1;

static void reserve(size_t bytes, int extra) {
    if (mmap(slots, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | extra, -1, 0) == MAP_FAILED)
        die("mmap");
}

static void map_slots(unsigned n, int prot) {
    for (unsigned i = 0; i < n; i++) {
        char *at = slots + i * stride;
        int flags = MAP_PRIVATE | MAP_FIXED | (fd < 0 ? MAP_ANONYMOUS : 0);
        if (mmap(at, pages * page, prot, flags, fd, 0) == MAP_FAILED) die("mmap");
        if (fd < 0) madvise(at, pages * page, MADV_NOHUGEPAGE);
    }
}

static inline void write_slots(unsigned n) {
    for (unsigned i = 0; i < n; i++)
        for (size_t p = 0; p < pages; p++) *(volatile char *)(slots + i * stride + p * page) = 1;
}

static inline void read_slots(unsigned n) {
    for (unsigned i = 0; i < n; i++)
        for (size_t p = 0; p < pages; p++) (void)*(volatile char *)(slots + i * stride + p * page);
}

static unsigned at_once(size_t total) {
    size_t n = total / pages;
    return n < 1 ? 1 : n > SLOTS ? SLOTS : (unsigned)n;
}

/* Leaves holes of the right size between pages that stay reserved: mmap will fill these. A few other mappings come
 * first, to set them apart from those of the C library in the kernel's tree. */
static void make_holes(void) {
    for (int i = 0; i < 17; i++)
        if (mmap(NULL, page, i % 2 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
            die("mmap");
    size_t bytes = pages * page;
    char *at = mmap(NULL, bytes * (2 * MAPPINGS + 1), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) die("mmap");
    for (unsigned i = 0; i < MAPPINGS; i++)
        if (munmap(at + bytes * (2 * i + 1), bytes)) die("munmap");
}

static uint64_t map(uint64_t ops) {
    static void *mapped[MAPPINGS];
    uint64_t ns = 0;
    for (unsigned n; ops; ops -= n) {
        n = ops < MAPPINGS ? (unsigned)ops : MAPPINGS;
        uint64_t begin = now_ns();
        for (unsigned i = 0; i < n; i++) {
            mapped[i] = mmap(NULL, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (mapped[i] == MAP_FAILED) die("mmap");
        }
        ns += now_ns() - begin;
        for (unsigned i = 0; i < n; i++) munmap(mapped[i], pages * page);
    }
    return ns;
}

static uint64_t unmap(uint64_t ops) {
    uint64_t ns = 0;
    for (unsigned n; ops; ops -= n) {
        n = ops < at_once(256) ? (unsigned)ops : at_once(256);
        map_slots(n, PROT_READ | PROT_WRITE);
        write_slots(n);
        uint64_t begin = now_ns();
        for (unsigned i = 0; i < n; i++)
            if (munmap(slots + i * stride, pages * page)) die("munmap");
        ns += now_ns() - begin;
        reserve(n * stride, MAP_FIXED);
    }
    return ns;
}

static uint64_t protect(uint64_t ops) {
    static unsigned turn;
    unsigned n = region_count;
    uint64_t begin = now_ns();
    for (; ops--; turn++)
        if (mprotect(region[turn % n], pages * page, turn / n % 2 ? PROT_READ | PROT_WRITE : PROT_READ))
            die("mprotect");
    return now_ns() - begin;
}

/* First touches: by writing anonymous memory, by reading a file, by writing a file's pages that have been read. */
static uint64_t touch(uint64_t ops, int prot, int read_first, int writing) {
    uint64_t ns = 0;
    for (unsigned n; ops; ops -= n) {
        n = ops < at_once(64) ? (unsigned)ops : at_once(64);
        map_slots(n, prot);
        if (read_first) read_slots(n);
        uint64_t begin = now_ns();
        if (writing) write_slots(n);
        else read_slots(n);
        ns += now_ns() - begin;
        reserve(n * stride, MAP_FIXED);
    }
    return ns;
}

static uint64_t touch_anon(uint64_t ops) { return touch(ops, PROT_READ | PROT_WRITE, 0, 1); }
static uint64_t touch_file(uint64_t ops) { return touch(ops, PROT_READ, 0, 0); }
static uint64_t touch_cow(uint64_t ops) { return touch(ops, PROT_READ | PROT_WRITE, 1, 1); }

static void open_file(void) {
    static char path[4096];
    char *content = calloc(pages, page);
    snprintf(path, sizeof path, "%s/mapped-c", loop_dir);
    fd = open(path, O_CREAT | O_TRUNC | O_RDWR, 0600);
    if (fd < 0 || !content) die(path);
    /* In one piece: how a file was written decides how large the pieces are in which its pages are cached, and so
     * mapped. */
    if (write(fd, content, pages * page) != (ssize_t)(pages * page)) die(path);
    free(content);
}

int main(int argc, char **argv) {
    loop_args(argc, argv);
    page = (size_t)sysconf(_SC_PAGESIZE);
    pages = strtoul(param("pages", "1"), NULL, 10);
    size_t table = page * page / sizeof(void *);
    stride = (pages * page + page + table - 1) / table * table;
    if (!strcmp(loop_probe, "vm.mmap")) {
        make_holes();
        loop_run(map, 1);
        return 0;
    }
    if (!strcmp(loop_probe, "vm.mprotect")) {
        make_holes();
        region_count = at_once(64) < MAPPINGS ? at_once(64) : MAPPINGS;
        for (unsigned i = 0; i < region_count; i++) {
            region[i] = mmap(NULL, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (region[i] == MAP_FAILED) die("mmap");
            madvise(region[i], pages * page, MADV_NOHUGEPAGE);
            for (size_t p = 0; p < pages; p++) *(volatile char *)(region[i] + p * page) = 1;
        }
        loop_run(protect, 1);
        return 0;
    }
    slots = mmap(NULL, stride * at_once(256) + table, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (slots == MAP_FAILED) die("mmap");
    slots = (char *)(((uintptr_t)slots + table - 1) / table * table);
    if (!strcmp(loop_probe, "vm.munmap")) loop_run(unmap, 1);
    else if (!strcmp(loop_probe, "vm.fault_anon")) loop_run(touch_anon, (double)pages);
    else if (!strcmp(loop_probe, "vm.fault_file")) {
        open_file();
        loop_run(touch_file, (double)pages);
    } else if (!strcmp(loop_probe, "vm.fault_cow")) {
        open_file();
        loop_run(touch_cow, (double)pages);
    } else die("no such probe here");
    return 0;
}
