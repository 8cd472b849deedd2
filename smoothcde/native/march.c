/* Whole solves of dz = f(z) dX along polynomials, a step size per row: what `solve/march.py` does, in one call.

Rows are dealt out to shares of the work, one for a thread, in a fixed order. A share takes some rows of one view at a
time through step after step; a row that is done makes place for the next one, so that products stay as large as the
cache likes them. The rules of `solve/clock.py`, `pace.py`, `estimate.py` and `controller.py` are here once more, row by
row; their numbers come from there. */

#include "polynomials.h"
#include "tanh_field.h"

#define RUNNING -1
enum { FINISHED, STEP_LIMIT, STEP_UNDERFLOW, NON_FINITE };
#define ALIGNED(numbers) (((numbers) + 15) / 16 * 16)

typedef struct {
    double rtol, atol, tolerance, doubt, trust, steepness, order, safety, shrink, grow, damping, stretch;
    int64_t max_steps;
} Control;

/* Of every row: its window, the longest and the shortest step, turns of its path per window in each of `cells`, and
until each of their ends; the polynomials of its slope, [count, channels], from `start` on over `length`. Then what
changes on the way, and `ends`, [rows, room], `logged` of them written: when its accepted steps ended. */
typedef struct {
    const double *start, *window, *end, *limit, *smallest, *rate, *reached, *length;
    const float *coefficients;
    double *time, *size, *previous, *ends;
    int64_t *accepted, *rejected, *code, *logged;
    float *z, *slope;
} Rows;

typedef struct {
    int64_t shares, cells, count, room;
} Extent;

/* What a round of steps of a block keeps: this, and behind it rows, places of stages in [-1, 1], sizes of steps (0 for
those that failed), slopes of the path; states, activations and tanh values of the stages. */
typedef struct {
    int64_t before, view, rows;
} Round;

typedef struct {
    int64_t *row;
    double *x;
    float *h, *dx, *y, *a, *t;
    long numbers;
} Kept;

static Kept kept_at(const Sizes *s, long stages, long rows, float *at) {
    long hp = s->padded_hidden, wp = s->padded_width, d = s->channels;
    Kept k;
    float *here = at + ALIGNED((long)(sizeof(Round) / sizeof(float)));
    k.row = (int64_t *)here, here += ALIGNED(2 * rows);
    k.x = (double *)here, here += ALIGNED(2 * rows * stages);
    k.h = here, here += ALIGNED(rows);
    k.dx = here, here += ALIGNED(rows * stages * d);
    k.y = here, here += stages * rows * hp;
    k.a = here, here += stages * rows * wp;
    k.t = here, here += stages * rows * hp * d;
    k.numbers = here - at;
    return k;
}

/* Calls of the mathematical library's would cost more than the comparison, in every step of every row. */
static double lesser(double a, double b) { return a < b ? a : b; }
static double larger(double a, double b) { return a > b ? a : b; }

static double share_of(const Rows *u, long row, double time) { return (time - u->start[row]) / u->window[row]; }

/* Turns of the path from the start of the window. */
static double turns_at(const Rows *u, long cells, long row, double share) {
    long cell = (long)(share * cells);
    cell = cell < 0 ? 0 : cell > cells - 1 ? cells - 1 : cell;
    return u->reached[row * (cells + 1) + cell] + (share - (double)cell / cells) * u->rate[row * cells + cell];
}

/* The time that a step of this size takes from here. */
static double length_of(const Rows *u, long cells, long row, double begin, double size) {
    double share = share_of(u, row, begin), aim = turns_at(u, cells, row, share) + size;
    const double *reached = u->reached + row * (cells + 1);
    long cell = 0;
    while (cell < cells - 1 && !(reached[cell + 1] > aim)) cell++;
    return ((double)cell / cells + (aim - reached[cell]) / u->rate[row * cells + cell] - share) * u->window[row];
}

static double size_of(const Rows *u, long cells, long row, double begin, double length) {
    double share = share_of(u, row, begin);
    return turns_at(u, cells, row, share + length / u->window[row]) - turns_at(u, cells, row, share);
}

