/* The online softmax's running maximum and sum (Milakov & Gimelshein 2018, Algorithm 3), one
 * element or one part of a row at a time, in fp32 as kernels have it.
 *
 * Interface:
 *   struct softmax_state s = softmax_state_empty();
 *   softmax_state_add(&s, x[0]); ...         s.m = max of x, s.l = sum of exp(x - s.m)
 *   s = softmax_state_merge(s, other)        as if other's elements had been added too
 */
#ifndef FLASHLAB_LESSONS_ONLINE_SOFTMAX_H
#define FLASHLAB_LESSONS_ONLINE_SOFTMAX_H

struct softmax_state {
    float m; /* the largest element so far; -inf: none, or all of them -inf */
    float l; /* sum of exp(x - m) over the elements so far */
};

/* Of no element: merging with it changes nothing. */
struct softmax_state softmax_state_empty(void);

/* Adds an element, which may be -inf. Returns the factor by which the old sum was rescaled. */
float softmax_state_add(struct softmax_state *s, float x);

/* Of both sets of elements. In exact arithmetic associative and commutative. */
struct softmax_state softmax_state_merge(struct softmax_state a, struct softmax_state b);

/* Of the count elements of x, by the definition: maximum first, then the sum, in float64. */
struct softmax_state softmax_state_defined(const float *x, int count);

#endif
