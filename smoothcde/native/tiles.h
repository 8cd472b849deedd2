/* Products by the matrix tiles of a processor (Intel's AMX): sixteen rows times sixteen columns at a time, of numbers
with 8 significant bits.

A float32 is the sum of three such numbers. Of the nine products of two such sums six are made; the other three are as
small as what float32 rounds off. Small ones are added up first, so that sums round less than by vectors: nothing is
less exact, and a product takes about half the time. */

#pragma once

#include "panels.h"

#define AT_ONCE 32       /* rows of a product: those of two tiles */
#define TERMS 3          /* of a number */
#define TILE_ROWS 16     /* also the columns of a tile of sums */
#define TILE_DEPTH 32    /* of a tile of terms, each of half a float */
#define TILE_NUMBERS 256 /* floats in the place of a tile */
#define DEPTHS(depth) (((depth) + TILE_DEPTH - 1) / TILE_DEPTH)

/* Floats in the place of a left side, and of a panel of a right one. */
#define LEFT_NUMBERS(rows, depth) (((rows) + TILE_ROWS - 1) / TILE_ROWS * DEPTHS(depth) * TERMS * TILE_NUMBERS)
#define RIGHT_NUMBERS(depth) (DEPTHS(depth) * TERMS * 2 * TILE_NUMBERS)

/* Stores of other code and loads of tiles keep their order: compilers do not know what tiles read. */
#define IN_ORDER __asm__ volatile("" ::: "memory")

/* A thread tells the processor the shape of its tiles before it multiplies, and when it is done. */
HELPER void begin_products(void) {
    struct {
        uint8_t palette, start, none[14];
        uint16_t bytes[16];
        uint8_t rows[16];
    } shape = {.palette = 1};
    for (int i = 0; i < 8; i++) shape.bytes[i] = 64, shape.rows[i] = TILE_ROWS;
    IN_ORDER;
    _tile_loadconfig(&shape);
}

HELPER void end_products(void) { _tile_release(); }

/* The leading terms of sixteen numbers and of sixteen others, in pairs; what is left of the numbers stays. They are
cut off, not rounded, which is half the work: three of them are the whole number either way. */
INLINE __m512i leading_terms(vec *first, vec *second) {
    const __m512i leading = _mm512_set1_epi32(0xffff0000);
    __m512i one = _mm512_and_si512((__m512i)*first, leading), other = _mm512_and_si512((__m512i)*second, leading);
    *first -= (vec)one, *second -= (vec)other;
    return _mm512_or_si512(_mm512_srli_epi32(one, 16), other);
}

/* Terms of numbers at two places, one behind the other in `to`, `apart` numbers from one to the next. */
INLINE void store_terms(vec first, vec second, float *to, long apart) {
    UNROLL
    for (int term = 0; term < TERMS; term++)
        _mm512_store_si512((void *)(to + term * apart), leading_terms(&first, &second));
}

/* Of 32 numbers in the depth of a tile, the first goes with the seventeenth and so on: both sides only have to agree. */
#define PAIRS (TILE_DEPTH / 2)

/* Rows of a, each 32 DEPTHS(depth) long. */
HELPER Left left_of(long rows, long depth, const float *a, long a_row, float *to) {
    long blocks = DEPTHS(depth);
    for (long r = 0; r < rows; r++)
        for (long k = 0; k < blocks; k++) {
            const float *from = a + r * a_row + k * TILE_DEPTH;
            float *place = to + (r / TILE_ROWS * blocks + k) * TERMS * TILE_NUMBERS + r % TILE_ROWS * LANES;
            store_terms(LOAD(from), LOAD(from + PAIRS), place, TILE_NUMBERS);
        }
    return (Left){to, 0, 0};
}

INLINE vec row_or_none(long row, long rows, const float *b, long b_row) {
    return row < rows ? LOAD(b + row * b_row) : spread(0);
}

/* A panel of columns of b. */
HELPER Right right_of(long depth, const float *b, long b_depth, float *to) {
    for (long k = 0; k < DEPTHS(depth); k++)
        for (long j = 0; j < PAIRS; j++)
            for (long half = 0; half < 2; half++) {
                long here = k * TILE_DEPTH + j;
                vec first = row_or_none(here, depth, b + half * LANES, b_depth);
                vec second = row_or_none(here + PAIRS, depth, b + half * LANES, b_depth);
                float *place = to + (k * TERMS * 2 + half) * TILE_NUMBERS + j * LANES;
                store_terms(first, second, place, 2 * TILE_NUMBERS);
            }
    return (Right){to, 0};
}