/* How long the next step is, and when it ends. */
static double propose(const Rows *u, long cells, const Control *c, long row, double *end) {
    double begin = u->time[row], left = u->end[row] - begin;
    double wanted = lesser(length_of(u, cells, row, begin, u->size[row]), u->limit[row]);
    if (wanted * c->stretch >= left) {
        *end = u->end[row];
        return left;
    }
    /* Two equal steps to the end instead of a long one and a sliver. */
    if (2 * wanted > left)
        wanted = lesser(wanted, length_of(u, cells, row, begin, size_of(u, cells, row, begin, left) / 2));
    *end = begin + wanted;
    return wanted;
}

/* Whether a step is accepted, by mean squares of its error and departure over tolerance; what follows from it. */
static int settle(const Rows *u, long cells, const Control *c, long row, double length, double end, double square,
                  double departure, int departs) {
    double ratio = sqrt(square) * c->doubt, order = c->order, longer = 1;
    if (departs) {
        longer = larger(c->trust * sqrt(c->tolerance * sqrt(departure)), 1.0);
        ratio *= longer;
        if (ratio <= 1) order += c->steepness * lesser(longer - 1, 1.0);
    }
    int finite = isfinite(ratio);
    if (!finite) ratio = INFINITY;
    int accepted = ratio <= 1;
    double taken = size_of(u, cells, row, u->time[row], length);
    double wanted = c->safety * pow(ratio, accepted ? 0.75 * c->damping - 1 / order : -1 / order);
    wanted = accepted ? wanted * pow(u->previous[row], c->damping) : lesser(wanted, 0.9);
    double size = taken * lesser(larger(wanted, c->shrink), c->grow);
    if (accepted) {
        /* A step cut short by the end says nothing against the size that was wanted before it. */
        if (taken < (1 - 1e-9) * u->size[row]) size = larger(size, u->size[row]);
        u->previous[row] = larger(ratio, 1e-4);
        u->time[row] = end;
        u->accepted[row]++;
        if (end >= u->end[row]) u->code[row] = FINISHED;
    } else {
        u->rejected[row]++;
        if (length_of(u, cells, row, u->time[row], size) < u->smallest[row])
            u->code[row] = finite ? STEP_UNDERFLOW : NON_FINITE;
    }
    u->size[row] = size;
    if (u->code[row] == RUNNING && u->accepted[row] + u->rejected[row] >= c->max_steps) u->code[row] = STEP_LIMIT;
    return accepted;
}

static double place_of(const Rows *u, long row, double time) {
    double x = 2 * (time - u->start[row]) / u->length[row] - 1;
    return x > 1 ? 1 : x < -1 ? -1 : x;
}

/* Slopes of a row's path at the places of a step's stages; `values` is room for PLACES numbers per channel. */
static void slopes_at(const Sizes *s, long stages, long count, const float *coefficients, const double *x, float *dx,
                      double *values) {
    long d = s->channels;
    for (long first = 0; first < stages; first += PLACES) {
        long here = stages - first < PLACES ? stages - first : PLACES;
        double at[PLACES] = {0};
        memcpy(at, x + first, sizeof(double) * here);
        polynomial_values(count, d, coefficients, at, values);
        for (long j = 0; j < here; j++)
            for (long c = 0; c < d; c++) dx[(first + j) * d + c] = values[c * PLACES + j];
    }
}

/* What gradients of the slopes mean to the polynomials. `wanted` is room likewise, `basis` for the way back. */
static void slopes_at_back(const Sizes *s, long stages, long count, const float *g, const double *x, float *to,
                           double *wanted, double *basis) {
    long d = s->channels;
    for (long first = 0; first < stages; first += PLACES) {
        long here = stages - first < PLACES ? stages - first : PLACES;
        for (long j = 0; j < here; j++)
            for (long c = 0; c < d; c++) wanted[c * PLACES + j] = g[(first + j) * d + c];
        polynomial_values_back(count, d, here, wanted, x + first, to, basis);
    }
}

