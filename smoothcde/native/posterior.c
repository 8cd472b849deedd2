/* Posterior means of many small Gaussian processes: c = K (I + G K)^-1 b, and the way back.

Of the observations only sums of Chebyshev polynomials over their places are needed, weighted by their precision P:
s_m of P T_m, and b_j of P x T_j. A product of two polynomials is the mean of two others, so that
G_ij = (s_{i+j} + s_{|i-j|}) / 2. */

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
#define PADDED(n) (((n) + 2 * LANES - 1) / (2 * LANES) * (2 * LANES))
#define TILE 6

typedef double vec __attribute__((vector_size(8 * LANES)));
typedef double loose __attribute__((vector_size(8 * LANES), aligned(8), may_alias));

/* `windows`: 1 if all rows of a view were observed at the same places, else that of rows; `kernels`: likewise, of each
view. */
typedef struct {
    int64_t views, rows, windows, kernels, places, count, columns, threads;
} Sizes;

/* c = a b: m rows, two vectors of columns; `a_row` and `a_depth` are strides of a. */
static inline __attribute__((always_inline)) void tile(const int m, long depth, const double *restrict a, long a_row,
                                                       long a_depth, const double *restrict b, long b_row,
                                                       double *restrict c, long c_row) {
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
        *(loose *)(c + r * c_row) = sum[r][0];
        *(loose *)(c + r * c_row + LANES) = sum[r][1];
    }
}

/* c = a b; columns are a multiple of two vectors. */
static void product(long rows, long depth, long columns, const double *a, long a_row, long a_depth, const double *b,
                    long b_row, double *c, long c_row) {
    for (long n = 0; n < columns; n += 2 * LANES) {
        long r = 0;
        for (; r + TILE <= rows; r += TILE)
            tile(TILE, depth, a + r * a_row, a_row, a_depth, b + n, b_row, c + r * c_row + n, c_row);
        const double *rest = a + r * a_row;
        double *to = c + r * c_row + n;
        switch (rows - r) {
            case 1: tile(1, depth, rest, a_row, a_depth, b + n, b_row, to, c_row); break;
            case 2: tile(2, depth, rest, a_row, a_depth, b + n, b_row, to, c_row); break;
            case 3: tile(3, depth, rest, a_row, a_depth, b + n, b_row, to, c_row); break;
            case 4: tile(4, depth, rest, a_row, a_depth, b + n, b_row, to, c_row); break;
            case 5: tile(5, depth, rest, a_row, a_depth, b + n, b_row, to, c_row); break;
        }
    }
}

