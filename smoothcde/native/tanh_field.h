/* Fields f(z) = tanh(W2 act(W1 z + b1) + b2) and Runge-Kutta steps of dz = f(z) dX, for blocks of rows of one view:
weights and intermediate results stay in the cache of one core. */

#include "products.h"

#define MOST_ROWS (BY_TILES ? 128 : 48) /* of a block: a multiple of AT_ONCE and of 16 */

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

/* Weights as right sides (see PackedField in tanh_field.py), panel by panel, outer ones channel by channel; the
transposed ones only for the backward pass. */
typedef struct {
    const float *inner, *inner_bias, *outer, *outer_bias, *inner_back, *outer_back;
} Weights;

#define PANELS(padded) ((padded) / PANEL)

typedef struct {
    long view, begin, rows;
} Block;

HELPER Weights of_view(const Sizes *s, const Weights *w, long view) {
    long hp = s->padded_hidden, wp = s->padded_width, matrix = s->channels * hp;
    Weights v = {w->inner + view * PANELS(wp) * RIGHT_NUMBERS(hp),
                 w->inner_bias + view * wp,
                 w->outer + view * PANELS(matrix) * RIGHT_NUMBERS(wp),
                 w->outer_bias + view * matrix,
                 NULL,
                 NULL};
    if (w->inner_back) {
        v.inner_back = w->inner_back + view * PANELS(hp) * RIGHT_NUMBERS(wp);
        v.outer_back = w->outer_back + view * s->channels * PANELS(wp) * RIGHT_NUMBERS(hp);
    }
    return v;
}

/* Blocks of at most MOST_ROWS rows, about equally many in each; enough of them for all threads. */
HELPER Block *blocks_of(const Sizes *s, const int64_t *rows_of_view, long *count) {
    long total = 0, begin = 0;
    for (long v = 0; v < s->views; v++) total += rows_of_view[v];
    Block *blocks = malloc(sizeof(Block) * (total + 1));
    long most = (total + 2 * s->threads - 1) / (2 * s->threads);
    most = (most + AT_ONCE - 1) / AT_ONCE * AT_ONCE;
    if (most > MOST_ROWS) most = MOST_ROWS;
    *count = 0;
    for (long v = 0; v < s->views; v++) {
        long left = rows_of_view[v];
        while (left) {
            long pieces = (left + most - 1) / most;
            long rows = ((left + pieces - 1) / pieces + AT_ONCE - 1) / AT_ONCE * AT_ONCE;
            if (rows > left) rows = left;
            blocks[(*count)++] = (Block){v, begin, rows};
            begin += rows;
            left -= rows;
        }
    }
    return blocks;
}

/* Room for the sides of a block's products. */
typedef struct {
    float *left, *across, *right;
} Sides;

#define LARGER(a, b) ((a) > (b) ? (a) : (b))
#define LEFT_SIDE(s) LEFT_NUMBERS(MOST_ROWS, LARGER((s)->padded_hidden, (s)->padded_width))
#define ACROSS_SIDE(s) LEFT_NUMBERS(LARGER((s)->padded_hidden, (s)->padded_width), MOST_ROWS)
#define SIDES(s) (LEFT_SIDE(s) + ACROSS_SIDE(s) + RIGHT_NUMBERS(MOST_ROWS)) /* numbers of all */

HELPER Sides sides_at(const Sizes *s, float *at) {
    return (Sides){at, at + LEFT_SIDE(s), at + LEFT_SIDE(s) + ACROSS_SIDE(s)};
}

