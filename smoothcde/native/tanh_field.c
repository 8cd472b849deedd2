/* Runge-Kutta steps of dz = f(z) dX with f(z) = tanh(W2 act(W1 z + b1) + b2), forwards and backwards.

A step is taken block by block: some rows of one view go through all stages while weights and intermediate results
stay in the cache of one core. */

#include "panels.h"

#define MOST_ROWS 48 /* of a block: a multiple of every TILE */

/* tanh(x) = 2 / (1 + exp(-2 x)) - 1, to one rounding of 1; NaN stays NaN. */
INLINE vec tanh_of(vec x) {
    const vec far = spread(9.2f);
    x = choose(x > far, far, x);
    x = choose(x < -far, -far, x);
    return 2.0f / (1.0f + power_of_two(x * -2.8853900817779268f)) - 1.0f; /* -2 log2(e) */
}

/* Sizes, as the caller has them; the padded ones are multiples of PANEL. */
typedef struct {
    int64_t views, hidden, width, channels, padded_hidden, padded_width, relu, threads;
} Sizes;

/* Weights in panels (see PackedField in tanh_field.py); the transposed ones only for the backward pass. */
typedef struct {
    const float *inner, *inner_bias, *outer, *outer_bias, *inner_back, *outer_back;
} Weights;

typedef struct {
    long view, begin, rows;
} Block;

static Weights of_view(const Sizes *s, const Weights *w, long view) {
    long inner = s->hidden * s->padded_width, matrix = s->channels * s->padded_hidden;
    Weights v = {w->inner + view * inner,
                 w->inner_bias + view * s->padded_width,
                 w->outer + view * s->width * matrix,
                 w->outer_bias + view * matrix,
                 NULL,
                 NULL};
    if (w->inner_back) {
        v.inner_back = w->inner_back + view * s->width * s->padded_hidden;
        v.outer_back = w->outer_back + view * matrix * s->padded_width;
    }
    return v;
}

/* Blocks of at most MOST_ROWS rows, about equally many in each; enough of them for all threads. */
static Block *blocks_of(const Sizes *s, const int64_t *rows_of_view, long *count) {
    long total = 0, begin = 0;
    for (long v = 0; v < s->views; v++) total += rows_of_view[v];
    Block *blocks = malloc(sizeof(Block) * (total + 1));
    long most = (total + 2 * s->threads - 1) / (2 * s->threads);
    most = (most + TILE - 1) / TILE * TILE;
    if (most > MOST_ROWS) most = MOST_ROWS;
    *count = 0;
    for (long v = 0; v < s->views; v++) {
        long left = rows_of_view[v];
        while (left) {
            long pieces = (left + most - 1) / most;
            long rows = ((left + pieces - 1) / pieces + TILE - 1) / TILE * TILE;
            if (rows > left) rows = left;
            blocks[(*count)++] = (Block){v, begin, rows};
            begin += rows;
            left -= rows;
        }
    }
    return blocks;
}

