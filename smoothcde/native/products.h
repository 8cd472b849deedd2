/* Products of matrices too large for a few registers: what fields and encoders spend their time on.

By vectors, as in panels.h, or by matrix tiles (tiles.h) where TILES is defined and processor and compiler have them. A
left side is rows by depth, a right side depth by a panel of columns. For vectors they lie as they do in memory; tiles
want each in an order of its own, made once for many products. */

#pragma once

#include "panels.h"

#if defined(TILES) && defined(__AMX_BF16__) && defined(__AVX512BF16__)
#define BY_TILES 1
#else
#define BY_TILES 0
#endif

typedef struct {
    const float *at;
    long row, depth; /* from one to the next; tiles need neither */
} Left;

typedef struct {
    const float *at;
    long depth;
} Right;

/* For the Python side, which has right sides that stay made only once. */
int64_t products_by_tiles(void) { return BY_TILES; }

#if BY_TILES

#include "tiles.h"

#else

#define AT_ONCE TILE
#define LEFT_NUMBERS(rows, depth) 0
#define RIGHT_NUMBERS(depth) ((depth) * PANEL)

HELPER void begin_products(void) {}
HELPER void end_products(void) {}

HELPER Left left_of(long rows, long depth, const float *a, long a_row, float *to) { return (Left){a, a_row, 1}; }

HELPER Left left_across(long rows, long depth, const float *a, long a_depth, float *to) {
    return (Left){a, 1, a_depth};
}

HELPER Right right_of(long depth, const float *b, long b_depth, float *to) { return (Right){b, b_depth}; }

HELPER void multiply(long rows, long depth, Left a, Right b, const float *bias, float *c, long c_row, int add) {
    long r = 0;
    for (; r + TILE <= rows; r += TILE)
        tile(TILE, depth, a.at + r * a.row, a.row, a.depth, b.at, b.depth, bias, c + r * c_row, c_row, add);
    REST(rows - r, depth, a.at + r * a.row, a.row, a.depth, b.at, b.depth, bias, c + r * c_row, c_row, add)
}

#endif

/* A panel of a right side that was made before. */
INLINE Right panel_of(const float *panels, long index, long depth) {
    return (Right){panels + index * RIGHT_NUMBERS(depth), PANEL};
}

/* Panels [count, depth, PANEL] as right sides, for the Python side; `numbers` tells how large each is. */
int64_t right_side_numbers(int64_t depth) { return RIGHT_NUMBERS(depth); }

int right_sides(int64_t count, int64_t depth, const float *panels, float *to) {
    for (long i = 0; i < count; i++) {
        Right made = right_of(depth, panels + i * depth * PANEL, PANEL, to + i * RIGHT_NUMBERS(depth));
        if (!BY_TILES) memcpy(to + i * RIGHT_NUMBERS(depth), made.at, sizeof(float) * RIGHT_NUMBERS(depth));
    }
    return 0;
}
