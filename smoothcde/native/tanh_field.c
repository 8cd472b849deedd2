/* Runge-Kutta steps of dz = f(z) dX with f(z) = tanh(W2 act(W1 z + b1) + b2), forwards and backwards.

A step is taken block by block: some rows of one view go through all stages while weights and intermediate results
stay in the cache of one core. */

#include "tanh_field.h"

/* Of `all` rows, those from r0 on. */
static Stages kept_rows(const Sizes *s, float *y, float *a, float *t, long r0, long all) {
    if (!y) return (Stages){0};
    return (Stages){y + r0 * s->padded_hidden, a + r0 * s->padded_width, t + r0 * s->padded_hidden, all};
}

/* Steps of all rows, one after the other; those that are empty for a whole block cost nothing.

z, first: [rows, hidden], state and slope at the beginning; dx: [rows, steps, slopes - 1, channels]; h: [rows, steps].
state, slope: at the end; ratio: [rows, steps], mean square of error over tolerance; departure: likewise of the method's
other difference, if it has one.
kept_y, kept_a: [slopes - 1, rows, ...], kept_t: [slopes - 1, channels, rows, ...], for the backward pass of a single
step; NULL to forget them. */
int step_forward(const Sizes *s, const Weights *w, const int64_t *rows_of_view, const Method *method, int64_t steps,
                 float rtol, float atol, const float *z, const float *first, const float *dx, const float *h,
                 float *state, float *slope, float *ratio, float *departure, float *kept_y, float *kept_a,
                 float *kept_t) {
    long hidden = s->hidden, hp = s->padded_hidden, wp = s->padded_width, d = s->channels, all = 0, count;
    long stages = method->slopes - 1, dx_row = steps * stages * d;
    int failed = 0;
    for (long v = 0; v < s->views; v++) all += rows_of_view[v];
    Block *blocks = blocks_of(s, rows_of_view, &count);
#pragma omp parallel num_threads(s->threads)
    {
        long apart = MOST_ROWS * hp;
        float *slopes = room((method->slopes + 2) * apart + MOST_ROWS * wp + SIDES(s));
        if (!slopes) failed = 1;
        float *begin = slopes + method->slopes * apart, *y = begin + apart, *own_a = y + apart;
        Sides sides = sides_at(s, own_a + MOST_ROWS * wp);
        float size[MOST_ROWS];
        begin_products();
#pragma omp for schedule(dynamic, 1)
        for (long b = 0; b < count; b++) {
            if (failed) continue;
            long r0 = blocks[b].begin, rows = blocks[b].rows;
            Weights weights = of_view(s, w, blocks[b].view);
            padded(rows, hidden, hp, z + r0 * hidden, begin);
            padded(rows, hidden, hp, first + r0 * hidden, slopes);
            long taken = 0;
            for (long step = 0; step < steps; step++) {
                int moving = kept_y != NULL;
                for (long r = 0; r < rows; r++) {
                    size[r] = h[(r0 + r) * steps + step];
                    moving |= size[r] != 0;
                }
                if (!moving) {
                    for (long r = 0; r < rows; r++) {
                        ratio[(r0 + r) * steps + step] = 0;
                        if (departure) departure[(r0 + r) * steps + step] = 0;
                    }
                    continue;
                }
                if (taken++) { /* the last stage's state and slope are the next step's first */
                    memcpy(begin, y, sizeof(float) * rows * hp);
                    memcpy(slopes, slopes + stages * apart, sizeof(float) * rows * hp);
                }
                take_stages(s, &weights, method, rows, size, begin, dx + r0 * dx_row + step * stages * d, dx_row,
                            slopes, apart, y, own_a, kept_rows(s, kept_y, kept_a, kept_t, r0, all), sides);
                for (long r = 0; r < rows; r++) {
                    long place = (r0 + r) * steps + step;
                    ratio[place] = squared_ratio(s, method, method->error, size[r], rtol, atol, begin + r * hp,
                                                 y + r * hp, slopes + r * hp, apart);
                    if (departure)
                        departure[place] = squared_ratio(s, method, method->departure, size[r], rtol, atol,
                                                         begin + r * hp, y + r * hp, slopes + r * hp, apart);
                }
            }
            unpadded(rows, hidden, hp, taken ? y : begin, state + r0 * hidden);
            unpadded(rows, hidden, hp, taken ? slopes + stages * apart : slopes, slope + r0 * hidden);
        }
        end_products();
        free(slopes);
    }
    free(blocks);
    return failed;
}

