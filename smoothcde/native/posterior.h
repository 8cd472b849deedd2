/* Gaussian processes, one at a time: c = K (I + G K)^-1 b, and the way back.

Of the observations only sums of Chebyshev polynomials over their places are needed, weighted by their precision P:
s_m of P T_m, and b_j of P x T_j. A product of two polynomials is the mean of two others, so that
G_ij = (s_{i+j} + s_{|i-j|}) / 2, and s_{n-1+m} = 2 (sum of P T_{n-1} T_m) - s_{n-1-m}: n polynomials give all sums. */

#pragma once

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Vectors as long as the processor's, and no longer: longer ones would be kept in memory, at many times the cost. */
#if defined(__AVX512F__)
#define LANES 8
#elif defined(__AVX__)
#define LANES 4
#else
#define LANES 2
#endif
#define VECTORS(n) (((n) + LANES - 1) / LANES * LANES)
#define PADDED(n) (((n) + 2 * LANES - 1) / (2 * LANES) * (2 * LANES))
#define TILE 6
#define AT_ONCE 2048 /* places whose polynomials are at hand: long series are gone through in parts */

typedef double vec __attribute__((vector_size(8 * LANES)));
typedef double loose __attribute__((vector_size(8 * LANES), aligned(8), may_alias));
#define LOAD(p) ((vec) * (const loose *)(p))
#define STORE(p, v) (*(loose *)(p) = (loose)(v))

/* Of one process; `windows` is 1 if all were observed at the same places. */
typedef struct {
    long places, count, columns, windows;
} Extent;

/* From row to row of a system, with its right-hand sides beside it. */
static long row_of_system(long count, long columns) { return PADDED(count) + VECTORS(columns); }

/* c = (c +) a b: m rows, two vectors of columns; `a_row` and `a_depth` are strides of a. */
static inline __attribute__((always_inline)) void tile(const int m, long depth, const double *restrict a, long a_row,
                                                       long a_depth, const double *restrict b, long b_row,
                                                       double *restrict c, long c_row, int add) {
    vec sum[TILE][2] = {0};
    for (long k = 0; k < depth; k++) {
        vec b0 = *(const loose *)(b + k * b_row), b1 = *(const loose *)(b + k * b_row + LANES);
        for (int r = 0; r < m; r++) {
            double x = a[r * a_row + k * a_depth];
            sum[r][0] += x * b0;
            sum[r][1] += x * b1;
        }
    }
    for (int r = 0; r < m; r++) {
        double *to = c + r * c_row;
        STORE(to, add ? LOAD(to) + sum[r][0] : sum[r][0]);
        STORE(to + LANES, add ? LOAD(to + LANES) + sum[r][1] : sum[r][1]);
    }
}

/* c = (c +) a b; columns are a multiple of two vectors. */
static void product(long rows, long depth, long columns, const double *a, long a_row, long a_depth, const double *b,
                    long b_row, double *c, long c_row, int add) {
    for (long n = 0; n < columns; n += 2 * LANES) {
        long r = 0;
        for (; r + TILE <= rows; r += TILE)
            tile(TILE, depth, a + r * a_row, a_row, a_depth, b + n, b_row, c + r * c_row + n, c_row, add);
        const double *rest = a + r * a_row;
        double *to = c + r * c_row + n;
        switch (rows - r) {
            case 1: tile(1, depth, rest, a_row, a_depth, b + n, b_row, to, c_row, add); break;
            case 2: tile(2, depth, rest, a_row, a_depth, b + n, b_row, to, c_row, add); break;
            case 3: tile(3, depth, rest, a_row, a_depth, b + n, b_row, to, c_row, add); break;
            case 4: tile(4, depth, rest, a_row, a_depth, b + n, b_row, to, c_row, add); break;
            case 5: tile(5, depth, rest, a_row, a_depth, b + n, b_row, to, c_row, add); break;
        }
    }
}