/* f(y) dx of a block. y is [rows, padded_hidden], dx has `dx_row` numbers from row to row; activations and tanh values
go to `a` and `t`, aligned as vectors are, [rows, padded_hidden] for each channel, `t_channel` numbers from one to the
next; or, if t is NULL, they are forgotten. */
HELPER void evaluate(const Sizes *s, const Weights *w, long rows, const float *y, const float *dx, long dx_row,
                     float *a, float *t, long t_channel, float *slope, Sides sides) {
    long hp = s->padded_hidden, wp = s->padded_width, d = s->channels;
    Left left = left_of(rows, hp, y, hp, sides.left);
    for (long n = 0; n < wp; n += PANEL)
        multiply(rows, hp, left, panel_of(w->inner, n / PANEL, hp), w->inner_bias + n, a + n, wp, 0);
    for (long r = 0; r < rows; r++)
        for (long j = 0; j < wp; j += LANES) {
            vec u = LOAD(a + r * wp + j);
            STORE(a + r * wp + j, s->relu ? choose(u < spread(0), spread(0), u) : tanh_of(u));
        }
    float u[MOST_ROWS * PANEL];
    left = left_of(rows, wp, a, wp, sides.left);
    for (long n = 0; n < hp; n += PANEL) {
        vec total[MOST_ROWS][2];
        for (long r = 0; r < rows; r++) total[r][0] = total[r][1] = spread(0);
        for (long c = 0; c < d; c++) {
            long place = c * hp + n;
            multiply(rows, wp, left, panel_of(w->outer, place / PANEL, wp), w->outer_bias + place, u, PANEL, 0);
            for (long r = 0; r < rows; r++) {
                vec x = spread(dx[r * dx_row + c]);
                vec t0 = tanh_of(LOAD(u + r * PANEL)), t1 = tanh_of(LOAD(u + r * PANEL + LANES));
                total[r][0] += t0 * x;
                total[r][1] += t1 * x;
                if (t) {
                    STREAM(t + c * t_channel + r * hp + n, t0);
                    STREAM(t + c * t_channel + r * hp + n + LANES, t1);
                }
            }
        }
        for (long r = 0; r < rows; r++) {
            STORE(slope + r * hp + n, total[r][0]);
            STORE(slope + r * hp + n + LANES, total[r][1]);
        }
    }
    if (t) SETTLE;
}

/* Where a block's gradients of the weights are added up: by panels, as the weights' own shapes but for padding. */
typedef struct {
    float *inner, *inner_bias, *outer, *outer_bias;
} Gradients;

/* What a gradient g of f(y) dx means to y (`to_y`), dx and the weights. `through`, of a channel, and `to_a` are room to
work in. */
HELPER void evaluate_back(const Sizes *s, const Weights *w, long rows, const float *g, const float *y, const float *dx,
                          long dx_row, const float *a, const float *t, long t_channel, float *through, float *to_a,
                          float *to_y, float *to_dx, long to_dx_row, Gradients sums, Sides sides) {
    long hp = s->padded_hidden, wp = s->padded_width, d = s->channels, matrix = hp * d;
    Left left, across = {0};
    if (sums.inner) across = left_across(s->width, rows, a, wp, sides.across);
    for (long c = 0; c < d; c++) {
        for (long r = 0; r < rows; r++) {
            vec x = spread(dx[r * dx_row + c]), along = spread(0);
            for (long n = 0; n < hp; n += LANES) {
                vec tanh_here = LOAD(t + c * t_channel + r * hp + n), g_here = LOAD(g + r * hp + n);
                along += g_here * tanh_here;
                STORE(through + r * hp + n, g_here * x * (1.0f - tanh_here * tanh_here));
            }
            if (to_dx) to_dx[r * to_dx_row + c] = sum_of(along);
        }
        left = left_of(rows, hp, through, hp, sides.left);
        for (long n = 0; n < wp; n += PANEL)
            multiply(rows, hp, left, panel_of(w->outer_back, (c * wp + n) / PANEL, hp), NULL, to_a + n, wp, c > 0);
        if (!sums.inner) continue;
        for (long n = 0; n < hp; n += PANEL)
            multiply(s->width, rows, across, right_of(rows, through + n, hp, sides.right), NULL,
                     sums.outer + c * hp + n, matrix, 1);
        add_rows(rows, hp, through, hp, sums.outer_bias + c * hp);
    }
    for (long r = 0; r < rows; r++)
        for (long j = 0; j < wp; j += LANES) {
            vec act = LOAD(a + r * wp + j), back = LOAD(to_a + r * wp + j);
            back = s->relu ? choose(act > spread(0), back, spread(0)) : back * (1.0f - act * act);
            STORE(to_a + r * wp + j, back);
        }
    left = left_of(rows, wp, to_a, wp, sides.left);
    for (long n = 0; n < hp; n += PANEL)
        multiply(rows, wp, left, panel_of(w->inner_back, n / PANEL, wp), NULL, to_y + n, hp, 0);
    if (!sums.inner) return;
    across = left_across(s->hidden, rows, y, hp, sides.across);
    for (long n = 0; n < wp; n += PANEL)
        multiply(s->hidden, rows, across, right_of(rows, to_a + n, wp, sides.right), NULL, sums.inner + n, wp, 1);
    add_rows(rows, wp, to_a, wp, sums.inner_bias);
}

