/* The recurrence of selective state spaces, forwards and backwards:

    h = exp(gap * rates) h + gap * input * write        a state of `states` numbers per channel
    output = read . h + skip * input

A vector holds one number of state of LANES channels, so that a few vectors are the whole state of these channels, and
stay in registers while they walk along a series. */

#include "panels.h"

#define STRIDE 64       /* stamps between two states that are kept for the backward pass */
#define MOST_STATES 64  /* of a channel */
#define USUAL_STATES 16 /* worth code of their own */

/* What the caller has to know: lanes, stamps between kept states, the most states. */
void scan_constants(int64_t *numbers) {
    numbers[0] = LANES;
    numbers[1] = STRIDE;
    numbers[2] = MOST_STATES;
}

typedef struct {
    int64_t series, length, padded_channels, states, threads;
} Sizes;

/* inputs, gaps: [series, length, padded_channels]; rates: [states, padded_channels]; write, read: [series, length,
states]; skip: [padded_channels]. */
typedef struct {
    const float *inputs, *gaps, *rates, *write, *read, *skip;
} Parts;

/* Shaped like the parts; rates and skip once per thread. */
typedef struct {
    float *inputs, *gaps, *rates, *write, *read, *skip;
} Gradients;

/* exp(x), below exp(-87) as good as zero. */
INLINE vec exp_of(vec x) {
    const vec most = spread(127.0f), least = spread(-126.0f);
    vec y = x * 1.4426950408889634f; /* log2(e) */
    y = choose(y > most, most, y);
    return power_of_two(choose(y < least, least, y));
}

/* One stamp: the state moves on, and says what it has to say. */
INLINE vec move(const long states, vec *h, vec input, vec gap, const float *rates, long apart, const float *write,
                const float *read) {
    vec driven = gap * input, said = spread(0);
    for (long s = 0; s < states; s++) {
        h[s] = exp_of(gap * LOAD(rates + s * apart)) * h[s] + driven * write[s];
        said += h[s] * read[s];
    }
    return said;
}

INLINE void walk(const Sizes *z, const long states, const Parts *p, long i, long c, float *outputs, float *kept) {
    long wide = z->padded_channels, pieces = (z->length + STRIDE - 1) / STRIDE;
    vec h[MOST_STATES] = {0}, skip = LOAD(p->skip + c);
    for (long t = 0; t < z->length; t++) {
        long at = (i * z->length + t) * wide + c, row = (i * z->length + t) * states;
        if (kept && t % STRIDE == 0)
            for (long s = 0; s < states; s++) STORE(kept + ((i * pieces + t / STRIDE) * states + s) * wide + c, h[s]);
        vec input = LOAD(p->inputs + at);
        vec said = move(states, h, input, LOAD(p->gaps + at), p->rates + c, wide, p->write + row, p->read + row);
        STORE(outputs + at, said + skip * input);
    }
}

/* outputs: like the inputs; kept: [series, states before every STRIDE-th stamp, states, padded_channels], or NULL. */
int selective_scan_forward(const Sizes *z, const Parts *p, float *outputs, float *kept) {
    long blocks = z->padded_channels / LANES;
#pragma omp parallel for num_threads(z->threads) schedule(static)
    for (long job = 0; job < z->series * blocks; job++) {
        long i = job / blocks, c = job % blocks * LANES;
        if (z->states == USUAL_STATES)
            walk(z, USUAL_STATES, p, i, c, outputs, kept);
        else
            walk(z, z->states, p, i, c, outputs, kept);
    }
    return 0;
}

/* What a thread works in: of a block of channels the states before each stamp of a piece and behind it; what the block
adds to the gradients of `write` and `read`, stamp by stamp; and of all channels the gradient of the state at hand. */
typedef struct {
    float *states, *write, *read, *to_h;
} Room;