/* Take rows as far as they go: until they are done, `ends` is full or, with `kept`, that is. Running rows of each view
are listed in `order`, `rows_of_view` of them. kept: [shares, capacity] numbers, or NULL; last: [shares], where the last
round of each is, -1 if there is none. */
int march_forward(const Sizes *s, const Weights *w, const int64_t *rows_of_view, const Method *method,
                  const double *nodes, const Control *control, const Extent *extent, const Rows *u,
                  const int64_t *order, float *kept, int64_t capacity, int64_t *last) {
    long hidden = s->hidden, hp = s->padded_hidden, wp = s->padded_width, d = s->channels, cells = extent->cells;
    long stages = method->slopes - 1, apart = MOST_ROWS * hp;
    float rtol = control->rtol, atol = control->atol;
    int failed = 0;
#pragma omp parallel for num_threads(s->threads) schedule(static, 1)
    for (long share = 0; share < extent->shares; share++) {
        float *slopes = room((method->slopes + 2) * apart + MOST_ROWS * (wp + stages * d) + SIDES(s));
        double *values = malloc(sizeof(double) * (PLACES * d + stages * MOST_ROWS));
        if (!slopes || !values) failed = 1;
        float *begin = slopes + method->slopes * apart, *state = begin + apart, *own_a = state + apart,
              *own_dx = own_a + MOST_ROWS * wp;
        Sides sides = sides_at(s, own_dx + MOST_ROWS * stages * d);
        double *own_x = values + PLACES * d, ends[MOST_ROWS], lengths[MOST_ROWS];
        float own_h[MOST_ROWS];
        int64_t row[MOST_ROWS];
        long used = 0, full = 0, first = 0;
        last[share] = -1;
        begin_products();
        for (long view = 0; view < s->views && !failed; first += rows_of_view[view++]) {
            Weights weights = of_view(s, w, view);
            long active = 0, next = share;
            for (;;) {
                while (active < MOST_ROWS && next < rows_of_view[view]) {
                    long r = order[first + next];
                    next += extent->shares;
                    row[active] = r;
                    padded(1, hidden, hp, u->z + r * hidden, begin + active * hp);
                    padded(1, hidden, hp, u->slope + r * hidden, slopes + active * hp);
                    active++;
                }
                if (!active) break;
                Kept k = {row, own_x, own_h, own_dx, NULL, NULL, NULL, 0};
                float *at = kept ? kept + share * capacity + used : NULL;
                if (kept) {
                    k = kept_at(s, stages, active, at);
                    full = used + k.numbers > capacity;
                    if (full) break;
                    *(Round *)at = (Round){last[share], view, active};
                    memcpy(k.row, row, sizeof(int64_t) * active);
                }
                for (long i = 0; i < active; i++) {
                    double from = u->time[row[i]];
                    lengths[i] = propose(u, cells, control, row[i], ends + i);
                    k.h[i] = lengths[i];
                    for (long j = 0; j < stages; j++) {
                        double t = nodes[j + 1] == 1 ? ends[i] : from + nodes[j + 1] * lengths[i];
                        k.x[i * stages + j] = place_of(u, row[i], lesser(larger(t, from), ends[i]));
                    }
                    slopes_at(s, stages, extent->count, u->coefficients + row[i] * extent->count * d, k.x + i * stages,
                              k.dx + i * stages * d, values);
                }
                take_stages(s, &weights, method, active, k.h, begin, k.dx, stages * d, slopes, apart, state, own_a,
                            (Stages){k.y, k.a, k.t, active}, sides);
                float *slope = slopes + stages * apart;
                long moved = 0;
                for (long i = 0; i < active; i++) {
                    double square = squared_ratio(s, method, method->error, k.h[i], rtol, atol, begin + i * hp,
                                                  state + i * hp, slopes + i * hp, apart);
                    double departure =
                        method->departure ? squared_ratio(s, method, method->departure, k.h[i], rtol, atol,
                                                          begin + i * hp, state + i * hp, slopes + i * hp, apart)
                                          : 0;
                    if (settle(u, cells, control, row[i], lengths[i], ends[i], square, departure,
                               method->departure != NULL)) {
                        u->ends[row[i] * extent->room + u->logged[row[i]]++] = ends[i];
                        memcpy(begin + i * hp, state + i * hp, sizeof(float) * hp);
                        memcpy(slopes + i * hp, slope + i * hp, sizeof(float) * hp);
                        moved++;
                    } else if (kept) { /* nothing of it is to reach a gradient, not even as 0 times infinity */
                        k.h[i] = 0;
                        for (long j = 0; j < stages; j++) {
                            memset(k.dx + (i * stages + j) * d, 0, sizeof(float) * d);
                            memset(k.y + (j * active + i) * hp, 0, sizeof(float) * hp);
                            memset(k.a + (j * active + i) * wp, 0, sizeof(float) * wp);
                            for (long c = 0; c < d; c++)
                                memset(k.t + ((j * d + c) * active + i) * hp, 0, sizeof(float) * hp);
                        }
                    }
                }
                if (kept && moved) last[share] = used, used += k.numbers;
                for (long i = active - 1; i >= 0; i--) {
                    long r = row[i];
                    if (u->code[r] == RUNNING && u->logged[r] < extent->room) continue;
                    unpadded(1, hidden, hp, begin + i * hp, u->z + r * hidden);
                    unpadded(1, hidden, hp, slopes + i * hp, u->slope + r * hidden);
                    active--;
                    row[i] = row[active];
                    memmove(begin + i * hp, begin + active * hp, sizeof(float) * hp);
                    memmove(slopes + i * hp, slopes + active * hp, sizeof(float) * hp);
                }
            }
            for (long i = 0; i < active; i++) { /* no room: to be continued */
                unpadded(1, hidden, hp, begin + i * hp, u->z + row[i] * hidden);
                unpadded(1, hidden, hp, slopes + i * hp, u->slope + row[i] * hidden);
            }
            if (full) break;
        }
        end_products();
        free(slopes);
        free(values);
    }
    return failed;
}