/* The sums of a view that one of the threads, or of other shares of the work, adds to. */
HELPER Gradients of_share(const Sizes *s, const Gradients *g, long share, long view) {
    long place = share * s->views + view, matrix = s->channels * s->padded_hidden;
    if (!g->inner) return *g;
    return (Gradients){g->inner + place * s->hidden * s->padded_width, g->inner_bias + place * s->padded_width,
                       g->outer + place * s->width * matrix, g->outer_bias + place * matrix};
}

HELPER void padded(long rows, long hidden, long hp, const float *from, float *to) {
    for (long r = 0; r < rows; r++) {
        memcpy(to + r * hp, from + r * hidden, sizeof(float) * hidden);
        memset(to + r * hp + hidden, 0, sizeof(float) * (hp - hidden));
    }
}

HELPER void unpadded(long rows, long hidden, long hp, const float *from, float *to) {
    for (long r = 0; r < rows; r++) memcpy(to + r * hidden, from + r * hp, sizeof(float) * hidden);
}

/* to += sum_j weights_j h slopes_j, over `count` slopes that are `apart` numbers from each other. */
HELPER void combine(long rows, long hp, const float *h, const float *weights, int count, const float *slopes,
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
HELPER float squared_ratio(const Sizes *s, const Method *method, const float *weights, float h, float rtol, float atol,
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

/* What steps keep of their stages for the way back: states and activations, [stages] times `rows` long rows, tanh values
[stages, channels] times as many; y is NULL where they are forgotten. */
typedef struct {
    float *y, *a, *t;
    long rows;
} Stages;

/* The stages of a step of a block from `begin` and its first slope, the first of `slopes`. `y` and `a` are room for
state and activations of one stage; state and slope of the last one are those at the end of the step. */
HELPER void take_stages(const Sizes *s, const Weights *w, const Method *method, long rows, const float *h,
                        const float *begin, const float *dx, long dx_row, float *slopes, long apart, float *y, float *a,
                        Stages kept, Sides sides) {
    long hp = s->padded_hidden, wp = s->padded_width, d = s->channels, stages = method->slopes - 1;
    for (long i = 0; i < stages; i++) {
        memcpy(y, begin, sizeof(float) * rows * hp);
        combine(rows, hp, h, method->stages + i * stages, i + 1, slopes, apart, y);
        evaluate(s, w, rows, y, dx + i * d, dx_row, a, kept.y ? kept.t + i * d * kept.rows * hp : NULL, kept.rows * hp,
                 slopes + (i + 1) * apart, sides);
        if (!kept.y) continue;
        stream_rows(rows * hp, y, kept.y + i * kept.rows * hp);
        stream_rows(rows * wp, a, kept.a + i * kept.rows * wp);
        SETTLE;
    }
}

/* The way back of `take_stages`. `g` are gradients of the slopes, of which the last is given and the first found, the
others 0; `g_z` that of the state at the end, and then of the one at the beginning. `g_y`, `g_a`, `through`: room. */
HELPER void take_stages_back(const Sizes *s, const Weights *w, const Method *method, long rows, const float *h,
                             const float *dx, long dx_row, Stages kept, float *g, long apart, float *g_z, float *g_y,
                             float *g_a, float *through, float *to_dx, Gradients sums, Sides sides) {
    long hp = s->padded_hidden, wp = s->padded_width, d = s->channels, stages = method->slopes - 1;
    for (long i = stages - 1; i >= 0; i--) {
        evaluate_back(s, w, rows, g + (i + 1) * apart, kept.y + i * kept.rows * hp, dx + i * d, dx_row,
                      kept.a + i * kept.rows * wp, kept.t + i * d * kept.rows * hp, kept.rows * hp, through, g_a, g_y,
                      to_dx ? to_dx + i * d : NULL, dx_row, sums, sides);
        /* The last stage's state is the step's: its gradient reaches what it was made of. */
        if (i == stages - 1) {
            for (long n = 0; n < rows * hp; n += LANES) STORE(g_y + n, LOAD(g_y + n) + LOAD(g_z + n));
            memcpy(g_z, g_y, sizeof(float) * rows * hp);
        } else
            for (long n = 0; n < rows * hp; n += LANES) STORE(g_z + n, LOAD(g_z + n) + LOAD(g_y + n));
        for (long j = 0; j <= i; j++) {
            float weight = method->stages[i * stages + j];
            if (weight == 0) continue;
            for (long r = 0; r < rows; r++) {
                vec scale = spread(weight * h[r]);
                float *to = g + j * apart + r * hp;
                for (long n = 0; n < hp; n += LANES) STORE(to + n, LOAD(to + n) + scale * LOAD(g_y + r * hp + n));
            }
        }
    }
}
