/* Minimal readers of the object database's files, to compare Fingerpost's own with: lmdb, lmdb-flat, sqlite,
 * sqlite-flat and files. reader KIND SOURCE LIST ROUNDS: the list holds a path a line; prints the median time of a warm
 * round of 100 random pages in ns. One read transaction for each page; the bytes of the page are summed, where they lie
 * or in the buffer that they were read into. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "lmdb.h"
#include "sqlite3.h"

enum { URLS = 100, HEAD = 16, MAXPAGE = 2 << 20, MAXKEY = 8 + 255 };
static char buffer[MAXPAGE] __attribute__((aligned(4096)));

static void die(const char *what) { fprintf(stderr, "reader: %s\n", what); exit(1); }
#define OK(call) do { if ((call) != 0) die(#call); } while (0)

static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e9 + t.tv_nsec; }
static void be64(unsigned char *to, uint64_t v) { for (int i = 7; i >= 0; i--, v >>= 8) to[i] = v & 255; }

/* The sum of all bytes, eight at a time. Four vectors, so that no addition waits for the one before. */
typedef uint64_t vector __attribute__((vector_size(32), aligned(1), may_alias));
static inline __attribute__((always_inline)) uint64_t plain(const char *p, size_t n) {
    vector a = {0}, b = {0}, c = {0}, d = {0};
    uint64_t sum = 0, word;
    for (; n >= 128; p += 128, n -= 128) {
        const vector *q = (const vector *)p;
        a += q[0]; b += q[1]; c += q[2]; d += q[3];
    }
    for (; n >= 8; p += 8, n -= 8) { memcpy(&word, p, 8); sum += word; }
    for (word = 0; n > 0; n--) word = word << 8 | (unsigned char)p[n - 1];
    a += b + c + d;
    return sum + word + a[0] + a[1] + a[2] + a[3];
}
static __attribute__((target("avx2"))) uint64_t wide(const char *p, size_t n) { return plain(p, n); }
static uint64_t narrow(const char *p, size_t n) { return plain(p, n); }
static uint64_t (*total)(const char *, size_t) = narrow;

/* The key of a name in a table. */
static size_t nested_key(unsigned char *key, uint64_t table, const char *name, size_t length) {
    be64(key, table);
    memcpy(key + 8, name, length);
    return 8 + length;
}

static MDB_env *env; static MDB_txn *txn; static MDB_dbi dbi;

static void lmdb_open(const char *file) {
    OK(mdb_env_create(&env));
    OK(mdb_env_set_mapsize(env, (size_t)1 << 38));
    OK(mdb_env_open(env, file, MDB_NOSUBDIR | MDB_NOTLS | MDB_RDONLY, 0644));
    OK(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn));
    OK(mdb_dbi_open(txn, NULL, 0, &dbi));
    OK(mdb_txn_commit(txn));
    OK(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn));
    mdb_txn_reset(txn);
}

static uint64_t lmdb_flat(const char *url) {
    MDB_val k = { strlen(url), (void *)url }, v;
    OK(mdb_txn_renew(txn));
    OK(mdb_get(txn, dbi, &k, &v));
    uint64_t sum = total((char *)v.mv_data + HEAD, v.mv_size - HEAD);
    mdb_txn_reset(txn);
    return sum;
}

static uint64_t lmdb_nested(const char *url) {
    unsigned char key[MAXKEY]; uint64_t table = 1; MDB_val k, v; const char *slash;
    OK(mdb_txn_renew(txn));
    while ((slash = strchr(url, '/'))) {
        k.mv_data = key; k.mv_size = nested_key(key, table, url, slash - url);
        OK(mdb_get(txn, dbi, &k, &v));
        memcpy(&table, (char *)v.mv_data + HEAD - 8, 8);
        url = slash + 1;
    }
    k.mv_data = key; k.mv_size = nested_key(key, table, url, strlen(url));
    OK(mdb_get(txn, dbi, &k, &v));
    uint64_t sum = total((char *)v.mv_data + HEAD, v.mv_size - HEAD);
    mdb_txn_reset(txn);
    return sum;
}

static sqlite3_stmt *begin, *commit, *table_of, *body_of;

