/* lessons/common/online_softmax: the running maximum and sum, and the merging of parts.
 *
 * Protects: after every element m and l are those of the definition; parts merged in any order
 * and grouping too; -inf and the empty part change nothing; large scores stay finite.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "common/core_fixture.h"
#include "common/online_softmax.h"

enum { COUNT = 500, PARTS = 7 };

/* Each element adds a rounding of the sum, one of the rescaling and two of expf. */
static bool agrees(struct softmax_state got, struct softmax_state want, int count)
{
    return got.m == want.m &&
           fabs((double)got.l - (double)want.l) <= 4 * count * 0x1p-24 * (double)want.l;
}

/* A third of the elements is -inf, the first ones too; scale is that of the others. */
static void fill(float *x, int count, float scale, struct rng *rng)
{
    for (int n = 0; n < count; n++)
        x[n] = n < 3 || random_int(rng, 0, 2) == 0 ? -INFINITY : scale * random_value(rng);
}

static void test_the_judge(void **state)
{
    const struct softmax_state right = {1.0f, 2.0f};
    (void)state;
    assert_true(agrees(right, right, 1));
    assert_false(agrees((struct softmax_state){NAN, 2.0f}, right, 100));
    assert_false(agrees((struct softmax_state){1.0f, NAN}, right, 100));
    assert_false(agrees((struct softmax_state){1.0f, 2.001f}, right, 10));
    assert_false(agrees((struct softmax_state){1.0f, 0.0f}, right, 100));
}

static void test_every_prefix(void **state)
{
    static const float scales[] = {1.0f, 50.0f, 1e4f, 1e37f};
    struct rng rng = {21};
    (void)state;
    for (size_t k = 0; k < sizeof scales / sizeof scales[0]; k++) {
        struct softmax_state s = softmax_state_empty();
        float x[COUNT];
        fill(x, COUNT, scales[k], &rng);
        for (int n = 0; n < COUNT; n++) {
            const float before = s.m, rescale = softmax_state_add(&s, x[n]);
            const struct softmax_state want = softmax_state_defined(x, n + 1);
            if (!agrees(s, want, n + 1))
                fail_msg("scale %g, element %d: m %g, l %g, not %g, %g", (double)scales[k], n,
                         (double)s.m, (double)s.l, (double)want.m, (double)want.l);
            assert_true(s.m == before ? rescale == 1.0f || before == -INFINITY
                                      : rescale < 1.0f);
        }
    }
}

static struct softmax_state part_of(const float *x, int part)
{
    struct softmax_state s = softmax_state_empty();
    for (int n = part * COUNT / PARTS; n < (part + 1) * COUNT / PARTS; n++)
        softmax_state_add(&s, x[n]);
    return s;
}

static void test_parts_merge_in_any_order(void **state)
{
    struct rng rng = {22};
    float x[COUNT];
    (void)state;
    fill(x, COUNT, 30.0f, &rng);
    for (int n = 0; n < COUNT / PARTS; n++)
        x[n] = -INFINITY; /* a part that is empty, as a masked one */
    const struct softmax_state want = softmax_state_defined(x, COUNT);
    struct softmax_state forward = softmax_state_empty(), backward = forward, part[PARTS];
    for (int n = 0; n < PARTS; n++) {
        part[n] = part_of(x, n);
        forward = softmax_state_merge(forward, part[n]);
        backward = softmax_state_merge(part_of(x, PARTS - 1 - n), backward);
    }
    for (int width = 1; width < PARTS; width *= 2)
        for (int n = 0; n + width < PARTS; n += 2 * width)
            part[n] = softmax_state_merge(part[n], part[n + width]);
    assert_true(agrees(forward, want, COUNT));
    assert_true(agrees(backward, want, COUNT));
    assert_true(agrees(part[0], want, COUNT));
}

static void test_nothing_and_infinities(void **state)
{
    const struct softmax_state none = softmax_state_empty(), some = {3.0f, 1.5f};
    const float infinities[2] = {-INFINITY, -INFINITY};
    struct softmax_state s = none;
    (void)state;
    assert_true(softmax_state_add(&s, -INFINITY) == 0.0f);
    assert_true(s.m == -INFINITY && s.l == 0.0f);
    s = softmax_state_merge(none, none);
    assert_true(s.m == -INFINITY && s.l == 0.0f);
    s = softmax_state_merge(none, some);
    assert_true(s.m == some.m && s.l == some.l);
    s = softmax_state_merge(some, none);
    assert_true(s.m == some.m && s.l == some.l);
    s = softmax_state_defined(infinities, 2);
    assert_true(s.m == -INFINITY && s.l == 0.0f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_judge),
        cmocka_unit_test(test_every_prefix),
        cmocka_unit_test(test_parts_merge_in_any_order),
        cmocka_unit_test(test_nothing_and_infinities),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