/* f(y) dx of a block. y is [rows, padded_hidden], dx has `dx_row` numbers from row to row; activations and tanh values
go to `a` and `t`, which is [rows, panels of hidden, channels, PANEL] or, with t_row = 0, forgotten. */
static void evaluate(const Sizes *s, const Weights *w, long rows, const float *y, const float *dx, long dx_row,
                     float *a, float *t, long t_row, float *slope) {
    long hp = s->padded_hidden, wp = s->padded_width, d = s->channels;
    for (long n = 0; n < wp; n += PANEL)
        product(rows, s->hidden, y, hp, w->inner + n * s->hidden, w->inner_bias + n, a + n, wp);
    for (long r = 0; r < rows; r++)
        for (long j = 0; j < wp; j += LANES) {
            vec u = LOAD(a + r * wp + j);
            STORE(a + r * wp + j, s->relu ? choose(u < spread(0), spread(0), u) : tanh_of(u));
        }
    float u[MOST_ROWS * PANEL];
    for (long n = 0; n < hp; n += PANEL) {
        vec total[MOST_ROWS][2];
        for (long r = 0; r < rows; r++) total[r][0] = total[r][1] = spread(0);
        for (long c = 0; c < d; c++) {
            long place = n * d + c * PANEL;
            product(rows, s->width, a, wp, w->outer + place * s->width, w->outer_bias + place, u, PANEL);
            for (long r = 0; r < rows; r++) {
                vec x = spread(dx[r * dx_row + c]);
                vec t0 = tanh_of(LOAD(u + r * PANEL)), t1 = tanh_of(LOAD(u + r * PANEL + LANES));
                total[r][0] += t0 * x;
                total[r][1] += t1 * x;
                if (t_row) {
                    STORE(t + r * t_row + place, t0);
                    STORE(t + r * t_row + place + LANES, t1);
                }
            }
        }
        for (long r = 0; r < rows; r++) {
            STORE(slope + r * hp + n, total[r][0]);
            STORE(slope + r * hp + n + LANES, total[r][1]);
        }
    }
}

/* Where a block's gradients of the weights are added up: by panels, as the weights' own shapes but for padding. */
typedef struct {
    float *inner, *inner_bias, *outer, *outer_bias;
} Gradients;

/* What a gradient g of f(y) dx means to y (`to_y`), dx and the weights. `through` and `to_a` are room to work in. */
static void evaluate_back(const Sizes *s, const Weights *w, long rows, const float *g, const float *y, const float *dx,
                          long dx_row, const float *a, const float *t, float *through, float *to_a, float *to_y,
                          float *to_dx, long to_dx_row, Gradients sums) {
    long hp = s->padded_hidden, wp = s->padded_width, d = s->channels, matrix = hp * d;
    for (long r = 0; r < rows; r++)
        for (long c = 0; c < d; c++) {
            vec x = spread(dx[r * dx_row + c]), along = spread(0);
            for (long n = 0; n < hp; n += PANEL)
                for (long j = 0; j < PANEL; j += LANES) {
                    long place = n * d + c * PANEL + j;
                    vec tanh_here = LOAD(t + r * matrix + place), g_here = LOAD(g + r * hp + n + j);
                    along += g_here * tanh_here;
                    STORE(through + r * matrix + place, g_here * x * (1.0f - tanh_here * tanh_here));
                }
            if (to_dx) to_dx[r * to_dx_row + c] = sum_of(along);
        }
    for (long n = 0; n < wp; n += PANEL)
        product(rows, matrix, through, matrix, w->outer_back + n * matrix, NULL, to_a + n, wp);
    for (long r = 0; r < rows; r++)
        for (long j = 0; j < wp; j += LANES) {
            vec act = LOAD(a + r * wp + j), back = LOAD(to_a + r * wp + j);
            back = s->relu ? choose(act > spread(0), back, spread(0)) : back * (1.0f - act * act);
            STORE(to_a + r * wp + j, back);
        }
    for (long n = 0; n < hp; n += PANEL)
        product(rows, s->width, to_a, wp, w->inner_back + n * s->width, NULL, to_y + n, hp);
    if (!sums.inner) return;
    for (long n = 0; n < matrix; n += PANEL) outer(s->width, rows, a, wp, through + n, matrix, sums.outer + n, matrix);
    for (long n = 0; n < wp; n += PANEL) outer(s->hidden, rows, y, hp, to_a + n, wp, sums.inner + n, wp);
    add_rows(rows, matrix, through, matrix, sums.outer_bias);
    add_rows(rows, wp, to_a, wp, sums.inner_bias);
}

static Gradients of_thread(const Sizes *s, const Gradients *g, long view) {
    long place = thread_number() * s->views + view, matrix = s->channels * s->padded_hidden;
    if (!g->inner) return *g;
    return (Gradients){g->inner + place * s->hidden * s->padded_width, g->inner_bias + place * s->padded_width,
                       g->outer + place * s->width * matrix, g->outer_bias + place * matrix};
}

