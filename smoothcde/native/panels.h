/* Products of small matrices in the cache: what fields and encoders are made of.

Plain C with the vector types of GCC and Clang; compiled for the processor it runs on. Every sum runs in the same order
whatever rows are worked on together, so rows do not depend on their neighbours, to the last bit. */

#pragma once

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif
#ifdef __AVX__
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define LANES 16
#define TILE 12
#elif defined(__AVX__)
#define LANES 8
#define TILE 6
#else
#define LANES 4
#define TILE 8
#endif
#define PANEL (2 * LANES) /* columns of a product that are made at a time */

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int32_t ivec __attribute__((vector_size(4 * LANES)));
typedef float loose __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

#ifdef __clang__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif
#define HELPER __attribute__((unused)) static
#define INLINE static inline __attribute__((always_inline))
#define LOAD(p) ((vec) * (const loose *)(p))
#define STORE(p, v) (*(loose *)(p) = (loose)(v))

/* To an aligned place that will not be read for long: past the cache, which then need not read it first nor give up
what it holds. Other threads see it after SETTLE. */
#if defined(__clang__)
#define STREAM(p, v) __builtin_nontemporal_store(v, (vec *)(p))
#elif defined(__AVX512F__)
#define STREAM(p, v) _mm512_stream_ps(p, (__m512)(v))
#elif defined(__AVX__)
#define STREAM(p, v) _mm256_stream_ps(p, (__m256)(v))
#else
#define STREAM(p, v) STORE(p, v)
#endif
#define SETTLE __atomic_thread_fence(__ATOMIC_SEQ_CST)

INLINE vec spread(float x) { return x - (vec){0}; }

INLINE vec choose(ivec mask, vec yes, vec no) { return (vec)(((ivec)yes & mask) | ((ivec)no & ~mask)); }

/* 2^y for y in [-126, 127], to one rounding; NaN stays NaN. */
INLINE vec power_of_two(vec y) {
    const vec magic = spread(12582912.0f); /* 1.5 * 2^23: adding it rounds to an integer */
    vec shifted = y + magic;
    vec f = y - (shifted - magic); /* in [-1/2, 1/2] */
    vec p = f * 1.5403530393381609e-4f + 1.3333558146428443e-3f;
    p = p * f + 9.6181291076284772e-3f;
    p = p * f + 5.5504108664821580e-2f;
    p = p * f + 2.4022650695910071e-1f;
    p = p * f + 6.9314718055994531e-1f;
    p = p * f + 1.0f;
    ivec exponent = (ivec)shifted - (ivec)magic + 127;
    return p * (vec)(exponent << 23);
}

/* c = (c +) a b: m rows, two vectors of columns. `a_row` and `a_depth` are strides of a, `b_depth` of b. */
INLINE void tile(const int m, long depth, const float *restrict a, long a_row, const long a_depth,
                 const float *restrict b, long b_depth, const float *bias, float *restrict c, long c_row,
                 const int add) {
    vec sum[TILE][2];
    UNROLL
    for (int r = 0; r < m; r++) {
        sum[r][0] = bias ? LOAD(bias) : spread(0);
        sum[r][1] = bias ? LOAD(bias + LANES) : spread(0);
    }
    for (long k = 0; k < depth; k++) {
        vec b0 = LOAD(b + k * b_depth), b1 = LOAD(b + k * b_depth + LANES);
        UNROLL
        for (int r = 0; r < m; r++) {
            vec x = spread(a[r * a_row + k * a_depth]);
            sum[r][0] += x * b0;
            sum[r][1] += x * b1;
        }
    }
    UNROLL
    for (int r = 0; r < m; r++) {
        float *to = c + r * c_row;
        STORE(to, add ? LOAD(to) + sum[r][0] : sum[r][0]);
        STORE(to + LANES, add ? LOAD(to + LANES) + sum[r][1] : sum[r][1]);
    }
}

#define REST(m, ...)                                              \
    switch (m) {                                                  \
        case 1: tile(1, __VA_ARGS__); break;                      \
        case 2: tile(2, __VA_ARGS__); break;                      \
        case 3: tile(3, __VA_ARGS__); break;                      \
        case 4: tile(4, __VA_ARGS__); break;                      \
        case 5: tile(5, __VA_ARGS__); break;                      \
        case 6: tile(6 > TILE ? TILE : 6, __VA_ARGS__); break;    \
        case 7: tile(7 > TILE ? TILE : 7, __VA_ARGS__); break;    \
        case 8: tile(8 > TILE ? TILE : 8, __VA_ARGS__); break;    \
        case 9: tile(9 > TILE ? TILE : 9, __VA_ARGS__); break;    \
        case 10: tile(10 > TILE ? TILE : 10, __VA_ARGS__); break; \
        case 11: tile(11 > TILE ? TILE : 11, __VA_ARGS__); break; \
    }

/* c = a b + bias for a panel of columns; b is packed, `PANEL` columns in a row. */
HELPER void product(long rows, long depth, const float *a, long a_row, const float *b, const float *bias, float *c,
                    long c_row) {
    long r = 0;
    for (; r + TILE <= rows; r += TILE)
        tile(TILE, depth, a + r * a_row, a_row, 1, b, PANEL, bias, c + r * c_row, c_row, 0);
    REST(rows - r, depth, a + r * a_row, a_row, 1, b, PANEL, bias, c + r * c_row, c_row, 0)
}

/* c += a^T b for a panel of columns of b: what rows add to the gradient of a weight. */
HELPER void outer(long rows, long depth, const float *a, long a_depth, const float *b, long b_depth, float *c,
                  long c_row) {
    long r = 0;
    for (; r + TILE <= rows; r += TILE) tile(TILE, depth, a + r, 1, a_depth, b, b_depth, NULL, c + r * c_row, c_row, 1);
    REST(rows - r, depth, a + r, 1, a_depth, b, b_depth, NULL, c + r * c_row, c_row, 1)
}

HELPER void add_rows(long rows, long columns, const float *g, long g_row, float *sum) {
    for (long r = 0; r < rows; r++)
        for (long j = 0; j < columns; j += LANES) STORE(sum + j, LOAD(sum + j) + LOAD(g + r * g_row + j));
}

/* Past the cache, to aligned rows. */
HELPER void stream_rows(long numbers, const float *from, float *to) {
    for (long j = 0; j < numbers; j += LANES) STREAM(to + j, LOAD(from + j));
}

HELPER float sum_of(vec v) {
    float part[LANES];
    STORE(part, v);
    for (int half = LANES / 2; half; half /= 2)
        for (int j = 0; j < half; j++) part[j] += part[j + half];
    return part[0];
}

HELPER long thread_number(void) {
#ifdef _OPENMP
    return omp_get_thread_num();
#else
    return 0;
#endif
}

HELPER float *room(long numbers) { return aligned_alloc(64, (numbers * sizeof(float) + 63) / 64 * 64); }

/* For the Python side, which packs matrices. */
int64_t panel_columns(void) { return PANEL; }
