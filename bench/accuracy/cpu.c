/* Division and memory reading. See loop.h for the calling convention. */
#include "loop.h"

#include <sys/mman.h>

static volatile uint64_t sink;
static uint64_t *range, words, at;

/* The same numbers as the probe's; the compiler must not know them. */
static volatile uint64_t divisor = 0xfffffffbu, dividend = 0x7fffffffffffffe7u;

static uint64_t divide(uint64_t ops) {
    uint64_t x = sink, by = divisor, keep = dividend, begin = now_ns();
    for (uint64_t i = 0; i < ops; i++) x = x / by + keep;
    sink = x;
    return now_ns() - begin;
}

#if defined(__x86_64__)
#include <immintrin.h>

/* By hand, four loads to a turn: what a compiler makes of the plain loop differs by some percent between compilers. */
__attribute__((target("avx2"))) static uint64_t add_up(const uint64_t *p, uint64_t n) {
    __m256i a[4];
    for (int j = 0; j < 4; j++) a[j] = _mm256_setzero_si256();
    for (uint64_t i = 0; i + 16 <= n; i += 16) {
        a[0] = _mm256_add_epi64(a[0], _mm256_load_si256((const __m256i *)(p + i + 0)));
        a[1] = _mm256_add_epi64(a[1], _mm256_load_si256((const __m256i *)(p + i + 4)));
        a[2] = _mm256_add_epi64(a[2], _mm256_load_si256((const __m256i *)(p + i + 8)));
        a[3] = _mm256_add_epi64(a[3], _mm256_load_si256((const __m256i *)(p + i + 12)));
    }
    uint64_t sum = 0, words_of[4];
    for (int j = 0; j < 4; j++) {
        _mm256_storeu_si256((__m256i *)words_of, a[j]);
        for (int k = 0; k < 4; k++) sum += words_of[k];
    }
    return sum;
}
#else
static uint64_t add_up(const uint64_t *p, uint64_t n) {
    uint64_t a[16] = {0}, sum = 0;
    for (uint64_t i = 0; i + 16 <= n; i += 16)
        for (int j = 0; j < 16; j++) a[j] += p[i + j];
    for (int j = 0; j < 16; j++) sum += a[j];
    return sum;
}
#endif

static uint64_t read_range(uint64_t ops) {
    uint64_t step = words < 8192 ? words : 8192, begin = now_ns();
    for (uint64_t i = 0; i < ops; i++) {
        sink = add_up(range + at, step);
        at = at + 2 * step <= words ? at + step : 0;
    }
    return now_ns() - begin;
}

int main(int argc, char **argv) {
    loop_args(argc, argv);
    if (!strcmp(loop_probe, "cpu.div")) {
        loop_run(divide, 1);
        return 0;
    }
    uint64_t bytes = strtoull(param("size", "16384"), NULL, 10);
    words = bytes / 8;
    range = aligned_alloc(2 << 20, (bytes + (2 << 20) - 1) & ~((2ull << 20) - 1));
    if (!range) die("aligned_alloc");
    madvise(range, bytes, MADV_HUGEPAGE);
    memset(range, 1, bytes);
    if (add_up(range, 32) != 32 * 0x0101010101010101u) {
        errno = EDOM;
        die("the sum is wrong");
    }
    /* Nanoseconds per byte. */
    loop_run(read_range, (double)(bytes < 65536 ? bytes : 65536));
    return 0;
}
