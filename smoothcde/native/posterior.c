/* Posterior means of many small Gaussian processes. */

#include "posterior.h"

typedef struct {
    int64_t views, rows, windows, kernels, places, count, columns, threads;
} Sizes;

static Extent extent_of(const Sizes *z) {
    return (Extent){z->places, z->count, z->columns, z->windows};
}

static const double *kernel_of(const Sizes *z, const double *kernels, long row) {
    return kernels + (z->kernels == 1 ? row / z->rows : row) * z->count * z->count;
}

/* x: [windows, places]; precision: [views, rows, places]; targets: [rows, places, columns]; kernels: [views, kernels,
count, count], each symmetric. means: [views, rows, count, columns]. Kept are factors, [views, rows, count,
row_of_system], and pivots, [views, rows, count]. */
int posterior_means(const Sizes *z, const double *x, const double *precision, const double *targets,
                    const double *kernels, double *means, double *factors, int64_t *pivots) {
    Extent e = extent_of(z);
    long n = z->count, w = PADDED(n), columns = z->columns, system = n * row_of_system(n, columns);
    int failed = 0;
#pragma omp parallel num_threads(z->threads)
    {
        Room r = room_of(&e, x, by_place);
        if (!r.basis) failed = 1;
#pragma omp for schedule(static)
        for (long row = 0; row < z->views * z->rows; row++) {
            if (failed) continue;
            long own = row % z->rows;
            begin_row(&e, &r, x, kernel_of(z, kernels, row), own);
            condition(&e, &r, precision + row * z->places, targets + own * z->places * columns, factors + row * system,
                      pivots + row * n);
            for (long i = 0; i < n; i++)
                for (long c = 0; c < columns; c++) means[(row * n + i) * columns + c] = r.found[c * w + i];
        }
        free(r.basis);
    }
    return failed;
}

/* What gradients `g` of the means mean to the precision. */
int posterior_means_back(const Sizes *z, const double *g, const double *x, const double *targets, const double *means,
                         const double *kernels, const double *factors, const int64_t *pivots, double *to_precision) {
    Extent e = extent_of(z);
    long n = z->count, columns = z->columns, system = n * row_of_system(n, columns);
    int failed = 0;
#pragma omp parallel num_threads(z->threads)
    {
        Room r = room_of(&e, x, by_polynomial);
        if (!r.basis) failed = 1;
#pragma omp for schedule(static)
        for (long row = 0; row < z->views * z->rows; row++) {
            if (failed) continue;
            long own = row % z->rows;
            begin_row(&e, &r, x, kernel_of(z, kernels, row), own);
            condition_back(&e, &r, g + row * n * columns, targets + own * z->places * columns, means + row * n * columns,
                           factors + row * system, pivots + row * n, to_precision + row * z->places);
        }
        free(r.basis);
    }
    return failed;
}

int64_t system_row(int64_t count, int64_t columns) { return row_of_system(count, columns); }
