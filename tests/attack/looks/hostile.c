/* Services that are hostile to who watches them: what a look at a running service reads of them, and how they answer.
 *
 *     hostile KIND SECONDS [NUMBER [NUMBER]]
 *
 * Each says "ready" when it is as it is meant to be, with the process that has the CPU, uses a CPU from then on, and ends
 * after so many seconds, when its input is closed, or with who started it. Files that it leaves it names ("made PATH"). tests/attack/looks.rs and
 * bench/looks-hostile start them. */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SPIN for (volatile unsigned long n = 0; n < 50000000; n++)

static void die(const char *what) {
    perror(what);
    _exit(1);
}

/* What uses the CPU, by what its tables for unwinding say. */
__attribute__((noinline)) void honest_worker(void) { SPIN; }

__attribute__((noinline)) void honest_caller(void) {
    for (;;) {
        honest_worker();
        __asm__ volatile("");
    }
}

/* DW_CFA_def_cfa_expression: DW_OP_skip to itself. */
__attribute__((noinline)) void skip_worker(void) {
    __asm__ volatile(".cfi_escape 0x0f,3,0x2f,0xfd,0xff");
    SPIN;
}

/* DW_OP_lit0; DW_OP_dup; DW_OP_skip to the dup: the stack of the evaluation grows for ever. */
__attribute__((noinline)) void dup_worker(void) {
    __asm__ volatile(".cfi_escape 0x0f,5,0x30,0x12,0x2f,0xfc,0xff");
    SPIN;
}

/* DW_OP_deref of an address that there is not. */
__attribute__((noinline)) void deref_worker(void) {
    __asm__ volatile(".cfi_escape 0x0f,2,0x31,0x06");
    SPIN;
}

/* The frame lies where it lies: each is its own caller. */
__attribute__((noinline)) void self_worker(void) {
    __asm__ volatile(".cfi_escape 0x0f,3,0x77,0x00,0x96");
    SPIN;
}

/* A name that stands for a very long one (the Itanium mangling's substitutions, each twice the one before). */
void bomb_worker(void) __asm__(
    "_Z1fI1a1bIS0_S0_ES1_IS2_S2_ES1_IS3_S3_ES1_IS4_S4_ES1_IS5_S5_ES1_IS6_S6_ES1_IS7_S7"
    "_ES1_IS8_S8_ES1_IS9_S9_ES1_ISA_SA_ES1_ISB_SB_ES1_ISC_SC_ES1_ISD_SD_ES1_ISE_SE_EEvv");
__attribute__((noinline)) void bomb_worker(void) { SPIN; }

static unsigned seconds;

/* Ends with its parent, or after its time. */
static void mortal(void) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(seconds);
}

static pid_t child(void) {
    pid_t pid = fork();
    if (pid < 0)
        die("fork");
    if (pid == 0)
        mortal();
    return pid;
}

static void ready(void) {
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
}

static void *watch_input(void *none) {
    char byte;
    while (read(0, &byte, 1) > 0)
        ;
    kill(0, SIGKILL);
    return none;
}

/* A file that begins as a shared library with so many sections of this size that are nearly all hole. */
static int sparse_elf(const char *path, uint64_t size, unsigned shnum) {
    enum { NULL_, SHSTR, SYM, STR, EH, HDR, NOTE, ALL };
    static const char names[] = "\0.shstrtab\0.symtab\0.strtab\0.eh_frame\0.eh_frame_hdr\0.note.gnu.build-id";
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
    if (fd < 0)
        die(path);
    Elf64_Ehdr head = {.e_type = ET_DYN, .e_machine = EM_X86_64, .e_version = 1, .e_phoff = 64, .e_ehsize = 64,
        .e_phentsize = 56, .e_phnum = 1, .e_shentsize = 64, .e_shnum = shnum ? shnum : ALL, .e_shstrndx = SHSTR,
        .e_shoff = 4096};
    memcpy(head.e_ident, ELFMAG, 4);
    head.e_ident[4] = ELFCLASS64, head.e_ident[5] = ELFDATA2LSB, head.e_ident[6] = 1;
#ifdef __aarch64__
    head.e_machine = EM_AARCH64;
#endif
    Elf64_Phdr code = {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = 1 << 20, .p_memsz = 1 << 20};
    uint64_t at = 1 << 20;
    Elf64_Shdr s[ALL] = {{0}, {.sh_name = 1, .sh_type = SHT_STRTAB, .sh_offset = 1024, .sh_size = sizeof names},
        {.sh_name = 11, .sh_type = SHT_SYMTAB, .sh_offset = at, .sh_size = size, .sh_link = STR, .sh_entsize = 24},
        {.sh_name = 19, .sh_type = SHT_STRTAB, .sh_offset = at + size, .sh_size = size},
        {.sh_name = 27, .sh_type = SHT_PROGBITS, .sh_addr = at, .sh_offset = at + 2 * size, .sh_size = size},
        {.sh_name = 37, .sh_type = SHT_PROGBITS, .sh_addr = at + size, .sh_offset = at + 3 * size, .sh_size = size},
        {.sh_name = 51, .sh_type = SHT_NOTE, .sh_offset = at, .sh_size = size}};
    /* A function at the end, so that the table is wanted. */
    Elf64_Sym last = {.st_name = 1, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_shndx = 1, .st_value = 16};
    int all = pwrite(fd, &head, sizeof head, 0) > 0 && pwrite(fd, &code, sizeof code, 64) > 0
        && pwrite(fd, names, sizeof names, 1024) > 0 && pwrite(fd, s, sizeof s, 4096) > 0
        && pwrite(fd, &last, sizeof last, at + size / 24 * 24 - 24) > 0;
    /* An endless loop, which is what is sampled. */
#ifdef __aarch64__
    static const unsigned char loop[] = {0, 0, 0, 0x14};
#else
    static const unsigned char loop[] = {0xeb, 0xfe};
#endif
    all = all && pwrite(fd, loop, sizeof loop, 65536) > 0 && ftruncate(fd, at + 5 * size) == 0;
    if (!all)
        die(path);
    return fd;
}