/* A square of sixteen pairs each way, turned over. */
INLINE void transpose(__m512i *v) {
    __m512i w[16];
    UNROLL
    for (int i = 0; i < 16; i += 2) {
        w[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
        w[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
    }
    UNROLL
    for (int i = 0; i < 16; i += 4) {
        v[i] = _mm512_unpacklo_epi64(w[i], w[i + 2]);
        v[i + 1] = _mm512_unpackhi_epi64(w[i], w[i + 2]);
        v[i + 2] = _mm512_unpacklo_epi64(w[i + 1], w[i + 3]);
        v[i + 3] = _mm512_unpackhi_epi64(w[i + 1], w[i + 3]);
    }
    UNROLL
    for (int i = 0; i < 4; i++) {
        w[i] = _mm512_shuffle_i32x4(v[i], v[i + 4], 0x88);
        w[i + 4] = _mm512_shuffle_i32x4(v[i], v[i + 4], 0xdd);
        w[i + 8] = _mm512_shuffle_i32x4(v[i + 8], v[i + 12], 0x88);
        w[i + 12] = _mm512_shuffle_i32x4(v[i + 8], v[i + 12], 0xdd);
    }
    UNROLL
    for (int i = 0; i < 8; i++) {
        v[i] = _mm512_shuffle_i32x4(w[i], w[i + 8], 0x88);
        v[i + 8] = _mm512_shuffle_i32x4(w[i], w[i + 8], 0xdd);
    }
}

/* Columns of a as rows: a^T; a whole number of vectors of them can be read. */
HELPER Left left_across(long rows, long depth, const float *a, long a_depth, float *to) {
    long blocks = DEPTHS(depth), apart = blocks * TERMS * TILE_NUMBERS;
    for (long k = 0; k < blocks; k++, to += TERMS * TILE_NUMBERS) {
        for (long j = 0; j < PAIRS; j++) /* along the rows of a, as they come from memory */
            for (long r = 0; r < rows; r += TILE_ROWS) {
                vec first = row_or_none(k * TILE_DEPTH + j, depth, a + r, a_depth);
                vec second = row_or_none(k * TILE_DEPTH + j + PAIRS, depth, a + r, a_depth);
                store_terms(first, second, to + r / TILE_ROWS * apart + j * LANES, TILE_NUMBERS);
            }
        for (long r = 0; r < rows; r += TILE_ROWS)
            for (int term = 0; term < TERMS; term++) {
                __m512i *square = (__m512i *)(to + r / TILE_ROWS * apart + term * TILE_NUMBERS), turned[PAIRS];
                UNROLL
                for (int j = 0; j < PAIRS; j++) turned[j] = square[j];
                transpose(turned);
                UNROLL
                for (int j = 0; j < PAIRS; j++) square[j] = turned[j];
            }
    }
    return (Left){to - blocks * TERMS * TILE_NUMBERS, 0, 0};
}

/* Sums of a product are tiles 0 and 1, and 2 and 3 of a second tile of rows; 4 and 5 are of the left, 6 and 7 of the
right side. */
#define LEFT_TILES(term)                                                        \
    do {                                                                        \
        const float *at = a + (k * TERMS + (term)) * TILE_NUMBERS;              \
        _tile_loadd(4, at, 64);                                                 \
        if (two) _tile_loadd(5, at + below, 64);                                \
    } while (0)
#define RIGHT_TILES(term)                                                       \
    do {                                                                        \
        const float *at = b + (k * TERMS + (term)) * 2 * TILE_NUMBERS;          \
        _tile_loadd(6, at, 64);                                                 \
        _tile_loadd(7, at + TILE_NUMBERS, 64);                                  \
    } while (0)
#define MULTIPLY                                                                \
    do {                                                                        \
        _tile_dpbf16ps(0, 4, 6);                                                \
        _tile_dpbf16ps(1, 4, 7);                                                \
        if (two) _tile_dpbf16ps(2, 5, 6);                                       \
        if (two) _tile_dpbf16ps(3, 5, 7);                                       \
    } while (0)

/* Six of the nine products of terms, small ones first. */
INLINE void add_products(const int two, long blocks, const float *a, const float *b) {
    long below = blocks * TERMS * TILE_NUMBERS;
    for (long k = 0; k < blocks; k++) {
        LEFT_TILES(2); RIGHT_TILES(0); MULTIPLY;
        LEFT_TILES(1); MULTIPLY;
        RIGHT_TILES(1); MULTIPLY;
        LEFT_TILES(0); MULTIPLY;
        RIGHT_TILES(2); MULTIPLY;
    }
    for (long k = 0; k < blocks; k++) {
        LEFT_TILES(0); RIGHT_TILES(0); MULTIPLY;
    }
}

/* c = (c +) a b + bias, a panel of columns. */
HELPER void multiply(long rows, long depth, Left left, Right right, const float *bias, float *c, long c_row, int add) {
    const float none[PANEL] __attribute__((aligned(64))) = {0};
    float rest[AT_ONCE * PANEL] __attribute__((aligned(64)));
    long blocks = DEPTHS(depth);
    for (long r = 0; r < rows; r += AT_ONCE) {
        const float *a = left.at + r / TILE_ROWS * blocks * TERMS * TILE_NUMBERS;
        long here = rows - r < AT_ONCE ? rows - r : AT_ONCE, row = c_row;
        float *to = c + r * c_row;
        int whole = here % TILE_ROWS == 0, two = here > TILE_ROWS;
        if (!whole) {
            to = rest, row = PANEL;
            for (long i = 0; add && i < here; i++) memcpy(rest + i * PANEL, c + (r + i) * c_row, sizeof(float) * PANEL);
        }
        IN_ORDER;
        /* All rows of a tile from one place: the bias. */
        const float *from = add ? to : bias ? bias : none;
        long apart = add ? 4 * row : 0, below = add ? TILE_ROWS * row : 0;
        _tile_loadd(0, from, apart);
        _tile_loadd(1, from + LANES, apart);
        if (two) {
            _tile_loadd(2, from + below, apart);
            _tile_loadd(3, from + below + LANES, apart);
            add_products(1, blocks, a, right.at);
        } else
            add_products(0, blocks, a, right.at);
        _tile_stored(0, to, 4 * row);
        _tile_stored(1, to + LANES, 4 * row);
        if (two) {
            _tile_stored(2, to + TILE_ROWS * row, 4 * row);
            _tile_stored(3, to + TILE_ROWS * row + LANES, 4 * row);
        }
        IN_ORDER;
        if (!whole)
            for (long i = 0; i < here; i++) memcpy(c + (r + i) * c_row, rest + i * PANEL, sizeof(float) * PANEL);
    }
}