static void sqlite_open(const char *file) {
    sqlite3 *db;
    OK(sqlite3_open_v2(file, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL));
    OK(sqlite3_exec(db, "PRAGMA mmap_size = 2147418112", NULL, NULL, NULL));
    OK(sqlite3_prepare_v2(db, "BEGIN", -1, &begin, NULL));
    OK(sqlite3_prepare_v2(db, "COMMIT", -1, &commit, NULL));
    OK(sqlite3_prepare_v2(db, "SELECT id FROM entry WHERE key = ?1", -1, &table_of, NULL));
    OK(sqlite3_prepare_v2(db, "SELECT head, body FROM entry WHERE key = ?1", -1, &body_of, NULL));
}

static void step(sqlite3_stmt *s) { if (sqlite3_step(s) != SQLITE_DONE) die("step"); sqlite3_reset(s); }

static uint64_t sqlite_body(const void *key, size_t length) {
    sqlite3_bind_blob(body_of, 1, key, length, SQLITE_STATIC);
    if (sqlite3_step(body_of) != SQLITE_ROW) die("no row");
    const void *body = sqlite3_column_blob(body_of, 1);
    uint64_t sum = total(body, sqlite3_column_bytes(body_of, 1));
    sqlite3_reset(body_of);
    return sum;
}

static uint64_t sqlite_flat(const char *url) {
    step(begin);
    uint64_t n = sqlite_body(url, strlen(url));
    step(commit);
    return n;
}

static uint64_t sqlite_nested(const char *url) {
    unsigned char key[MAXKEY]; int64_t table = 1; const char *slash;
    step(begin);
    while ((slash = strchr(url, '/'))) {
        sqlite3_bind_blob(table_of, 1, key, nested_key(key, table, url, slash - url), SQLITE_STATIC);
        if (sqlite3_step(table_of) != SQLITE_ROW) die("no table");
        table = -sqlite3_column_int64(table_of, 0);
        sqlite3_reset(table_of);
        url = slash + 1;
    }
    uint64_t n = sqlite_body(key, nested_key(key, table, url, strlen(url)));
    step(commit);
    return n;
}

static char path[8192]; static size_t base;

static uint64_t files(const char *url) {
    strcpy(path + base, url);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) die(path);
    ssize_t n = read(fd, buffer, sizeof buffer);
    close(fd);
    return total(buffer, n);
}

static int by_value(const void *a, const void *b) {
    double x = *(double *)a, y = *(double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    if (argc != 5) die("KIND SOURCE LIST ROUNDS");
    if (__builtin_cpu_supports("avx2")) total = wide;
    uint64_t (*get)(const char *) = NULL; int rounds = atoi(argv[4]);
    if (!strcmp(argv[1], "files-open")) { get = files; base = sprintf(path, "%s/", argv[2]); }
    if (!strncmp(argv[1], "lmdb", 4)) { lmdb_open(argv[2]); get = strstr(argv[1], "flat") ? lmdb_flat : lmdb_nested; }
    if (!strncmp(argv[1], "sqlite", 6)) {
        sqlite_open(argv[2]);
        get = strstr(argv[1], "flat") ? sqlite_flat : sqlite_nested;
    }
    if (!get) die("no such kind");
    static char line[8192]; char **urls = NULL; size_t count = 0;
    FILE *list = fopen(argv[3], "r");
    while (list && fgets(line, sizeof line, list)) {
        line[strcspn(line, "\n")] = 0;
        urls = realloc(urls, (count + 1) * sizeof *urls);
        urls[count++] = strdup(line);
    }
    if (!count) die("no list");
    double *times = malloc(rounds * sizeof *times); uint64_t sum = 0; unsigned seed = 1;
    for (size_t i = 0; i < count; i++) sum += get(urls[i]);
    for (int r = 0; r < rounds; r++) {
        char *round[URLS];
        for (int i = 0; i < URLS; i++) round[i] = urls[rand_r(&seed) % count];
        for (int i = 0; i < URLS; i++) sum += get(round[i]);
        double start = now();
        for (int i = 0; i < URLS; i++) sum += get(round[i]);
        times[r] = now() - start;
    }
    qsort(times, rounds, sizeof *times, by_value);
    printf("%.0f %llu\n", times[rounds / 2], (unsigned long long)sum);
    return 0;
}