/* The way back of `march_forward`. g_state, g_slope: [rows, hidden], gradients of what it found, and then of what it
began with. What it means to the polynomials is added to `to_coefficients`, unless that is NULL, and to the weights to
`sums`, [shares, views, ...], unless they are NULL. */
int march_backward(const Sizes *s, const Weights *w, const Method *method, const Extent *extent, float *kept,
                   int64_t capacity, const int64_t *last, float *g_state, float *g_slope, float *to_coefficients,
                   const Gradients *sums) {
    long hidden = s->hidden, hp = s->padded_hidden, wp = s->padded_width, d = s->channels;
    long stages = method->slopes - 1, apart = MOST_ROWS * hp;
    int failed = 0;
#pragma omp parallel for num_threads(s->threads) schedule(static, 1)
    for (long share = 0; share < extent->shares; share++) {
        float *g = room((method->slopes + 3) * apart + MOST_ROWS * (wp + stages * d) + SIDES(s));
        double *wanted = malloc(sizeof(double) * (PLACES * d + (PLACES + 1) * FILLED_UP(extent->count)));
        if (!g || !wanted) failed = 1;
        float *g_z = g + method->slopes * apart, *g_y = g_z + apart, *through = g_y + apart, *g_a = through + apart,
              *to_dx = g_a + MOST_ROWS * wp;
        Sides sides = sides_at(s, to_dx + MOST_ROWS * stages * d);
        begin_products();
        for (long at = last[share]; at >= 0 && !failed;) {
            float *here = kept + share * capacity + at;
            Round round = *(Round *)here;
            Kept k = kept_at(s, stages, round.rows, here);
            Weights weights = of_view(s, w, round.view);
            memset(g, 0, sizeof(float) * (method->slopes + 1) * apart);
            for (long i = 0; i < round.rows; i++) {
                if (k.h[i] == 0) continue;
                padded(1, hidden, hp, g_slope + k.row[i] * hidden, g + stages * apart + i * hp);
                padded(1, hidden, hp, g_state + k.row[i] * hidden, g_z + i * hp);
            }
            take_stages_back(s, &weights, method, round.rows, k.h, k.dx, stages * d,
                             (Stages){k.y, k.a, k.t, round.rows}, g, apart, g_z, g_y, g_a, through,
                             to_coefficients ? to_dx : NULL, of_share(s, sums, share, round.view), sides);
            for (long i = 0; i < round.rows; i++) {
                if (k.h[i] == 0) continue;
                unpadded(1, hidden, hp, g_z + i * hp, g_state + k.row[i] * hidden);
                unpadded(1, hidden, hp, g + i * hp, g_slope + k.row[i] * hidden);
                if (to_coefficients)
                    slopes_at_back(s, stages, extent->count, to_dx + i * stages * d, k.x + i * stages,
                                   to_coefficients + k.row[i] * extent->count * d, wanted, wanted + PLACES * d);
            }
            at = round.before;
        }
        end_products();
        free(g);
        free(wanted);
    }
    return failed;
}
