/* Gaussian process paths of all views of series whose channels were observed together, from what was observed and how
much each view listens to it: polynomials of the paths and of their slopes, in single precision. */

#include "posterior.h"

/* `apart`: from stamp to stamp of `seen`. `most`: polynomials of the view that has the most. */
typedef struct {
    int64_t series, views, windows, kernels, places, channels, apart, most, threads;
} Sizes;

/* x: [windows, places]; length: [series], in time, of what [-1, 1] is; seen, values: [series, places, ...]; weights:
[series, views, places], or NULL if every view listens to everything; noise: [views]; mean: [channels], of the prior;
kernels: of each view [kernels, count, count]. */
typedef struct {
    const double *x, *length;
    const uint8_t *seen;
    const float *values, *weights;
    const double *noise, *mean, *const *kernels;
    double floor;
} Given;

/* What the way back needs, of every row: means [count, channels], factors [count, row_of_system], pivots [count]; of one
view after the other. */
typedef struct {
    double *means, *factors;
    int64_t *pivots;
} Kept;

static Kept of_row(const Sizes *z, Kept kept, long count, long row) {
    return (Kept){kept.means + row * count * z->channels,
                  kept.factors + row * count * row_of_system(count, z->channels), kept.pivots + row * count};
}

static Extent extent_of(const Sizes *z, long count) {
    return (Extent){z->places, count, z->channels, z->windows};
}

static const double *kernel_of(const Sizes *z, const Given *given, long view, long count, long row) {
    return given->kernels[view] + (z->kernels == 1 ? 0 : row * count * count);
}

/* Targets, and with `precision` that too. */
static void observed(const Sizes *z, const Given *given, long view, long row, double *precision, double *targets) {
    const uint8_t *seen = given->seen + row * z->places * z->apart;
    const float *values = given->values + row * z->places * z->channels;
    const float *weights = given->weights ? given->weights + (row * z->views + view) * z->places : NULL;
    double scale = 1 / (given->noise[view] * given->noise[view]);
    for (long k = 0; k < z->places; k++) {
        int here = seen[k * z->apart];
        if (precision) precision[k] = here ? (weights ? weights[k] + given->floor : 1) * scale : 0;
        for (long c = 0; c < z->channels; c++)
            targets[k * z->channels + c] = here ? values[k * z->channels + c] - given->mean[c] : 0;
    }
}

/* coefficients, slopes: [views, series, most, channels]; kept: NULL to forget what the way back needs. */
int gp_paths(const Sizes *z, const int64_t *counts, const Given *given, float *coefficients, float *slopes,
             const Kept *kept) {
    long d = z->channels;
    Kept all = kept ? *kept : (Kept){0};
    int failed = 0;
    for (long view = 0; view < z->views; view++) {
        long n = counts[view], w = PADDED(n);
        Extent e = extent_of(z, n);
#pragma omp parallel num_threads(z->threads)
        {
            Room r = room_of(&e, given->x, by_place);
            double *precision = malloc(sizeof(double) * z->places * (1 + d));
            if (!r.basis || !precision) failed = 1;
            double *targets = precision + z->places;
#pragma omp for schedule(static)
            for (long row = 0; row < z->series; row++) {
                if (failed) continue;
                begin_row(&e, &r, given->x, kernel_of(z, given, view, n, row), row);
                observed(z, given, view, row, precision, targets);
                Kept own = kept ? of_row(z, all, n, row) : (Kept){NULL, r.system, r.pivots};
                condition(&e, &r, precision, targets, own.factors, own.pivots);
                float *to = coefficients + (view * z->series + row) * z->most * d;
                float *slope = slopes + (view * z->series + row) * z->most * d;
                double unit = 2 / given->length[row];
                memset(to, 0, sizeof(float) * z->most * d);
                memset(slope, 0, sizeof(float) * z->most * d);
                for (long c = 0; c < d; c++) {
                    /* The slope's coefficients: s_j = s_{j+2} + 2 (j + 1) c_{j+1}, and half of that for j = 0. */
                    double later[2] = {0, 0};
                    for (long i = n - 1; i >= 0; i--) {
                        double found = r.found[c * w + i];
                        if (own.means) own.means[i * d + c] = found;
                        to[i * d + c] = found + (i ? 0 : given->mean[c]);
                        slope[i * d + c] = (i ? later[i % 2] : later[0] / 2) * unit;
                        later[(i + 1) % 2] += 2 * i * found;
                    }
                }
            }
            free(r.basis);
            free(precision);
        }
        if (kept) all = of_row(z, all, n, z->series);
    }
    return failed;
}

/* What gradients of coefficients and slopes mean to the weights. */
int gp_paths_back(const Sizes *z, const int64_t *counts, const Given *given, const float *g_coefficients,
                  const float *g_slopes, const Kept *kept, float *to_weights) {
    long d = z->channels;
    Kept all = *kept;
    int failed = 0;
    for (long view = 0; view < z->views; view++) {
        long n = counts[view];
        Extent e = extent_of(z, n);
        double scale = 1 / (given->noise[view] * given->noise[view]);
#pragma omp parallel num_threads(z->threads)
        {
            Room r = room_of(&e, given->x, by_polynomial);
            double *targets = malloc(sizeof(double) * (z->places * (1 + d) + n * d));
            if (!r.basis || !targets) failed = 1;
            double *to_precision = targets + z->places * d, *g = to_precision + z->places;
#pragma omp for schedule(static)
            for (long row = 0; row < z->series; row++) {
                if (failed) continue;
                begin_row(&e, &r, given->x, kernel_of(z, given, view, n, row), row);
                observed(z, given, view, row, NULL, targets);
                const float *from = g_coefficients + (view * z->series + row) * z->most * d;
                const float *slope = g_slopes + (view * z->series + row) * z->most * d;
                double unit = 2 / given->length[row];
                for (long c = 0; c < d; c++) {
                    double sooner[2] = {0, 0};
                    for (long i = 0; i < n; i++) {
                        g[i * d + c] = from[i * d + c] + 2 * i * unit * sooner[(i + 1) % 2];
                        sooner[i % 2] += i ? slope[i * d + c] : slope[c] / 2;
                    }
                }
                Kept own = of_row(z, all, n, row);
                condition_back(&e, &r, g, targets, own.means, own.factors, own.pivots, to_precision);
                const uint8_t *seen = given->seen + row * z->places * z->apart;
                float *to = to_weights + (row * z->views + view) * z->places;
                for (long k = 0; k < z->places; k++) to[k] = seen[k * z->apart] ? to_precision[k] * scale : 0;
            }
            free(r.basis);
            free(targets);
        }
        all = of_row(z, all, n, z->series);
    }
    return failed;
}

int64_t system_row(int64_t count, int64_t columns) { return row_of_system(count, columns); }
