/* Values of polynomials in Chebyshev form, of every row at moments of its own. */

#include "panels.h"

#define MOMENTS 8 /* worked on at a time */

typedef struct {
    int64_t rows, moments, count, channels, threads;
} Sizes;

/* times: [rows, moments]; start, end, length: [rows], the window and what [-1, 1] stands for. */
typedef struct {
    const double *times, *start, *end, *length;
} Moments;

/* Where the moments from `first` on are in [-1, 1], and T_0 and T_{-1} there; `inside` is 0 for moments outside the
window, and for none. */
static void places(const Sizes *z, const Moments *m, long row, long first, double *x, double *inside, double *now,
                   double *before) {
    for (long j = 0; j < MOMENTS; j++) {
        double t = first + j < z->moments ? m->times[row * z->moments + first + j] : INFINITY;
        inside[j] = t >= m->start[row] && t <= m->end[row];
        double place = inside[j] ? 2 * (t - m->start[row]) / m->length[row] - 1 : 0;
        x[j] = before[j] = place > 1 ? 1 : place < -1 ? -1 : place;
        now[j] = 1;
    }
}

/* From T_k(x) and T_{k-1}(x) to the next; T_{-1} = T_1. */
INLINE void next(const double *x, double *now, double *before) {
    for (long j = 0; j < MOMENTS; j++) {
        double after = 2 * x[j] * now[j] - before[j];
        before[j] = now[j];
        now[j] = after;
    }
}

/* coefficients: [rows, count, channels]; values: [rows, moments, channels], zero outside the window. */
int chebyshev_values(const Sizes *z, const Moments *m, const float *coefficients, float *values) {
    int failed = 0;
#pragma omp parallel num_threads(z->threads)
    {
        double *sums = malloc(sizeof(double) * MOMENTS * (z->channels + 1));
        if (!sums) failed = 1;
#pragma omp for schedule(static)
        for (long row = 0; row < z->rows; row++) {
            if (failed) continue;
            const float *own = coefficients + row * z->count * z->channels;
            for (long first = 0; first < z->moments; first += MOMENTS) {
                double x[MOMENTS], inside[MOMENTS], now[MOMENTS], before[MOMENTS];
                places(z, m, row, first, x, inside, now, before);
                memset(sums, 0, sizeof(double) * MOMENTS * z->channels);
                for (long k = 0; k < z->count; k++) {
                    for (long c = 0; c < z->channels; c++)
                        for (long j = 0; j < MOMENTS; j++) sums[c * MOMENTS + j] += own[k * z->channels + c] * now[j];
                    next(x, now, before);
                }
                for (long j = 0; j < MOMENTS && first + j < z->moments; j++)
                    for (long c = 0; c < z->channels; c++)
                        values[(row * z->moments + first + j) * z->channels + c] = sums[c * MOMENTS + j] * inside[j];
            }
        }
        free(sums);
    }
    return failed;
}

/* What a gradient g of the values means to the coefficients. */
int chebyshev_values_back(const Sizes *z, const Moments *m, const float *g, float *to_coefficients) {
#pragma omp parallel for num_threads(z->threads) schedule(static)
    for (long row = 0; row < z->rows; row++) {
        float *own = to_coefficients + row * z->count * z->channels;
        for (long first = 0; first < z->moments; first += MOMENTS) {
            double x[MOMENTS], inside[MOMENTS], now[MOMENTS], before[MOMENTS];
            places(z, m, row, first, x, inside, now, before);
            long here = z->moments - first < MOMENTS ? z->moments - first : MOMENTS;
            const float *from = g + (row * z->moments + first) * z->channels;
            for (long k = 0; k < z->count; k++) {
                for (long c = 0; c < z->channels; c++) {
                    double sum = first ? own[k * z->channels + c] : 0;
                    for (long j = 0; j < here; j++) sum += inside[j] * now[j] * from[j * z->channels + c];
                    own[k * z->channels + c] = sum;
                }
                next(x, now, before);
            }
        }
    }
    return 0;
}

typedef double wide __attribute__((vector_size(8 * LANES)));

/* Sums over channels of (coefficients^T features)^2. coefficients: [rows, count, channels]; features: [count, moments],
moments a multiple of PANEL; squares: [rows, moments]. */
int chebyshev_squared_sums(const Sizes *z, const float *coefficients, const float *features, double *squares) {
    int failed = 0;
#pragma omp parallel num_threads(z->threads)
    {
        float *values = room(z->channels * PANEL);
        if (!values) failed = 1;
#pragma omp for schedule(static)
        for (long row = 0; row < z->rows; row++) {
            if (failed) continue;
            const float *own = coefficients + row * z->count * z->channels;
            for (long n = 0; n < z->moments; n += PANEL) {
                memset(values, 0, sizeof(float) * z->channels * PANEL);
                outer(z->channels, z->count, own, z->channels, features + n, z->moments, values, PANEL);
                for (long j = 0; j < PANEL; j += LANES) {
                    wide sum = {0};
                    for (long c = 0; c < z->channels; c++) {
                        wide here = __builtin_convertvector(LOAD(values + c * PANEL + j), wide);
                        sum += here * here;
                    }
                    memcpy(squares + row * z->moments + n + j, &sum, sizeof(sum));
                }
            }
        }
        free(values);
    }
    return failed;
}
