#include "vit/patches.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "common/random_inputs.h"

enum { PIXELS = VIT_SIDE * VIT_SIDE, FREQUENCIES = VIT_PATCH * VIT_PATCH };

/* Brightness, red against blue, green against both. */
static double colour(const float *rgb, int c)
{
    const double r = (double)rgb[0], g = (double)rgb[1], b = (double)rgb[2];
    return c == 0 ? r + g + b : c == 1 ? r - b : r - 2 * g + b;
}

/* Mean and standard deviation of a colour over the image. */
static void measure(double *mean, double *deviation, const float *square, int c)
{
    double sum = 0, squares = 0;
    for (int i = 0; i < PIXELS; i++)
        sum += colour(square + (ptrdiff_t)3 * i, c);
    *mean = sum / PIXELS;
    for (int i = 0; i < PIXELS; i++)
        squares += pow(colour(square + (ptrdiff_t)3 * i, c) - *mean, 2);
    *deviation = sqrt(squares / PIXELS);
}

void patches_cut(float *patches, const float *square)
{
    static const double none = 1e-6; /* what rounding leaves of a colour that does not vary */
    for (int c = 0; c < 3; c++) {
        double mean, deviation;
        measure(&mean, &deviation, square, c);
        const double factor = deviation > none ? 1 / deviation : 0;
        for (int y = 0; y < VIT_SIDE; y++)
            for (int x = 0; x < VIT_SIDE; x++) {
                const int patch = y / VIT_PATCH * VIT_GRID + x / VIT_PATCH;
                const int within = c * FREQUENCIES + y % VIT_PATCH * VIT_PATCH + x % VIT_PATCH;
                const float *rgb = square + (ptrdiff_t)3 * (y * VIT_SIDE + x);
                patches[patch * VIT_WIDTH + within] = (float)(factor * (colour(rgb, c) - mean));
            }
    }
}

/* The orthonormal DCT-II of VIT_PATCH points. */
static double cosine(int frequency, int x)
{
    return sqrt((frequency == 0 ? 1.0 : 2.0) / VIT_PATCH) *
           cos(M_PI * frequency * (2 * x + 1) / (2.0 * VIT_PATCH));
}

void patches_embedding(float *basis)
{
    memset(basis, 0, sizeof *basis * VIT_WIDTH * VIT_WIDTH);
    for (int c = 0; c < 3; c++)
        for (int pixel = 0; pixel < FREQUENCIES; pixel++)
            for (int frequency = 0; frequency < FREQUENCIES; frequency++) {
                const int row = c * FREQUENCIES + pixel, column = c * FREQUENCIES + frequency;
                basis[row * VIT_WIDTH + column] =
                    (float)(cosine(frequency / VIT_PATCH, pixel / VIT_PATCH) *
                            cosine(frequency % VIT_PATCH, pixel % VIT_PATCH));
            }
}

/* Of four columns two follow the row and two the column of the patch; from four to four more
 * slowly. Weak beside the pixels, whose mean square is 1: positions decide between patches that
 * look alike. */
void patches_add_positions(float *x)
{
    static const double strength = 0.3;
    for (int patch = 0; patch < VIT_PATCHES; patch++)
        for (int i = 0; i < VIT_WIDTH; i++) {
            const int place = i % 4 < 2 ? patch / VIT_GRID : patch % VIT_GRID;
            const int four = i / 4;
            const double angle = place / pow(10000.0, 4.0 * four / VIT_WIDTH);
            x[patch * VIT_WIDTH + i] +=
                (float)(strength * (i % 2 == 0 ? sin(angle) : cos(angle)));
        }
}

void patches_projection(float *weights)
{
    enum { SEED = 1, TENSOR = 1 };
    const float factor = sqrtf(0.75f / VIT_WIDTH); /* random_fill()'s variance is 4/3 */
    random_fill(weights, (size_t)VIT_WIDTH * 3 * VIT_WIDTH, SEED, TENSOR);
    for (int i = 0; i < VIT_WIDTH * 3 * VIT_WIDTH; i++)
        weights[i] *= factor;
    for (int row = 0; row < VIT_WIDTH; row++) {
        float *of_row = weights + (ptrdiff_t)3 * VIT_WIDTH * row;
        memcpy(of_row + VIT_WIDTH, of_row, VIT_WIDTH * sizeof *weights);
    }
}

void patches_split_heads(float *heads, const float *qkv, int part)
{
    for (int head = 0; head < VIT_HEADS; head++)
        for (int patch = 0; patch < VIT_PATCHES; patch++)
            memcpy(heads + (ptrdiff_t)(head * VIT_PATCHES + patch) * VIT_HEAD_DIM,
                   qkv + (ptrdiff_t)(patch * 3 + part) * VIT_WIDTH +
                       (ptrdiff_t)head * VIT_HEAD_DIM,
                   VIT_HEAD_DIM * sizeof *heads);
}

void patches_normalise(float *heads)
{
    for (int row = 0; row < VIT_HEADS * VIT_PATCHES; row++) {
        float *x = heads + (ptrdiff_t)row * VIT_HEAD_DIM;
        double squares = 0;
        for (int i = 0; i < VIT_HEAD_DIM; i++)
            squares += (double)x[i] * (double)x[i];
        const double factor = squares > 0 ? sqrt(VIT_HEAD_DIM / squares) : 0.0;
        for (int i = 0; i < VIT_HEAD_DIM; i++)
            x[i] = (float)(factor * (double)x[i]);
    }
}
