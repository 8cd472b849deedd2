/* Scores of stamps by queries: two convolutions of width 3 over a series, ReLU after each, then a product with every
query. The second convolution is most of the work; it is done by Winograd's minimal filtering F(6, 3), six outputs
from eight products instead of eighteen (Lavin and Gray, "Fast algorithms for convolutional neural networks", 2016).

Blocks of so many tiles that all of them stay in the cache are filled with pieces of series; a piece computes the first
layer at one stamp more on either side for itself. */

#include "products.h"

#define OUTPUTS 6 /* of a tile, from INPUTS */
#define INPUTS 8
#define MOST_TILES (BY_TILES ? 64 : 48) /* of a block, and so of a piece */

typedef struct {
    int64_t series, length, features, views, width, padded_width, threads;
} Sizes;

/* first: [panels, 3 features, PANEL]; second: right sides of [INPUTS, panels, padded_width, PANEL], transformed;
second_back: likewise of the transposed matrices; queries: [views, padded_width]. */
typedef struct {
    const float *first, *first_bias, *second, *second_bias, *second_back, *queries;
} Weights;

typedef struct {
    float *first, *first_bias, *second, *second_bias, *queries;
} Gradients;

/* Stamps `begin` to before `begin + count` of a series, whose tiles stand behind `tile` others in their block. */
typedef struct {
    long series, begin, count, tile, tiles;
} Piece;

typedef struct {
    long first, pieces, tiles;
} Block;

/* Room for a block. `inner` has two rows more than outputs for each piece; `left`, `across` and `right` are for sides of
products, the first for one of each input. */
typedef struct {
    float *windows, *inner, *transformed, *products, *outer, *left, *across, *right;
} Room;

/* From tile to tile of what is transformed: rows that are a power of two apart would all go to the same few places of
the first cache. */
#define TILE_ROW(padded_width) ((padded_width) + PANEL)
#define INNER_ROWS(tiles, pieces) (OUTPUTS * (tiles) + 2 * (pieces))

/* F(6, 3) by polynomials at 0, 1, -1, 2, -2, 1/2, -1/2 and infinity: a tile's outputs are A^T ((G g) (B^T d)), of inputs
d and taps g. Even and odd powers of two opposite points differ by a sign, so they are summed once for both. */

/* B^T d. */
INLINE void of_inputs(const vec *d, vec *to) {
    vec even = d[2] - 4.25f * d[4] + d[6], odd = d[1] - 4.25f * d[3] + d[5];
    to[0] = d[0] - d[6] + 5.25f * (d[4] - d[2]);
    to[1] = even + odd, to[2] = even - odd;
    even = 0.25f * d[2] - 1.25f * d[4] + d[6], odd = 0.5f * d[1] - 2.5f * d[3] + 2 * d[5];
    to[3] = even + odd, to[4] = even - odd;
    even = 4 * d[2] - 5 * d[4] + d[6], odd = 2 * d[1] - 2.5f * d[3] + 0.5f * d[5];
    to[5] = even + odd, to[6] = even - odd;
    to[7] = d[7] - d[1] + 5.25f * (d[3] - d[5]);
}

/* B v, the way back of `of_inputs`. */
INLINE void of_inputs_back(const vec *v, vec *to) {
    vec even1 = v[1] + v[2], odd1 = v[1] - v[2], even2 = v[3] + v[4], odd2 = v[3] - v[4], even3 = v[5] + v[6],
        odd3 = v[5] - v[6];
    to[0] = v[0];
    to[1] = odd1 + 0.5f * odd2 + 2 * odd3 - v[7];
    to[2] = even1 + 0.25f * even2 + 4 * even3 - 5.25f * v[0];
    to[3] = 5.25f * v[7] - 4.25f * odd1 - 2.5f * (odd2 + odd3);
    to[4] = 5.25f * v[0] - 4.25f * even1 - 1.25f * even2 - 5 * even3;
    to[5] = odd1 + 2 * odd2 + 0.5f * odd3 - 5.25f * v[7];
    to[6] = even1 + even2 + even3 - v[0];
    to[7] = v[7];
}