/* What gradients of state and slope mean to everything. Arguments as for `step_forward`; gradients of the weights are
added to `sums`, [threads, views, ...], unless they are NULL; `to_dx` may be NULL, too. Blocks are dealt out to threads
in a fixed order, so that sums round alike in every run. */
int step_backward(const Sizes *s, const Weights *w, const int64_t *rows_of_view, const Method *method,
                  const float *g_state, const float *g_slope, const float *dx, const float *h, float *kept_y,
                  float *kept_a, float *kept_t, float *to_z, float *to_first, float *to_dx,
                  const Gradients *sums) {
    long hidden = s->hidden, hp = s->padded_hidden, wp = s->padded_width, d = s->channels, all = 0, count;
    long stages = method->slopes - 1;
    int failed = 0;
    for (long v = 0; v < s->views; v++) all += rows_of_view[v];
    Block *blocks = blocks_of(s, rows_of_view, &count);
#pragma omp parallel num_threads(s->threads)
    {
        long apart = MOST_ROWS * hp;
        float *g = room((method->slopes + 3) * apart + MOST_ROWS * wp + SIDES(s));
        if (!g) failed = 1;
        float *g_z = g + method->slopes * apart, *g_y = g_z + apart, *through = g_y + apart, *g_a = through + apart;
        Sides sides = sides_at(s, g_a + MOST_ROWS * wp);
        begin_products();
#pragma omp for schedule(static, 1)
        for (long b = 0; b < count; b++) {
            if (failed) continue;
            long r0 = blocks[b].begin, rows = blocks[b].rows;
            Weights weights = of_view(s, w, blocks[b].view);
            Gradients own = of_share(s, sums, thread_number(), blocks[b].view);
            memset(g, 0, sizeof(float) * (method->slopes + 1) * apart);
            padded(rows, hidden, hp, g_slope + r0 * hidden, g + stages * apart);
            padded(rows, hidden, hp, g_state + r0 * hidden, g_z);
            take_stages_back(s, &weights, method, rows, h + r0, dx + r0 * stages * d, stages * d,
                             kept_rows(s, kept_y, kept_a, kept_t, r0, all), g, apart, g_z, g_y, g_a, through,
                             to_dx ? to_dx + r0 * stages * d : NULL, own, sides);
            unpadded(rows, hidden, hp, g_z, to_z + r0 * hidden);
            unpadded(rows, hidden, hp, g, to_first + r0 * hidden);
        }
        end_products();
        free(g);
    }
    free(blocks);
    return failed;
}

/* f(z) dx alone; dx is [rows, channels]. Kept as for a step. */
int field_forward(const Sizes *s, const Weights *w, const int64_t *rows_of_view, const float *z, const float *dx,
                  float *slope, float *kept_a, float *kept_t) {
    long hidden = s->hidden, hp = s->padded_hidden, wp = s->padded_width, d = s->channels, all = 0, count;
    int failed = 0;
    for (long v = 0; v < s->views; v++) all += rows_of_view[v];
    Block *blocks = blocks_of(s, rows_of_view, &count);
#pragma omp parallel num_threads(s->threads)
    {
        float *y = room(MOST_ROWS * (2 * hp + wp) + SIDES(s)), *made = y + MOST_ROWS * hp,
              *own_a = made + MOST_ROWS * hp;
        if (!y) failed = 1;
        Sides sides = sides_at(s, own_a + MOST_ROWS * wp);
        begin_products();
#pragma omp for schedule(static, 1)
        for (long b = 0; b < count; b++) {
            if (failed) continue;
            long r0 = blocks[b].begin, rows = blocks[b].rows;
            Weights weights = of_view(s, w, blocks[b].view);
            padded(rows, hidden, hp, z + r0 * hidden, y);
            evaluate(s, &weights, rows, y, dx + r0 * d, d, kept_a ? kept_a + r0 * wp : own_a,
                     kept_t ? kept_t + r0 * hp : NULL, all * hp, made, sides);
            unpadded(rows, hidden, hp, made, slope + r0 * hidden);
        }
        end_products();
        free(y);
    }
    free(blocks);
    return failed;
}

/* The way back of `field_forward`. */
int field_backward(const Sizes *s, const Weights *w, const int64_t *rows_of_view, const float *g_slope, const float *z,
                   const float *dx, const float *kept_a, const float *kept_t, float *to_z, float *to_dx,
                   const Gradients *sums) {
    long hidden = s->hidden, hp = s->padded_hidden, wp = s->padded_width, d = s->channels, all = 0, count;
    int failed = 0;
    for (long v = 0; v < s->views; v++) all += rows_of_view[v];
    Block *blocks = blocks_of(s, rows_of_view, &count);
#pragma omp parallel num_threads(s->threads)
    {
        float *g = room(MOST_ROWS * (4 * hp + wp) + SIDES(s)), *y = g + MOST_ROWS * hp, *g_y = y + MOST_ROWS * hp;
        float *through = g_y + MOST_ROWS * hp, *g_a = through + MOST_ROWS * hp;
        if (!g) failed = 1;
        Sides sides = sides_at(s, g_a + MOST_ROWS * wp);
        begin_products();
#pragma omp for schedule(static, 1)
        for (long b = 0; b < count; b++) {
            if (failed) continue;
            long r0 = blocks[b].begin, rows = blocks[b].rows;
            Weights weights = of_view(s, w, blocks[b].view);
            padded(rows, hidden, hp, g_slope + r0 * hidden, g);
            padded(rows, hidden, hp, z + r0 * hidden, y);
            evaluate_back(s, &weights, rows, g, y, dx + r0 * d, d, kept_a + r0 * wp, kept_t + r0 * hp, all * hp,
                          through, g_a, g_y, to_dx ? to_dx + r0 * d : NULL, d,
                          of_share(s, sums, thread_number(), blocks[b].view), sides);
            unpadded(rows, hidden, hp, g_y, to_z + r0 * hidden);
        }
        end_products();
        free(g);
    }
    free(blocks);
    return failed;
}