/* In any order: eight at a time. */
static inline double dot(long n, const double *restrict a, const double *restrict b) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (long i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

/* a = P L U, in its place; its rows are `w` apart. */
static void factorise(long n, long w, double *restrict a, int64_t *pivots) {
    for (long k = 0; k < n; k++) {
        long p = k;
        for (long i = k + 1; i < n; i++)
            if (fabs(a[i * w + k]) > fabs(a[p * w + k])) p = i;
        pivots[k] = p;
        if (p != k)
            for (long j = 0; j < n; j++) {
                double other = a[k * w + j];
                a[k * w + j] = a[p * w + j];
                a[p * w + j] = other;
            }
        for (long i = k + 1; i < n; i++) {
            double share = a[i * w + k] / a[k * w + k];
            a[i * w + k] = share;
            for (long j = k + 1; j < n; j++) a[i * w + j] -= share * a[k * w + j];
        }
    }
}

static void swap(double *b, long one, long other) {
    double kept = b[one];
    b[one] = b[other];
    b[other] = kept;
}

/* b <- a^-1 b, or with `transposed` a^-T b. */
static void solve(long n, long w, const double *restrict lu, const int64_t *pivots, int transposed, double *restrict b) {
    if (!transposed) {
        for (long k = 0; k < n; k++) swap(b, k, pivots[k]);
        for (long i = 1; i < n; i++) b[i] -= dot(i, lu + i * w, b);
        for (long i = n - 1; i >= 0; i--) b[i] = (b[i] - dot(n - 1 - i, lu + i * w + i + 1, b + i + 1)) / lu[i * w + i];
        return;
    }
    for (long i = 0; i < n; i++) {
        b[i] /= lu[i * w + i];
        for (long j = i + 1; j < n; j++) b[j] -= lu[i * w + j] * b[i];
    }
    for (long i = n - 1; i >= 0; i--)
        for (long j = 0; j < i; j++) b[j] -= lu[i * w + j] * b[i];
    for (long k = n - 1; k >= 0; k--) swap(b, k, pivots[k]);
}

/* T_0 ... T_{2 count - 2} at every place: [places, polynomials filled up]. */
static void by_place(const Sizes *z, const double *x, double *restrict basis) {
    long most = 2 * z->count - 1, wide = PADDED(most);
    for (long k = 0; k < z->places; k++) {
        double *restrict own = basis + k * wide, at = x[k] > 1 ? 1 : x[k] < -1 ? -1 : x[k];
        memset(own, 0, sizeof(double) * wide);
        own[0] = 1;
        if (most > 1) own[1] = at;
        for (long m = 2; m < most; m++) own[m] = 2 * at * own[m - 1] - own[m - 2];
    }
}

/* The same the other way round: [polynomials, places filled up]. */
static void by_polynomial(const Sizes *z, const double *x, double *restrict basis) {
    long most = 2 * z->count - 1, wide = PADDED(z->places);
    for (long k = 0; k < wide; k++) {
        double at = k < z->places ? x[k] : 0;
        basis[k] = 1;
        if (most > 1) basis[wide + k] = at > 1 ? 1 : at < -1 ? -1 : at;
    }
    for (long m = 2; m < most; m++) {
        const double *restrict at = basis + wide, *restrict before = basis + (m - 1) * wide;
        const double *restrict first = basis + (m - 2) * wide;
        double *restrict own = basis + m * wide;
        for (long k = 0; k < wide; k++) own[k] = 2 * at[k] * before[k] - first[k];
    }
}

typedef void Order(const Sizes *z, const double *x, double *basis);

/* What a thread works in. `kernel` and `basis` are those of the last row; `order` makes the latter. */
typedef struct {
    double *basis, *weights, *s, *sums, *gram, *kernel;
    const double *kernel_from;
    Order *order;
} Room;

static Room room_of(const Sizes *z, const double *x, Order *order) {
    long n = z->count, wide = PADDED(2 * n - 1), w = PADDED(n), columns = z->columns, places = PADDED(z->places);
    Room r = {0};
    long numbers = places * (wide + PADDED(1 + columns)) + (1 + columns) * wide + 2 * PADDED(1 + columns) * w +
                   PADDED(n * n) + n * w;
    r.basis = aligned_alloc(64, (numbers * sizeof(double) + 63) / 64 * 64);
    if (!r.basis) return r;
    r.weights = r.basis + places * wide;
    r.s = r.weights + places * PADDED(1 + columns);
    r.sums = r.s + (1 + columns) * wide;
    r.gram = r.sums + 2 * PADDED(1 + columns) * w;
    r.kernel = r.gram + PADDED(n * n);
    r.order = order;
    if (z->windows == 1) order(z, x, r.basis);
    return r;
}

static void begin_row(const Sizes *z, Room *r, const double *x, const double *kernels, long row) {
    long n = z->count, w = PADDED(n), which = z->kernels == 1 ? row / z->rows : row;
    if (z->windows != 1) r->order(z, x + row % z->rows * z->places, r->basis);
    const double *kernel = kernels + which * n * n;
    if (kernel == r->kernel_from) return;
    r->kernel_from = kernel;
    for (long i = 0; i < n; i++) {
        memcpy(r->kernel + i * w, kernel + i * n, sizeof(double) * n);
        memset(r->kernel + i * w + n, 0, sizeof(double) * (w - n));
    }
}

/* x: [windows, places]; precision: [views, rows, places]; targets: [rows, places, columns]; kernels: [views, kernels,
count, count], each symmetric. means: [views, rows, count, columns]. Kept are factors, [views, rows, count, count filled
up], and pivots, [views, rows, count]. */
int posterior_means(const Sizes *z, const double *x, const double *precision, const double *targets,
                    const double *kernels, double *means, double *factors, int64_t *pivots) {
    long n = z->count, w = PADDED(n), wide = PADDED(2 * n - 1), columns = z->columns;
    int failed = 0;
#pragma omp parallel num_threads(z->threads)
    {
        Room r = room_of(z, x, by_place);
        if (!r.basis) failed = 1;
#pragma omp for schedule(static)
        for (long row = 0; row < z->views * z->rows; row++) {
            if (failed) continue;
            begin_row(z, &r, x, kernels, row);
            const double *to = targets + row % z->rows * z->places * columns, *own = precision + row * z->places;
            for (long k = 0; k < z->places; k++)
                for (long c = 0; c < columns; c++) r.weights[k * columns + c] = own[k] * to[k * columns + c];
            double *pull = r.sums, *found = r.sums + columns * w, *system = factors + row * n * w;
            product(1, z->places, wide, own, 0, 1, r.basis, wide, r.s, wide);
            product(columns, z->places, w, r.weights, 1, columns, r.basis, wide, pull, w);
            for (long i = 0; i < n; i++)
                for (long j = 0; j < n; j++) r.gram[i * n + j] = (r.s[i + j] + r.s[labs(i - j)]) / 2;
            product(n, n, w, r.gram, n, 1, r.kernel, w, system, w);
            for (long i = 0; i < n; i++) system[i * w + i] += 1;
            factorise(n, w, system, pivots + row * n);
            for (long c = 0; c < columns; c++) solve(n, w, system, pivots + row * n, 0, pull + c * w);
            product(columns, n, w, pull, w, 1, r.kernel, w, found, w);
            for (long i = 0; i < n; i++)
                for (long c = 0; c < columns; c++) means[(row * n + i) * columns + c] = found[c * w + i];
        }
        free(r.basis);
    }
    return failed;
}

/* What gradients `g` of the means mean to the precision. */
int posterior_means_back(const Sizes *z, const double *g, const double *x, const double *targets, const double *means,
                         const double *kernels, const double *factors, const int64_t *pivots, double *to_precision) {
    long n = z->count, w = PADDED(n), most = 2 * n - 1, wide = PADDED(most), columns = z->columns;
    long places = PADDED(z->places);
    int failed = 0;
#pragma omp parallel num_threads(z->threads)
    {
        Room r = room_of(z, x, by_polynomial);
        if (!r.basis) failed = 1;
#pragma omp for schedule(static)
        for (long row = 0; row < z->views * z->rows; row++) {
            if (failed) continue;
            begin_row(z, &r, x, kernels, row);
            const double *to = targets + row % z->rows * z->places * columns, *mean = means + row * n * columns;
            double *to_pull = r.sums, *restrict s = r.s, *along = r.weights;
            product(columns, n, w, g + row * n * columns, 1, columns, r.kernel, w, to_pull, w);
            memset(s, 0, sizeof(double) * (1 + columns) * wide);
            for (long c = 0; c < columns; c++) {
                solve(n, w, factors + row * n * w, pivots + row * n, 1, to_pull + c * w);
                memcpy(s + (1 + c) * wide, to_pull + c * w, sizeof(double) * n);
                for (long j = 0; j < n; j++) r.gram[j] = mean[j * columns + c];
                /* The gradient of G_ij is minus that of b_i times mean_j. */
                for (long i = 0; i < n; i++) {
                    double half = -to_pull[c * w + i] / 2;
                    for (long j = 0; j < n; j++) s[i + j] += half * r.gram[j];
                    for (long j = 0; j < i; j++) s[i - j] += half * r.gram[j];
                    for (long j = i; j < n; j++) s[j - i] += half * r.gram[j];
                }
            }
            /* Gradients of the sums s and of those of each column, at all places. */
            product(1 + columns, most, places, s, wide, 1, r.basis, places, along, places);
            for (long k = 0; k < z->places; k++) {
                double sum = along[k];
                for (long c = 0; c < columns; c++) sum += to[k * columns + c] * along[(1 + c) * places + k];
                to_precision[row * z->places + k] = sum;
            }
        }
        free(r.basis);
    }
    return failed;
}

int64_t padded_count(int64_t count) { return PADDED(count); }