/* A piece of a series, backwards, for a block of channels. */
INLINE void piece_back(const Sizes *z, const long states, const Parts *p, const Gradients *sums, const float *g,
                       long first, long count, long c, Room own, float *rates, float *skip) {
    long wide = z->padded_channels;
    vec h[MOST_STATES], to_rates[MOST_STATES], to_skip = LOAD(skip + c), through_skip = LOAD(p->skip + c);
    for (long s = 0; s < states; s++) h[s] = LOAD(own.states + s * LANES);
    for (long t = 0; t < count; t++) {
        long at = (first + t) * wide + c, row = (first + t) * states;
        move(states, h, LOAD(p->inputs + at), LOAD(p->gaps + at), p->rates + c, wide, p->write + row, p->read + row);
        for (long s = 0; s < states; s++) STORE(own.states + ((t + 1) * states + s) * LANES, h[s]);
    }
    vec *to_h = h; /* the states are all stored */
    for (long s = 0; s < states; s++) {
        to_h[s] = LOAD(own.to_h + s * wide + c);
        to_rates[s] = LOAD(rates + s * wide + c);
    }
    for (long t = count - 1; t >= 0; t--) {
        long at = (first + t) * wide + c, row = (first + t) * states, cell = t * states * LANES;
        vec input = LOAD(p->inputs + at), gap = LOAD(p->gaps + at), told = LOAD(g + at), driven = gap * input;
        vec to_driven = spread(0), to_gap = spread(0);
        const float *before = own.states + cell, *after = before + states * LANES;
        for (long s = 0; s < states; s++) {
            vec rate = LOAD(p->rates + s * wide + c), here = to_h[s] + told * p->read[row + s];
            float *to_write = own.write + cell + s * LANES, *to_read = own.read + cell + s * LANES;
            STORE(to_write, LOAD(to_write) + driven * here);
            STORE(to_read, LOAD(to_read) + told * LOAD(after + s * LANES));
            to_driven += here * p->write[row + s];
            to_h[s] = here * exp_of(gap * rate);
            vec to_exponent = to_h[s] * LOAD(before + s * LANES);
            to_gap += to_exponent * rate;
            to_rates[s] += to_exponent * gap;
        }
        STORE(sums->inputs + at, gap * to_driven + told * through_skip);
        STORE(sums->gaps + at, input * to_driven + to_gap);
        to_skip += told * input;
    }
    for (long s = 0; s < states; s++) {
        STORE(own.to_h + s * wide + c, to_h[s]);
        STORE(rates + s * wide + c, to_rates[s]);
    }
    STORE(skip + c, to_skip);
}

/* g: like the outputs. */
int selective_scan_backward(const Sizes *z, const Parts *p, const float *kept, const float *g, const Gradients *sums) {
    long wide = z->padded_channels, states = z->states, pieces = (z->length + STRIDE - 1) / STRIDE;
    int failed = 0;
#pragma omp parallel num_threads(z->threads)
    {
        long cells = STRIDE * states * LANES;
        Room own;
        own.states = room(3 * cells + states * LANES + states * wide);
        own.write = own.states + cells + states * LANES;
        own.read = own.write + cells;
        own.to_h = own.read + cells;
        if (!own.states) failed = 1;
        float *rates = sums->rates + thread_number() * states * wide, *skip = sums->skip + thread_number() * wide;
#pragma omp for schedule(static)
        for (long i = 0; i < z->series; i++) {
            if (failed) continue;
            memset(own.to_h, 0, sizeof(float) * states * wide);
            for (long piece = pieces - 1; piece >= 0; piece--) {
                long begin = piece * STRIDE, count = z->length - begin < STRIDE ? z->length - begin : STRIDE;
                long first = i * z->length + begin;
                memset(own.write, 0, sizeof(float) * 2 * cells);
                for (long c = 0; c < wide; c += LANES) {
                    for (long s = 0; s < states; s++)
                        STORE(own.states + s * LANES, LOAD(kept + ((i * pieces + piece) * states + s) * wide + c));
                    if (states == USUAL_STATES)
                        piece_back(z, USUAL_STATES, p, sums, g, first, count, c, own, rates, skip);
                    else
                        piece_back(z, states, p, sums, g, first, count, c, own, rates, skip);
                }
                for (long k = 0; k < count * states; k++) {
                    sums->write[first * states + k] = sum_of(LOAD(own.write + k * LANES));
                    sums->read[first * states + k] = sum_of(LOAD(own.read + k * LANES));
                }
            }
        }
        free(own.states);
    }
    return failed;
}