/* a = P L U, in its place, and what stands beside it, b, becomes L^-1 P^-1 b; rows are `wide` apart, all of it filled.
`row` is room for one. */
static void eliminate(long n, long wide, double *restrict a, int64_t *pivots, double *restrict row) {
    for (long k = 0; k < n; k++) {
        long p = k, from = (k + 1) / LANES * LANES;
        for (long i = k + 1; i < n; i++)
            if (fabs(a[i * wide + k]) > fabs(a[p * wide + k])) p = i;
        pivots[k] = p;
        if (p != k)
            for (long j = 0; j < wide; j += LANES) {
                vec other = LOAD(a + k * wide + j);
                STORE(a + k * wide + j, LOAD(a + p * wide + j));
                STORE(a + p * wide + j, other);
            }
        /* Whole vectors, with zeros where what stands there is to stay. */
        memcpy(row + from, a + k * wide + from, sizeof(double) * (wide - from));
        for (long j = from; j <= k; j++) row[j] = 0;
        double inverse = 1 / a[k * wide + k];
        for (long i = k + 1; i < n; i++) {
            double *restrict own = a + i * wide, share = own[k] * inverse;
            own[k] = share;
            for (long j = from; j < wide; j += LANES) STORE(own + j, LOAD(own + j) - share * LOAD(row + j));
        }
    }
}

/* x = U^-1 b of an eliminated system: [n, VECTORS(columns)]. */
static void substitute(long n, long columns, const double *restrict lu, double *restrict x) {
    long beside = PADDED(n), wide = row_of_system(n, columns), vectors = VECTORS(columns);
    for (long i = n - 1; i >= 0; i--)
        for (long c = 0; c < vectors; c += LANES) {
            vec sum = LOAD(lu + i * wide + beside + c), other = {0};
            long j = i + 1;
            for (; j + 1 < n; j += 2) { /* two sums, each of which would wait for itself */
                sum -= lu[i * wide + j] * LOAD(x + j * vectors + c);
                other += lu[i * wide + j + 1] * LOAD(x + (j + 1) * vectors + c);
            }
            if (j < n) sum -= lu[i * wide + j] * LOAD(x + j * vectors + c);
            STORE(x + i * vectors + c, (sum - other) / lu[i * wide + i]);
        }
}

static void swap(double *b, long one, long other) {
    double kept = b[one];
    b[one] = b[other];
    b[other] = kept;
}

/* b <- a^-T b, from what `eliminate` left of a. */
static void solve_transposed(long n, long wide, const double *restrict lu, const int64_t *pivots, double *restrict b) {
    for (long i = 0; i < n; i++) {
        b[i] /= lu[i * wide + i];
        for (long j = i + 1; j < n; j++) b[j] -= lu[i * wide + j] * b[i];
    }
    for (long i = n - 1; i >= 0; i--)
        for (long j = 0; j < i; j++) b[j] -= lu[i * wide + j] * b[i];
    for (long k = n - 1; k >= 0; k--) swap(b, k, pivots[k]);
}

/* T_0 ... T_{n-1} at every place: [places, polynomials filled up]. */
static void by_place(long n, long places, const double *x, double *restrict basis) {
    long w = PADDED(n);
    memset(basis, 0, sizeof(double) * places * w);
    for (long first = 0; first < places; first += LANES) { /* some places at a time: each waits for itself */
        double at[LANES];
        long some = places - first < LANES ? places - first : LANES;
        for (long k = 0; k < LANES; k++) at[k] = k < some ? fmax(fmin(x[first + k], 1), -1) : 0;
        for (long m = 0; m < n; m++)
            for (long k = 0; k < some; k++) {
                double *own = basis + (first + k) * w + m;
                *own = m == 0 ? 1 : m == 1 ? at[k] : 2 * at[k] * own[-1] - own[-2];
            }
    }
}