/* A^T m. */
INLINE void to_outputs(const vec *m, vec *y) {
    vec even1 = m[1] + m[2], odd1 = m[1] - m[2], even2 = m[3] + m[4], odd2 = m[3] - m[4], even3 = m[5] + m[6],
        odd3 = m[5] - m[6];
    y[0] = m[0] + even1 + even2 + even3;
    y[1] = odd1 + 2 * odd2 + 0.5f * odd3;
    y[2] = even1 + 4 * even2 + 0.25f * even3;
    y[3] = odd1 + 8 * odd2 + 0.125f * odd3;
    y[4] = even1 + 16 * even2 + 0.0625f * even3;
    y[5] = odd1 + 32 * odd2 + 0.03125f * odd3 + m[7];
}

/* A g, the way back of `to_outputs`. */
INLINE void to_outputs_back(const vec *g, vec *to) {
    vec even = g[0] + g[2] + g[4], odd = g[1] + g[3] + g[5];
    to[0] = g[0];
    to[1] = even + odd, to[2] = even - odd;
    even = g[0] + 4 * g[2] + 16 * g[4], odd = 2 * g[1] + 8 * g[3] + 32 * g[5];
    to[3] = even + odd, to[4] = even - odd;
    even = g[0] + 0.25f * g[2] + 0.0625f * g[4], odd = 0.5f * g[1] + 0.125f * g[3] + 0.03125f * g[5];
    to[5] = even + odd, to[6] = even - odd;
    to[7] = g[5];
}

/* Vectors that are `apart` numbers from each other. */
INLINE void load_all(const int count, const float *from, long apart, vec *to) {
    UNROLL
    for (int i = 0; i < count; i++) to[i] = LOAD(from + i * apart);
}

INLINE void store_all(const int count, const vec *from, float *to, long apart) {
    UNROLL
    for (int i = 0; i < count; i++) STORE(to + i * apart, from[i]);
}

static long cut(const Sizes *s, const int64_t *lengths, Piece **pieces, Block **blocks) {
    long all = 0, count = 0, made = 0;
    for (long i = 0; i < s->series; i++) all += (lengths[i] + OUTPUTS - 1) / OUTPUTS;
    *blocks = malloc(sizeof(Block) * (all / MOST_TILES + 1));
    *pieces = malloc(sizeof(Piece) * (all / MOST_TILES + 1 + s->series));
    for (long i = 0; i < s->series; i++)
        for (long begin = 0; begin < lengths[i];) {
            if (!made || (*blocks)[made - 1].tiles == MOST_TILES) (*blocks)[made++] = (Block){count, 0, 0};
            Block *block = *blocks + made - 1;
            long stamps = OUTPUTS * (MOST_TILES - block->tiles);
            if (stamps > lengths[i] - begin) stamps = lengths[i] - begin;
            long tiles = (stamps + OUTPUTS - 1) / OUTPUTS;
            (*pieces)[count++] = (Piece){i, begin, stamps, block->tiles, tiles};
            block->tiles += tiles;
            block->pieces++;
            begin += stamps;
        }
    return made;
}

#define LEFT_SIDE(wp) LEFT_NUMBERS(MOST_TILES, wp)

static Room room_of(const Sizes *s) {
    long wp = s->padded_width, rows = INNER_ROWS(MOST_TILES, MOST_TILES);
    long windows = rows * 3 * s->features, inner = rows * wp, spread = INPUTS * MOST_TILES * TILE_ROW(wp);
    long outer = OUTPUTS * MOST_TILES * wp, across = LEFT_NUMBERS(wp, MOST_TILES);
    windows = (windows + LANES - 1) / LANES * LANES;
    Room r;
    r.windows = room(windows + inner + 2 * spread + outer + INPUTS * LEFT_SIDE(wp) + across + RIGHT_NUMBERS(MOST_TILES));
    r.inner = r.windows + windows;
    r.transformed = r.inner + inner;
    r.products = r.transformed + spread;
    r.outer = r.products + spread;
    r.left = r.outer + outer;
    r.across = r.left + INPUTS * LEFT_SIDE(wp);
    r.right = r.across + across;
    return r;
}

