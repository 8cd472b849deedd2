/* Polynomials in Chebyshev form at a few places in [-1, 1] at a time, in double precision. */

#pragma once

#include "panels.h"

#define PLACES 8            /* at a time */
#define DOUBLES (LANES / 2) /* of a vector */
#define PARTS (PLACES / DOUBLES)
#define MOST_CHANNELS 4 /* whose sums stay in registers */
#define FILLED_UP(count) (((count) + DOUBLES - 1) / DOUBLES * DOUBLES)

typedef double dvec __attribute__((vector_size(4 * LANES)));
typedef double loose_dvec __attribute__((vector_size(4 * LANES), aligned(8), may_alias));
#define LOAD_D(p) ((dvec) * (const loose_dvec *)(p))
#define STORE_D(p, v) (*(loose_dvec *)(p) = (loose_dvec)(v))

INLINE void values_of(const int m, long count, long channels, const float *coefficients, const double *x, double *values) {
    dvec at[PARTS], now[PARTS], before[PARTS], sum[MOST_CHANNELS][PARTS] = {0};
    UNROLL
    for (int p = 0; p < PARTS; p++) at[p] = before[p] = LOAD_D(x + p * DOUBLES), now[p] = (dvec){0} + 1;
    for (long k = 0; k < count; k++) {
        UNROLL
        for (int c = 0; c < m; c++) {
            double coefficient = coefficients[k * channels + c];
            UNROLL
            for (int p = 0; p < PARTS; p++) sum[c][p] += coefficient * now[p];
        }
        UNROLL
        for (int p = 0; p < PARTS; p++) { /* T_{k+1} = 2 x T_k - T_{k-1}, and T_{-1} = T_1 */
            dvec after = 2 * at[p] * now[p] - before[p];
            before[p] = now[p], now[p] = after;
        }
    }
    UNROLL
    for (int c = 0; c < m; c++)
        for (int p = 0; p < PARTS; p++) STORE_D(values + c * PLACES + p * DOUBLES, sum[c][p]);
}

/* coefficients: [count, channels]; x: [PLACES]; values: [channels, PLACES]. */
HELPER void polynomial_values(long count, long channels, const float *coefficients, const double *x, double *values) {
    long c = 0;
    for (; c + MOST_CHANNELS <= channels; c += MOST_CHANNELS)
        values_of(MOST_CHANNELS, count, channels, coefficients + c, x, values + c * PLACES);
    switch (channels - c) {
        case 1: values_of(1, count, channels, coefficients + c, x, values + c * PLACES); break;
        case 2: values_of(2, count, channels, coefficients + c, x, values + c * PLACES); break;
        case 3: values_of(3, count, channels, coefficients + c, x, values + c * PLACES); break;
    }
}

/* T_0(x) ... T_{count-1}(x), filled up to whole vectors. */
HELPER void all_polynomials(double x, long count, double *to) {
    double first[DOUBLES + 1] = {1, x};
    for (int k = 2; k <= DOUBLES; k++) first[k] = 2 * x * first[k - 1] - first[k - 2];
    dvec now, before; /* T_{k+m} = 2 T_m T_k - T_{k-m}: a whole vector from the last two, m being its length */
    for (int k = 0; k < DOUBLES; k++) now[k] = first[k], before[k] = first[DOUBLES - k];
    for (long k = 0; k < count; k += DOUBLES) {
        STORE_D(to + k, now);
        dvec after = 2 * first[DOUBLES] * now - before;
        before = now, now = after;
    }
}

/* What gradients g of values mean to the coefficients, to which it is added. g: [channels, PLACES], of which the first
`places` count; `basis`: room for PLACES + 1 times FILLED_UP(count) numbers. */
HELPER void polynomial_values_back(long count, long channels, long places, const double *g, const double *x, float *to,
                                   double *basis) {
    long wide = FILLED_UP(count);
    double *along = basis + PLACES * wide;
    for (long j = 0; j < places; j++) all_polynomials(x[j], count, basis + j * wide);
    for (long c = 0; c < channels; c++) {
        for (long k = 0; k < wide; k += DOUBLES) {
            dvec sum = {0};
            for (long j = 0; j < places; j++) sum += g[c * PLACES + j] * LOAD_D(basis + j * wide + k);
            STORE_D(along + k, sum);
        }
        for (long k = 0; k < count; k++) to[k * channels + c] += along[k];
    }
}