/* The same the other way round: [polynomials, places filled up]. */
static void by_polynomial(long n, long places, const double *x, double *restrict basis) {
    long wide = PADDED(places);
    for (long k = 0; k < wide; k++) {
        basis[k] = 1;
        if (n > 1) basis[wide + k] = k < places ? fmax(fmin(x[k], 1), -1) : 0;
    }
    for (long m = 2; m < n; m++) {
        const double *restrict at = basis + wide, *restrict before = basis + (m - 1) * wide;
        const double *restrict first = basis + (m - 2) * wide;
        double *restrict own = basis + m * wide;
        for (long k = 0; k < wide; k++) own[k] = 2 * at[k] * before[k] - first[k];
    }
}

typedef void Order(long n, long places, const double *x, double *basis);

/* What a thread works in. `kernel` and `basis` are those of the last row; `order` makes the latter. `system` and `pivots`
are for who keeps none; behind the system is room for one more of its rows. */
typedef struct {
    double *basis, *weights, *sums, *s, *gram, *solved, *system, *found, *kernel;
    int64_t *pivots;
    const double *kernel_from, *x;
    Order *order;
} Room;

static Room room_of(const Extent *e, const double *x, Order *order) {
    long n = e->count, w = PADDED(n), columns = e->columns, rows = 2 + columns;
    long places = PADDED(e->places < AT_ONCE ? e->places : AT_ONCE);
    long weights = places * PADDED(rows), solved = n * VECTORS(columns), system = (n + 1) * row_of_system(n, columns);
    Room r = {0};
    long numbers = places * w + weights + rows * w + 6 * w + PADDED(n * n) + solved + system + columns * w + n * w + n;
    r.basis = aligned_alloc(64, (numbers * sizeof(double) + 63) / 64 * 64);
    if (!r.basis) return r;
    r.weights = r.basis + places * w;
    r.sums = r.weights + weights;
    r.s = r.sums + rows * w;
    r.gram = r.s + 6 * w;
    r.solved = r.gram + PADDED(n * n);
    r.system = r.solved + solved;
    r.found = r.system + system;
    r.kernel = r.found + columns * w;
    r.pivots = (int64_t *)(r.kernel + n * w);
    r.order = order;
    if (e->windows == 1 && e->places <= AT_ONCE) order(n, e->places, x, r.basis);
    return r;
}

/* x: [windows, places]; kernel: [count, count], symmetric. */
static void begin_row(const Extent *e, Room *r, const double *x, const double *kernel, long row) {
    long n = e->count, w = PADDED(n);
    r->x = x + (e->windows == 1 ? 0 : row * e->places);
    if (e->windows != 1 && e->places <= AT_ONCE) r->order(n, e->places, r->x, r->basis);
    if (kernel == r->kernel_from) return;
    r->kernel_from = kernel;
    for (long i = 0; i < n; i++) {
        memcpy(r->kernel + i * w, kernel + i * n, sizeof(double) * n);
        memset(r->kernel + i * w + n, 0, sizeof(double) * (w - n));
    }
}