static long clamped(long place, long last) { return place < 0 ? 0 : place > last ? last : place; }

/* The first layer where the block's pieces need it, ends of a series repeated, and its transform B^T d. */
static void begin_block(const Sizes *s, const Weights *w, const int64_t *lengths, const Block *block,
                        const Piece *pieces, const float *features, Room r) {
    long wp = s->padded_width, f = s->features, row = 0;
    for (long q = 0; q < block->pieces; q++) {
        Piece p = pieces[block->first + q];
        long last = lengths[p.series] - 1;
        const float *own = features + p.series * s->length * f;
        for (long j = 0; j < INNER_ROWS(p.tiles, 1); j++, row++)
            for (long shift = -1; shift <= 1; shift++) {
                long place = clamped(clamped(p.begin - 1 + j, last) + shift, last);
                memcpy(r.windows + (3 * row + shift + 1) * f, own + place * f, sizeof(float) * f);
            }
    }
    for (long n = 0; n < wp; n += PANEL)
        product(row, 3 * f, r.windows, 3 * f, w->first + n * 3 * f, w->first_bias + n, r.inner + n, wp);
    for (long j = 0; j < row * wp; j += LANES) {
        vec u = LOAD(r.inner + j);
        STORE(r.inner + j, choose(u < spread(0), spread(0), u));
    }
    long tile_row = TILE_ROW(wp), apart = block->tiles * tile_row;
    for (long q = 0, at = 0; q < block->pieces; q++) {
        Piece p = pieces[block->first + q];
        for (long tile = 0; tile < p.tiles; tile++)
            for (long n = 0; n < wp; n += LANES) {
                vec d[INPUTS], made[INPUTS];
                load_all(INPUTS, r.inner + (at + OUTPUTS * tile) * wp + n, wp, d);
                of_inputs(d, made);
                store_all(INPUTS, made, r.transformed + (p.tile + tile) * tile_row + n, apart);
            }
        at += INNER_ROWS(p.tiles, 1);
    }
}

/* scores: [series, views, length], written where there are stamps; kept: [series, length, padded_width], the second
layer, or NULL. */
int conv_scores_forward(const Sizes *s, const Weights *w, const int64_t *lengths, const float *features, float *scores,
                        float *kept) {
    long wp = s->padded_width;
    int failed = 0;
    Piece *pieces;
    Block *blocks;
    long count = cut(s, lengths, &pieces, &blocks);
#pragma omp parallel num_threads(s->threads)
    {
        Room r = room_of(s);
        if (!r.windows) failed = 1;
        begin_products();
#pragma omp for schedule(dynamic, 1)
        for (long b = 0; b < count; b++) {
            if (failed) continue;
            const Block *block = blocks + b;
            long tile_row = TILE_ROW(wp), apart = block->tiles * tile_row, beside = block->tiles * PANEL;
            begin_block(s, w, lengths, block, pieces, features, r);
            Left left[INPUTS];
            for (long i = 0; i < INPUTS; i++)
                left[i] = left_of(block->tiles, wp, r.transformed + i * apart, tile_row, r.left + i * LEFT_SIDE(wp));
            for (long n = 0; n < wp; n += PANEL) {
                for (long i = 0; i < INPUTS; i++)
                    multiply(block->tiles, wp, left[i], panel_of(w->second, (i * wp + n) / PANEL, wp), NULL,
                             r.products + i * beside, PANEL, 0);
                for (long tile = 0; tile < block->tiles; tile++)
                    for (long j = 0; j < PANEL; j += LANES) {
                        vec m[INPUTS], y[OUTPUTS], bias = LOAD(w->second_bias + n + j);
                        load_all(INPUTS, r.products + tile * PANEL + j, beside, m);
                        to_outputs(m, y);
                        UNROLL
                        for (int o = 0; o < OUTPUTS; o++) {
                            vec u = y[o] + bias;
                            STORE(r.outer + (OUTPUTS * tile + o) * wp + n + j, choose(u < spread(0), spread(0), u));
                        }
                    }
            }
            for (long q = 0; q < block->pieces; q++) {
                Piece p = pieces[block->first + q];
                const float *made = r.outer + OUTPUTS * p.tile * wp;
                for (long k = 0; k < p.count; k++)
                    for (long v = 0; v < s->views; v++) {
                        vec sum = spread(0);
                        for (long n = 0; n < wp; n += LANES)
                            sum += LOAD(made + k * wp + n) * LOAD(w->queries + v * wp + n);
                        scores[(p.series * s->views + v) * s->length + p.begin + k] = sum_of(sum);
                    }
                if (kept) stream_rows(p.count * wp, made, kept + (p.series * s->length + p.begin) * wp);
            }
            if (kept) SETTLE;
        }
        end_products();
        free(r.windows);
    }
    free(pieces);
    free(blocks);
    return failed;
}