static void padded(long rows, long hidden, long hp, const float *from, float *to) {
    for (long r = 0; r < rows; r++) {
        memcpy(to + r * hp, from + r * hidden, sizeof(float) * hidden);
        memset(to + r * hp + hidden, 0, sizeof(float) * (hp - hidden));
    }
}

static void unpadded(long rows, long hidden, long hp, const float *from, float *to) {
    for (long r = 0; r < rows; r++) memcpy(to + r * hidden, from + r * hp, sizeof(float) * hidden);
}

/* to += sum_j weights_j h slopes_j, over `count` slopes that are `apart` numbers from each other. */
static void combine(long rows, long hp, const float *h, const float *weights, int count, const float *slopes,
                    long apart, float *to) {
    for (long r = 0; r < rows; r++)
        for (long n = 0; n < hp; n += LANES) {
            vec total = spread(0);
            for (int j = 0; j < count; j++)
                if (weights[j] != 0) total += weights[j] * LOAD(slopes + j * apart + r * hp + n);
            STORE(to + r * hp + n, LOAD(to + r * hp + n) + h[r] * total);
        }
}

/* A Runge-Kutta method whose last stage is its result: `stages[i]` makes the state of slope i + 1. */
typedef struct {
    int64_t slopes;
    const float *stages, *error, *departure;
} Method;

/* Mean square of a row's difference, weights times slopes, over what is allowed: atol + rtol times the larger of the
states at both ends. */
static float squared_ratio(const Sizes *s, const Method *method, const float *weights, float h, float rtol, float atol,
                           const float *begin, const float *end, const float *slopes, long apart) {
    vec total = spread(0);
    for (long n = 0; n < s->padded_hidden; n += LANES) {
        vec error = spread(0), from = LOAD(begin + n), to = LOAD(end + n);
        for (long j = 0; j < method->slopes; j++)
            if (weights[j] != 0) error += weights[j] * LOAD(slopes + j * apart + n);
        from = choose(from < spread(0), -from, from);
        to = choose(to < spread(0), -to, to);
        /* The larger one, or the one that is not a number. */
        vec share = h * error / (atol + rtol * choose((from > to) | (from != from), from, to));
        total += share * share;
    }
    return sum_of(total) / s->hidden;
}

