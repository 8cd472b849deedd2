/* Values of polynomials in Chebyshev form, of every row at moments of its own. */

#include "polynomials.h"

typedef struct {
    int64_t rows, moments, count, channels, threads;
} Sizes;

/* times: [rows, moments]; start, end, length: [rows], the window and what [-1, 1] stands for. */
typedef struct {
    const double *times, *start, *end, *length;
} Moments;

/* Where the moments from `first` on are in [-1, 1]; `inside` is 0 for moments outside the window, and for none. */
static long places(const Sizes *z, const Moments *m, long row, long first, double *x, double *inside) {
    for (long j = 0; j < PLACES; j++) {
        double t = first + j < z->moments ? m->times[row * z->moments + first + j] : INFINITY;
        inside[j] = t >= m->start[row] && t <= m->end[row];
        double place = inside[j] ? 2 * (t - m->start[row]) / m->length[row] - 1 : 0;
        x[j] = place > 1 ? 1 : place < -1 ? -1 : place;
    }
    return z->moments - first < PLACES ? z->moments - first : PLACES;
}

/* coefficients: [rows, count, channels]; values: [rows, moments, channels], zero outside the window. */
int chebyshev_values(const Sizes *z, const Moments *m, const float *coefficients, float *values) {
    long d = z->channels;
    int failed = 0;
#pragma omp parallel num_threads(z->threads)
    {
        double *found = malloc(sizeof(double) * PLACES * (d + 1));
        if (!found) failed = 1;
#pragma omp for schedule(static)
        for (long row = 0; row < z->rows; row++) {
            if (failed) continue;
            for (long first = 0; first < z->moments; first += PLACES) {
                double x[PLACES], inside[PLACES];
                long here = places(z, m, row, first, x, inside);
                float *to = values + (row * z->moments + first) * d;
                polynomial_values(z->count, d, coefficients + row * z->count * d, x, found);
                for (long j = 0; j < here; j++)
                    for (long c = 0; c < d; c++) to[j * d + c] = found[c * PLACES + j] * inside[j];
            }
        }
        free(found);
    }
    return failed;
}

/* What a gradient g of the values means to the coefficients. */
int chebyshev_values_back(const Sizes *z, const Moments *m, const float *g, float *to_coefficients) {
    long d = z->channels;
    int failed = 0;
#pragma omp parallel num_threads(z->threads)
    {
        double *wanted = malloc(sizeof(double) * (PLACES * d + (PLACES + 1) * FILLED_UP(z->count)));
        if (!wanted) failed = 1;
#pragma omp for schedule(static)
        for (long row = 0; row < z->rows; row++) {
            if (failed) continue;
            float *own = to_coefficients + row * z->count * d;
            memset(own, 0, sizeof(float) * z->count * d);
            for (long first = 0; first < z->moments; first += PLACES) {
                double x[PLACES], inside[PLACES];
                long here = places(z, m, row, first, x, inside);
                const float *from = g + (row * z->moments + first) * d;
                for (long j = 0; j < here; j++)
                    for (long c = 0; c < d; c++) wanted[c * PLACES + j] = inside[j] * from[j * d + c];
                polynomial_values_back(z->count, d, here, wanted, x, own, wanted + PLACES * d);
            }
        }
        free(wanted);
    }
    return failed;
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