/* What gradients `g` of the scores mean to the weights; added to `sums`, [threads, ...], second: [INPUTS, padded_width,
padded_width], transformed. */
int conv_scores_backward(const Sizes *s, const Weights *w, const int64_t *lengths, const float *features,
                         const float *g, const float *kept, const Gradients *sums) {
    long wp = s->padded_width, f = s->features;
    int failed = 0;
    Piece *pieces;
    Block *blocks;
    long count = cut(s, lengths, &pieces, &blocks);
#pragma omp parallel num_threads(s->threads)
    {
        Room r = room_of(s);
        float *to_inner = room(INNER_ROWS(MOST_TILES, MOST_TILES) * wp);
        if (!r.windows || !to_inner) failed = 1;
        long thread = thread_number();
        begin_products();
        Gradients own = {sums->first + thread * 3 * f * wp, sums->first_bias + thread * wp,
                         sums->second + thread * INPUTS * wp * wp, sums->second_bias + thread * wp,
                         sums->queries + thread * s->views * wp};
#pragma omp for schedule(static, 1)
        for (long b = 0; b < count; b++) {
            if (failed) continue;
            const Block *block = blocks + b;
            long tile_row = TILE_ROW(wp), apart = block->tiles * tile_row, rows = INNER_ROWS(block->tiles, block->pieces);
            begin_block(s, w, lengths, block, pieces, features, r);
            for (long q = 0; q < block->pieces; q++) {
                Piece p = pieces[block->first + q];
                const float *made = kept + (p.series * s->length + p.begin) * wp;
                float *to = r.outer + OUTPUTS * p.tile * wp;
                const float *given = g + p.series * s->views * s->length + p.begin;
                memset(to, 0, sizeof(float) * OUTPUTS * p.tiles * wp);
                for (long k = 0; k < p.count; k++)
                    for (long n = 0; n < wp; n += LANES) {
                        vec u = LOAD(made + k * wp + n), sum = spread(0);
                        for (long v = 0; v < s->views; v++) {
                            vec score = spread(given[v * s->length + k]);
                            sum += score * LOAD(w->queries + v * wp + n);
                            STORE(own.queries + v * wp + n, LOAD(own.queries + v * wp + n) + score * u);
                        }
                        STORE(to + k * wp + n, choose(u > spread(0), sum, spread(0)));
                    }
            }
            add_rows(OUTPUTS * block->tiles, wp, r.outer, wp, own.second_bias);
            for (long tile = 0; tile < block->tiles; tile++)
                for (long n = 0; n < wp; n += LANES) {
                    vec y[OUTPUTS], to[INPUTS];
                    load_all(OUTPUTS, r.outer + OUTPUTS * tile * wp + n, wp, y);
                    to_outputs_back(y, to);
                    store_all(INPUTS, to, r.products + tile * tile_row + n, apart);
                }
            for (long i = 0; i < INPUTS; i++) {
                float *made = r.transformed + i * apart, *to = r.products + i * apart;
                Left left = left_of(block->tiles, wp, to, tile_row, r.left);
                Left across = left_across(wp, block->tiles, made, tile_row, r.across);
                for (long n = 0; n < wp; n += PANEL)
                    multiply(wp, block->tiles, across, right_of(block->tiles, to + n, tile_row, r.right), NULL,
                             own.second + i * wp * wp + n, wp, 1);
                /* The transform of the first layer is not needed any more: its place takes its gradient. */
                for (long n = 0; n < wp; n += PANEL)
                    multiply(block->tiles, wp, left, panel_of(w->second_back, (i * wp + n) / PANEL, wp), NULL, made + n,
                             tile_row, 0);
            }
            memset(to_inner, 0, sizeof(float) * rows * wp);
            for (long q = 0, at = 0; q < block->pieces; q++) {
                Piece p = pieces[block->first + q];
                for (long tile = 0; tile < p.tiles; tile++)
                    for (long n = 0; n < wp; n += LANES) {
                        vec v[INPUTS], d[INPUTS];
                        load_all(INPUTS, r.transformed + (p.tile + tile) * tile_row + n, apart, v);
                        of_inputs_back(v, d);
                        float *to = to_inner + (at + OUTPUTS * tile) * wp + n;
                        UNROLL
                        for (int i = 0; i < INPUTS; i++) STORE(to + i * wp, LOAD(to + i * wp) + d[i]);
                    }
                at += INNER_ROWS(p.tiles, 1);
            }
            for (long j = 0; j < rows * wp; j += LANES)
                STORE(to_inner + j, choose(LOAD(r.inner + j) > spread(0), LOAD(to_inner + j), spread(0)));
            for (long n = 0; n < wp; n += PANEL)
                outer(3 * f, rows, r.windows, 3 * f, to_inner + n, wp, own.first + n, wp);
            add_rows(rows, wp, to_inner, wp, own.first_bias);
        }
        end_products();
        free(r.windows);
        free(to_inner);
    }
    free(pieces);
    free(blocks);
    return failed;
}