/* Coefficients of the mean go to r->found, [columns, PADDED(count)]. precision: [places]; targets: [places, columns];
system: [count, row_of_system] and pivots: [count], which the way back asks for. */
static void condition(const Extent *e, const Room *r, const double *precision, const double *targets, double *system,
                      int64_t *pivots) {
    long n = e->count, w = PADDED(n), columns = e->columns, rows = 2 + columns, wide = row_of_system(n, columns);
    for (long first = 0, here; first < e->places; first += here) {
        here = e->places - first < AT_ONCE ? e->places - first : AT_ONCE;
        if (e->places > AT_ONCE) r->order(n, here, r->x + first, r->basis);
        for (long k = 0; k < here; k++) {
            double own = precision[first + k], *restrict to = r->weights + k * rows;
            to[0] = own;
            to[1] = own * r->basis[k * w + n - 1];
            for (long c = 0; c < columns; c++) to[2 + c] = own * targets[(first + k) * columns + c];
        }
        product(rows, here, w, r->weights, 1, rows, r->basis, w, r->sums, w, first > 0);
    }
    double *s = r->s, *upper = r->sums + w, *pull = r->sums + 2 * w;
    memcpy(s, r->sums, sizeof(double) * n);
    for (long m = 1; m < n; m++) s[n - 1 + m] = 2 * upper[m] - s[n - 1 - m];
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++) r->gram[i * n + j] = (s[i + j] + s[labs(i - j)]) / 2;
    product(n, n, w, r->gram, n, 1, r->kernel, w, system, wide, 0);
    for (long i = 0; i < n; i++) {
        system[i * wide + i] += 1;
        for (long c = 0; c < wide - w; c++) system[i * wide + w + c] = c < columns ? pull[c * w + i] : 0;
    }
    eliminate(n, wide, system, pivots, r->system + n * wide);
    substitute(n, columns, system, r->solved);
    product(columns, n, w, r->solved, 1, VECTORS(columns), r->kernel, w, r->found, w, 0);
}

/* What gradients g of the mean's coefficients, [count, columns], mean to the precision, [places]. */
static void condition_back(const Extent *e, const Room *r, const double *g, const double *targets, const double *means,
                           const double *system, const int64_t *pivots, double *to_precision) {
    long n = e->count, w = PADDED(n), columns = e->columns;
    double *lower = r->sums, *upper = r->sums + w, *to_pull = r->sums + 2 * w;
    /* Gradients of s_{i+j}, and of those of s_{i-j}, from -(n-1) on; each is written a little beyond its end. */
    double *along = r->s, *across = along + 3 * w, *mean = r->found, *mirrored = r->solved;
    memset(along, 0, sizeof(double) * 6 * w);
    product(columns, n, w, g, 1, columns, r->kernel, w, to_pull, w, 0);
    for (long c = 0; c < columns; c++) {
        double *own = to_pull + c * w;
        solve_transposed(n, row_of_system(n, columns), system, pivots, own);
        for (long j = 0; j < w; j++) mean[j] = j < n ? means[j * columns + c] : 0;
        for (long j = 0; j < VECTORS(n); j++) mirrored[j] = j < n ? mean[n - 1 - j] : 0;
        /* The gradient of G_ij is minus that of b_i times mean_j. */
        for (long i = 0; i < n; i++) {
            double half = -own[i] / 2;
            for (long j = 0; j < VECTORS(n); j += LANES) {
                STORE(along + i + j, LOAD(along + i + j) + half * LOAD(mean + j));
                STORE(across + i + j, LOAD(across + i + j) + half * LOAD(mirrored + j));
            }
        }
    }
    /* Sums beyond the first n are made of these. */
    for (long m = 0; m < n; m++) lower[m] = along[m] + across[n - 1 + m] + (m ? across[n - 1 - m] : 0), upper[m] = 0;
    for (long m = 1; m < n; m++) upper[m] = 2 * along[n - 1 + m], lower[n - 1 - m] -= along[n - 1 + m];
    for (long first = 0, here; first < e->places; first += here) {
        here = e->places - first < AT_ONCE ? e->places - first : AT_ONCE;
        if (e->places > AT_ONCE) r->order(n, here, r->x + first, r->basis);
        long wide = PADDED(here);
        const double *at = r->weights, *last = r->basis + (n - 1) * wide;
        product(2 + columns, n, wide, r->sums, w, 1, r->basis, wide, r->weights, wide, 0);
        for (long k = 0; k < here; k++) {
            double sum = at[k] + last[k] * at[wide + k];
            for (long c = 0; c < columns; c++) sum += targets[(first + k) * columns + c] * at[(2 + c) * wide + k];
            to_precision[first + k] = sum;
        }
    }
}