/* So many of these files, mapped as code; each is run for a moment again and again, by a process of its own. */
static void files(unsigned count, uint64_t size, unsigned shnum) {
    for (unsigned n = 0; n < count; n++) {
        char path[64];
        snprintf(path, sizeof path, "sparse-%d-%u.so", (int)getpid(), n);
        int fd = sparse_elf(path, size, shnum);
        void (*code)(void) = mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 65536);
        if (code == MAP_FAILED)
            die("mmap");
        close(fd);
        unlink(path);
        if (child() == 0) {
            nice(10);
            code();
        }
    }
}

/* What is to be removed when it is over. */
static void made(const char *path) {
    printf("made %s\n", path);
    fflush(stdout);
}

/* A list of functions of so many megabytes. */
static void perf_map(const char *path, unsigned megabytes) {
    FILE *map = fopen(path, "w");
    if (!map)
        die(path);
    made(path);
    setvbuf(map, 0, _IOFBF, 1 << 20);
    for (unsigned long n = 0; n < megabytes * 16384ul; n++)
        fprintf(map, "%012lx 10 a_function_that_was_made_at_run_time_%08lx\n", n * 16, n);
    fclose(map);
}

/* So many mappings with code that do not lie together. */
static void mappings(unsigned count) {
    for (unsigned n = 0; n < count; n++) {
        int rights = PROT_READ | (n % 2 ? PROT_EXEC : 0);
        if (mmap(0, 4096, rights, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
            break;
    }
}

static void names_of_user(void) {
    static int have;
    char map[64];
    int fd, uid = getuid(), gid = getgid();
    if (have++)
        return;
    /* As the file system's own user: no name space of users is needed. */
    if (uid == 0) {
        if (unshare(CLONE_NEWNS) || mount("none", "/", 0, MS_REC | MS_PRIVATE, 0))
            die("unshare");
        return;
    }
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
        die("unshare");
    if ((fd = open("/proc/self/setgroups", O_WRONLY)) >= 0)
        (void)!write(fd, "deny", 4), close(fd);
    snprintf(map, sizeof map, "0 %d 1", uid);
    if ((fd = open("/proc/self/uid_map", O_WRONLY)) < 0 || write(fd, map, strlen(map)) < 0)
        die("uid_map");
    close(fd);
    snprintf(map, sizeof map, "0 %d 1", gid);
    if ((fd = open("/proc/self/gid_map", O_WRONLY)) < 0 || write(fd, map, strlen(map)) < 0)
        die("gid_map");
    close(fd);
    if (mount("none", "/", 0, MS_REC | MS_PRIVATE, 0))
        die("mount");
}

/* A file system that answers until the file is mapped, and then nothing any more. */
static void answer(int fuse, int stop) {
    static char in[1 << 17];
    static char out[8192];
    for (;;) {
        struct pollfd wait[2] = {{.fd = fuse, .events = POLLIN}, {.fd = stop, .events = POLLIN}};
        if (poll(wait, 2, -1) < 0)
            continue;
        if (wait[1].revents)
            /* Whoever asks from now on waits as long as this process lives. */
            for (;;)
                pause();
        ssize_t n = read(fuse, in, sizeof in);
        if (n < (ssize_t)sizeof(struct fuse_in_header))
            continue;
        struct fuse_in_header *ask = (void *)in;
        struct fuse_out_header *head = (void *)out;
        void *body = out + sizeof *head;
        memset(out, 0, sizeof out);
        head->unique = ask->unique;
        size_t length = 0;
        struct fuse_attr attr = {.ino = ask->nodeid, .mode = S_IFREG | 0755, .nlink = 1, .size = 1 << 20, .blksize = 4096,
            .blocks = 2048};
        if (ask->nodeid == 1)
            attr.mode = S_IFDIR | 0755;
        switch (ask->opcode) {
        case FUSE_INIT: {
            struct fuse_init_out *init = body;
            init->major = FUSE_KERNEL_VERSION, init->minor = 26, init->max_write = 4096;
            length = sizeof *init;
            break;
        }
        case FUSE_LOOKUP: {
            struct fuse_entry_out *entry = body;
            attr.ino = 2, attr.mode = S_IFREG | 0755;
            entry->nodeid = 2, entry->attr = attr;
            length = sizeof *entry;
            break;
        }
        case FUSE_GETATTR: {
            struct fuse_attr_out *got = body;
            got->attr = attr;
            length = sizeof *got;
            break;
        }
        case FUSE_OPEN:
        case FUSE_OPENDIR:
            length = sizeof(struct fuse_open_out);
            break;
        case FUSE_READ:
            length = ((struct fuse_read_in *)(ask + 1))->size;
            length = length > 4096 ? 4096 : length;
            break;
        case FUSE_STATFS:
            ((struct fuse_statfs_out *)body)->st.namelen = 255;
            ((struct fuse_statfs_out *)body)->st.bsize = 4096;
            length = sizeof(struct fuse_statfs_out);
            break;
        case FUSE_FORGET:
        case FUSE_BATCH_FORGET:
            continue;
        case FUSE_FLUSH:
        case FUSE_RELEASE:
            break;
        default:
            head->error = -ENOSYS;
        }
        head->len = sizeof *head + length;
        (void)!write(fuse, out, head->len);
    }
}

static void fuse(int over) {
    char options[128], path[128];
    int stop[2], fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (fuse < 0)
        die("/dev/fuse");
    names_of_user();
    if (mount("tmpfs", "/mnt", "tmpfs", 0, "size=1m") || mkdir("/mnt/f", 0755) || mkdir("/mnt/u", 0755)
        || mkdir("/mnt/w", 0755) || mkdir("/mnt/m", 0755) || pipe(stop))
        die("/mnt");
    snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fuse);
    if (mount("fuse", "/mnt/f", "fuse", MS_NOSUID | MS_NODEV, options))
        die("fuse");
    if (child() == 0)
        answer(fuse, stop[0]);
    /* Only who answers has it open: when that ends the kernel gives up all that wait. */
    close(fuse);
    snprintf(path, sizeof path, "/mnt/f/code.so");
    if (over) {
        if (mount("overlay", "/mnt/m", "overlay", 0, "lowerdir=/mnt/f,upperdir=/mnt/u,workdir=/mnt/w"))
            die("overlay");
        snprintf(path, sizeof path, "/mnt/m/code.so");
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        die(path);
    if (mmap(0, 1 << 16, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
        die("mmap");
    (void)!write(stop[1], "x", 1);
}

/* A file of somebody else's in place of the list of functions. */
static void bind_over(const char *file) {
    char path[64];
    names_of_user();
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 || mount(file, path, 0, MS_BIND, 0))
        die(path);
    made(path);
}

static void *thread_waits(void *none) {
    for (;;)
        pause();
    return none;
}

static void threads(unsigned count) {
    pthread_attr_t small;
    pthread_t thread;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 16384);
    for (unsigned n = 0; n < count && !pthread_create(&thread, &small, thread_waits, 0); n++)
        ;
}

static void listens(unsigned port) {
    int fd = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(fd, (void *)&at, sizeof at) || listen(fd, 5))
        die("listen");
}

/* So many processes, all with these many descriptors. */
static void descriptors(unsigned processes, unsigned count) {
    struct { unsigned long now, most; } limit = {count + 100, count + 100};
    prlimit(0, 7 /* RLIMIT_NOFILE */, (void *)&limit, 0);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    for (unsigned n = 0; n < count && dup(fd) >= 0; n++)
        ;
    for (unsigned n = 0; n < processes; n++)
        if (child() == 0)
            for (;;)
                pause();
}

/* A stack that lies nowhere, or at the other end of everything. */
static void elsewhere(void) {
#ifdef __x86_64__
    __asm__ volatile("mov $-64, %%rsp\n1: jmp 1b" ::: "memory");
#else
    honest_caller();
#endif
}

static void run_in_memory(int with_name) {
    static const unsigned char loop[] =
#ifdef __aarch64__
        {0, 0, 0, 0x14};
#else
        {0xeb, 0xfe};
#endif
    void *code;
    if (with_name) {
        int fd = memfd_create("a\033[31mname\n\u202e", MFD_CLOEXEC);
        if (ftruncate(fd, 4096))
            die("memfd");
        code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED, fd, 0);
    } else
        code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED)
        die("mmap");
    memcpy(code, loop, sizeof loop);
    __builtin___clear_cache(code, (char *)code + sizeof loop);
    ready();
    ((void (*)(void))code)();
}

