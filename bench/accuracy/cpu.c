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

/* By hand, 512 bytes to a turn as for the probe: with four loads of 32 bytes to a turn, which is what a compiler makes
 * of the plain loop, it reads 5 % less a second. */
__attribute__((target("avx512f"))) static uint64_t add_up_512(const uint64_t *p, uint64_t n) {
    __m512i a[8];
    for (int j = 0; j < 8; j++) a[j] = _mm512_setzero_si512();
    for (uint64_t i = 0; i + 64 <= n; i += 64) {
#pragma GCC unroll 8
        for (int j = 0; j < 8; j++) a[j] = _mm512_add_epi64(a[j], _mm512_load_si512(p + i + 8 * j));
    }
    uint64_t sum = 0;
    for (int j = 0; j < 8; j++) sum += (uint64_t)_mm512_reduce_add_epi64(a[j]);
    return sum;
}

__attribute__((target("avx2"))) static uint64_t add_up_256(const uint64_t *p, uint64_t n) {
    __m256i a[4];
    for (int j = 0; j < 4; j++) a[j] = _mm256_setzero_si256();
    for (uint64_t i = 0; i + 64 <= n; i += 64) {
#pragma GCC unroll 16
        for (int j = 0; j < 16; j++)
            a[j % 4] = _mm256_add_epi64(a[j % 4], _mm256_load_si256((const __m256i *)(p + i + 4 * j)));
    }
    uint64_t sum = 0, words_of[4];
    for (int j = 0; j < 4; j++) {
        _mm256_storeu_si256((__m256i *)words_of, a[j]);
        for (int k = 0; k < 4; k++) sum += words_of[k];
    }
    return sum;
}

static uint64_t add_up(const uint64_t *p, uint64_t n) {
    return __builtin_cpu_supports("avx512f") ? add_up_512(p, n) : add_up_256(p, n);
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
    uint64_t step = words < 32768 ? words : 32768, begin = now_ns();
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
    if (add_up(range, 64) != 64 * 0x0101010101010101u) {
        errno = EDOM;
        die("the sum is wrong");
    }
    /* Nanoseconds per byte. */
    loop_run(read_range, (double)(bytes < 262144 ? bytes : 262144));
    return 0;
}