/* The second layer's taps [width out, width in, 3] as G g (G is FILTER in conv_scores.py), in panels of outputs, or
`back`, in panels of inputs: [INPUTS, panels, padded_width, PANEL]. */
int conv_scores_taps(const Sizes *s, const float *taps, int64_t back, float *to) {
    long w = s->width, wp = s->padded_width, apart = wp * wp;
    memset(to, 0, sizeof(float) * INPUTS * apart);
    for (long n = 0; n < w; n += PANEL)
        for (long row = 0; row < w; row++) {
            float *at = to + n * wp + row * PANEL;
            for (long c = 0; c < PANEL && n + c < w; c++) {
                const float *g = taps + 3 * (back ? row * w + n + c : (n + c) * w + row);
                double g0 = g[0], g1 = g[1], g2 = g[2], near = (g0 + g2) * (-2.0 / 9), middle = g1 * (-2.0 / 9);
                double twice = g0 * (1.0 / 90) + g2 * (2.0 / 45), half = g0 * (32.0 / 45) + g2 * (8.0 / 45);
                at[c] = (float)g0;
                at[c + apart] = (float)(near + middle);
                at[c + 2 * apart] = (float)(near - middle);
                at[c + 3 * apart] = (float)(twice + g1 * (1.0 / 45));
                at[c + 4 * apart] = (float)(twice - g1 * (1.0 / 45));
                at[c + 5 * apart] = (float)(half + g1 * (16.0 / 45));
                at[c + 6 * apart] = (float)(half - g1 * (16.0 / 45));
                at[c + 7 * apart] = (float)g2;
            }
        }
    return 0;
}