static void call_for_ever(void (*worker)(void)) {
    ready();
    for (;;) {
        worker();
        __asm__ volatile("");
    }
}

__attribute__((noinline)) static unsigned long deep(unsigned long n) {
    volatile unsigned long here = n;
    if (n > 100000) {
        SPIN;
        return here;
    }
    return deep(n + 1) + here;
}

int main(int argc, char **argv) {
    const char *kind = argc > 2 ? argv[1] : "";
    unsigned a = argc > 3 ? atoi(argv[3]) : 0, b = argc > 4 ? atoi(argv[4]) : 0;
    pthread_t input;
    setpgid(0, 0);
    seconds = argc > 2 ? atoi(argv[2]) : 1;
    mortal();
#define IS(name) (!strcmp(kind, name))
    /* A name space of users is for a process with one thread. */
    if (IS("fuse") || IS("overlay") || IS("bind") || IS("mounts"))
        names_of_user();
    pthread_create(&input, 0, watch_input, 0);
    if (IS("honest"))
        ready(), honest_caller();
    if (IS("skip"))
        call_for_ever(skip_worker);
    if (IS("dup"))
        call_for_ever(dup_worker);
    if (IS("deref"))
        call_for_ever(deref_worker);
    if (IS("self"))
        call_for_ever(self_worker);
    if (IS("bomb"))
        call_for_ever(bomb_worker);
    if (IS("elsewhere"))
        ready(), elsewhere();
    if (IS("memory"))
        run_in_memory(0);
    if (IS("memfd"))
        run_in_memory(1);
    if (IS("deep"))
        for (ready();;)
            deep(0);
    if (IS("sparse"))
        files(a, 128ull << 20, 0);
    else if (IS("huge"))
        files(a, 1ull << 31, 0);
    else if (IS("sections"))
        files(a, 1 << 20, 65000);
    else if (IS("functions")) {
        char first[64], path[64];
        snprintf(first, sizeof first, "/tmp/perf-%d.map", (int)getpid());
        perf_map(first, b);
        for (unsigned n = 1; n < a; n++) {
            pid_t pid = child();
            if (pid == 0)
                nice(10), honest_caller();
            snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)pid);
            if (link(first, path))
                die(path);
            made(path);
        }
    }
    else if (IS("fifo") || IS("link")) {
        char path[64];
        snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
        if (IS("fifo") ? mkfifo(path, 0600) : symlink("/proc/kmsg", path))
            die(path);
        made(path);
    } else if (IS("names")) {
        char path[64];
        snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
        FILE *map = fopen(path, "w");
        if (!map)
            die(path);
        made(path);
        fprintf(map, "0 ffffffffffffffff a\033[31mb\033]0;title\007\342\200\256c\xff\xfe");
        for (int n = 0; n < 1000000; n++)
            fputc('d', map);
        fclose(map);
        prctl(PR_SET_NAME, "\033[2J\n\t=x");
    } else if (IS("mappings"))
        for (unsigned n = 0; n < a; n++) {
            int told[2];
            char byte;
            if (pipe(told))
                die("pipe");
            if (child() == 0) {
                mappings(b);
                (void)!write(told[1], "x", 1);
                nice(10);
                honest_caller();
            }
            (void)!read(told[0], &byte, 1);
        }
    else if (IS("threads"))
        threads(a);
    else if (IS("descriptors"))
        listens(b), descriptors(a, 20000);
    else if (IS("fuse"))
        fuse(0);
    else if (IS("overlay"))
        fuse(1);
    else if (IS("bind"))
        bind_over(argv[3]);
    else if (IS("mounts")) {
        names_of_user();
        for (unsigned n = 0; n < a && !mount("none", "/mnt", "tmpfs", 0, "size=4k"); n++)
            ;
    } else if (IS("forks")) {
        ready();
        for (;;)
            if (child() == 0) {
                for (volatile unsigned long n = 0; n < 300000; n++)
                    ;
                _exit(0);
            } else
                while (waitpid(-1, 0, WNOHANG) > 0)
                    ;
    } else if (IS("cut")) {
        /* A file that becomes shorter and longer while it is read. */
        int fd = sparse_elf("cut.so", 8 << 20, 0);
        void (*code)(void) = mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 65536);
        unlink("cut.so");
        if (child() == 0)
            code();
        ready();
        for (;;) {
            (void)!ftruncate(fd, 70000);
            (void)!ftruncate(fd, 41 << 20);
        }
    } else {
        fprintf(stderr, "hostile: no kind \"%s\"\n", kind);
        return 2;
    }
    ready();
    honest_caller();
}