/* Steps of all rows, one after the other; those that are empty for a whole block cost nothing.

z, first: [rows, hidden], state and slope at the beginning; dx: [rows, steps, slopes - 1, channels]; h: [rows, steps].
state, slope: at the end; ratio: [rows, steps], mean square of error over tolerance; departure: likewise of the method's
other difference, if it has one.
kept_y, kept_a, kept_t: [slopes - 1, rows, ...], for the backward pass of a single step; NULL to forget them. */
int step_forward(const Sizes *s, const Weights *w, const int64_t *rows_of_view, const Method *method, int64_t steps,
                 float rtol, float atol, const float *z, const float *first, const float *dx, const float *h,
                 float *state, float *slope, float *ratio, float *departure, float *kept_y, float *kept_a,
                 float *kept_t) {
    long hidden = s->hidden, hp = s->padded_hidden, wp = s->padded_width, d = s->channels, matrix = hp * d, all = 0,
         count;
    long stages = method->slopes - 1, dx_row = steps * stages * d;
    int failed = 0;
    for (long v = 0; v < s->views; v++) all += rows_of_view[v];
    Block *blocks = blocks_of(s, rows_of_view, &count);
#pragma omp parallel num_threads(s->threads)
    {
        long apart = MOST_ROWS * hp;
        float *slopes = room((method->slopes + 2) * apart + MOST_ROWS * wp);
        if (!slopes) failed = 1;
        float *begin = slopes + method->slopes * apart, *own_y = begin + apart, *own_a = own_y + apart;
        float size[MOST_ROWS];
#pragma omp for schedule(dynamic, 1)
        for (long b = 0; b < count; b++) {
            if (failed) continue;
            long r0 = blocks[b].begin, rows = blocks[b].rows;
            Weights weights = of_view(s, w, blocks[b].view);
            float *y = own_y;
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
                for (long i = 0; i < stages; i++) {
                    float *a = own_a, *t = NULL;
                    if (kept_y) {
                        y = kept_y + (i * all + r0) * hp;
                        a = kept_a + (i * all + r0) * wp;
                        t = kept_t + (i * all + r0) * matrix;
                    }
                    memcpy(y, begin, sizeof(float) * rows * hp);
                    combine(rows, hp, size, method->stages + i * stages, i + 1, slopes, apart, y);
                    evaluate(s, &weights, rows, y, dx + r0 * dx_row + (step * stages + i) * d, dx_row, a, t,
                             t ? matrix : 0, slopes + (i + 1) * apart);
                }
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
        free(slopes);
    }
    free(blocks);
    return failed;
}

/* What gradients of state and slope mean to everything. Arguments as for `step_forward`; gradients of the weights are
added to `sums`, [threads, views, ...], unless they are NULL; `to_dx` may be NULL, too. Blocks are dealt out to threads
in a fixed order, so that sums round alike in every run. */
int step_backward(const Sizes *s, const Weights *w, const int64_t *rows_of_view, const Method *method,
                  const float *g_state, const float *g_slope, const float *dx, const float *h, const float *kept_y,
                  const float *kept_a, const float *kept_t, float *to_z, float *to_first, float *to_dx,
                  const Gradients *sums) {
    long hidden = s->hidden, hp = s->padded_hidden, wp = s->padded_width, d = s->channels, matrix = hp * d, all = 0,
         count;
    long stages = method->slopes - 1;
    int failed = 0;
    for (long v = 0; v < s->views; v++) all += rows_of_view[v];
    Block *blocks = blocks_of(s, rows_of_view, &count);
#pragma omp parallel num_threads(s->threads)
    {
        long apart = MOST_ROWS * hp;
        float *g = room((method->slopes + 2) * apart + MOST_ROWS * (wp + matrix));
        if (!g) failed = 1;
        float *g_z = g + method->slopes * apart, *g_y = g_z + apart, *g_a = g_y + apart,
              *through = g_a + MOST_ROWS * wp;
#pragma omp for schedule(static, 1)
        for (long b = 0; b < count; b++) {
            if (failed) continue;
            long r0 = blocks[b].begin, rows = blocks[b].rows;
            Weights weights = of_view(s, w, blocks[b].view);
            Gradients own = of_thread(s, sums, blocks[b].view);
            memset(g, 0, sizeof(float) * (method->slopes + 1) * apart);
            padded(rows, hidden, hp, g_slope + r0 * hidden, g + stages * apart);
            padded(rows, hidden, hp, g_state + r0 * hidden, g_z);
            for (long i = stages - 1; i >= 0; i--) {
                evaluate_back(s, &weights, rows, g + (i + 1) * apart, kept_y + (i * all + r0) * hp,
                              dx + (r0 * stages + i) * d, stages * d, kept_a + (i * all + r0) * wp,
                              kept_t + (i * all + r0) * matrix, through, g_a, g_y,
                              to_dx ? to_dx + (r0 * stages + i) * d : NULL, stages * d, own);
                /* The last stage's state is the step's: its gradient reaches what it was made of. */
                if (i == stages - 1)
                    for (long n = 0; n < rows * hp; n += LANES) STORE(g_y + n, LOAD(g_y + n) + LOAD(g_z + n));
                if (i == stages - 1)
                    memcpy(g_z, g_y, sizeof(float) * rows * hp);
                else
                    for (long n = 0; n < rows * hp; n += LANES) STORE(g_z + n, LOAD(g_z + n) + LOAD(g_y + n));
                for (long j = 0; j <= i; j++) {
                    float weight = method->stages[i * stages + j];
                    if (weight == 0) continue;
                    for (long r = 0; r < rows; r++) {
                        vec scale = spread(weight * h[r0 + r]);
                        float *to = g + j * apart + r * hp;
                        for (long n = 0; n < hp; n += LANES)
                            STORE(to + n, LOAD(to + n) + scale * LOAD(g_y + r * hp + n));
                    }
                }
            }
            unpadded(rows, hidden, hp, g_z, to_z + r0 * hidden);
            unpadded(rows, hidden, hp, g, to_first + r0 * hidden);
        }
        free(g);
    }
    free(blocks);
    return failed;
}

/* f(z) dx alone; dx is [rows, channels]. Kept as for a step. */
int field_forward(const Sizes *s, const Weights *w, const int64_t *rows_of_view, const float *z, const float *dx,
                  float *slope, float *kept_a, float *kept_t) {
    long hidden = s->hidden, hp = s->padded_hidden, wp = s->padded_width, d = s->channels, matrix = hp * d, count;
    int failed = 0;
    Block *blocks = blocks_of(s, rows_of_view, &count);
#pragma omp parallel num_threads(s->threads)
    {
        float *y = room(MOST_ROWS * (2 * hp + wp)), *made = y + MOST_ROWS * hp, *own_a = made + MOST_ROWS * hp;
        if (!y) failed = 1;
#pragma omp for schedule(static, 1)
        for (long b = 0; b < count; b++) {
            if (failed) continue;
            long r0 = blocks[b].begin, rows = blocks[b].rows;
            Weights weights = of_view(s, w, blocks[b].view);
            padded(rows, hidden, hp, z + r0 * hidden, y);
            evaluate(s, &weights, rows, y, dx + r0 * d, d, kept_a ? kept_a + r0 * wp : own_a,
                     kept_t ? kept_t + r0 * matrix : NULL, kept_t ? matrix : 0, made);
            unpadded(rows, hidden, hp, made, slope + r0 * hidden);
        }
        free(y);
    }
    free(blocks);
    return failed;
}

/* The way back of `field_forward`. */
int field_backward(const Sizes *s, const Weights *w, const int64_t *rows_of_view, const float *g_slope, const float *z,
                   const float *dx, const float *kept_a, const float *kept_t, float *to_z, float *to_dx,
                   const Gradients *sums) {
    long hidden = s->hidden, hp = s->padded_hidden, wp = s->padded_width, d = s->channels, matrix = hp * d, count;
    int failed = 0;
    Block *blocks = blocks_of(s, rows_of_view, &count);
#pragma omp parallel num_threads(s->threads)
    {
        float *g = room(MOST_ROWS * (3 * hp + wp + matrix)), *y = g + MOST_ROWS * hp, *g_y = y + MOST_ROWS * hp;
        float *g_a = g_y + MOST_ROWS * hp, *through = g_a + MOST_ROWS * wp;
        if (!g) failed = 1;
#pragma omp for schedule(static, 1)
        for (long b = 0; b < count; b++) {
            if (failed) continue;
            long r0 = blocks[b].begin, rows = blocks[b].rows;
            Weights weights = of_view(s, w, blocks[b].view);
            padded(rows, hidden, hp, g_slope + r0 * hidden, g);
            padded(rows, hidden, hp, z + r0 * hidden, y);
            evaluate_back(s, &weights, rows, g, y, dx + r0 * d, d, kept_a + r0 * wp, kept_t + r0 * matrix, through, g_a,
                          g_y, to_dx ? to_dx + r0 * d : NULL, d, of_thread(s, sums, blocks[b].view));
            unpadded(rows, hidden, hp, g_y, to_z + r0 * hidden);
        }
        free(g);
    }
    free(blocks);
    return failed;
}

int64_t panel_columns(void) { return PANEL; }
