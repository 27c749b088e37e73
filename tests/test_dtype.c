/* Conversions of every element type against the definition of its format.
 *
 * The expected values come from code_value(), which states what a code means in double
 * arithmetic, (-1)^s * 2^(e - bias) * (1 + m / 2^k), and shares nothing with sim/core/dtype.c.
 * Decoding is checked for all codes. Encoding and rounding are checked on lists of (float,
 * expected code): all codes, the neighbourhood of every midpoint of adjacent values, the ends
 * of the range, and random floats whose expected code is searched for among all values.
 *
 * The judge of these lists can plant a fault in the results, which shows that it catches it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "core/dtype.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

/* A format as its specification gives it: bits of the code and of its fields, exponent bias. */
struct layout {
    enum dtype dtype;
    int bits, exponent_bits, mantissa_bits, bias;
    bool top_exponent_special; /* the largest exponent means infinity or NaN */
    bool saturates;            /* overflow becomes the largest value, not infinity */
    unsigned max_code;         /* code of the largest value */
};

static const struct layout layouts[] = {
    {DTYPE_F16, 16, 5, 10, 15, true, false, 0x7BFF},
    {DTYPE_BF16, 16, 8, 7, 127, true, false, 0x7F7F},
    {DTYPE_E4M3, 8, 4, 3, 7, false, true, 0x7E},
    {DTYPE_E5M2, 8, 5, 2, 15, true, true, 0x7B},
};

static unsigned sign_code(const struct layout *f)
{
    return 1u << (f->bits - 1);
}

/* What a code means. */
static double code_value(const struct layout *f, unsigned code)
{
    const int top = (1 << f->exponent_bits) - 1;
    const int e = (int)(code >> f->mantissa_bits) & top;
    const int m = (int)code & ((1 << f->mantissa_bits) - 1);
    const double sign = code & sign_code(f) ? -1.0 : 1.0;
    if (e == top && (f->top_exponent_special ? m != 0 : m == (1 << f->mantissa_bits) - 1))
        return NAN;
    if (e == top && f->top_exponent_special)
        return sign * INFINITY;
    if (e == 0)
        return sign * ldexp(m, 1 - f->bias - f->mantissa_bits);
    return sign * ldexp(1.0 + ldexp(m, -f->mantissa_bits), e - f->bias);
}

/* What a value too large becomes: the code of infinity follows that of the largest value. */
static unsigned overflow_code(const struct layout *f)
{
    return f->saturates ? f->max_code : f->max_code + 1;
}

/* The value that would follow the largest one if the exponent had no end. */
static double beyond_max(const struct layout *f)
{
    return 2 * code_value(f, f->max_code) - code_value(f, f->max_code - 1);
}

/* The same number, with the same sign of zero; where NaN is due, any quiet one. */
static bool same_value(float got, double want)
{
    uint32_t bits;
    memcpy(&bits, &got, sizeof bits);
    if (isnan(want))
        return (bits & 0x7fc00000) == 0x7fc00000;
    return got == want && !signbit(got) == !signbit(want);
}

/* The same code; or any two NaN, since the formats do not say which NaN. */
static bool same_code(const struct layout *f, unsigned got, unsigned want)
{
    return got == want || (isnan(code_value(f, want)) && isnan(code_value(f, got)));
}

/* Floats, the codes that they must become, and what dtype.c makes of them. */
enum { CASES_MOST = 3 << 16 }; /* three floats a code */
struct cases {
    size_t count;
    float x[CASES_MOST];
    unsigned want[CASES_MOST];
    _Alignas(uint16_t) unsigned char codes[2 * CASES_MOST];
    float rounded[CASES_MOST];
};

static void add_case(struct cases *c, float x, unsigned want)
{
    assert_true(c->count < CASES_MOST);
    c->x[c->count] = x;
    c->want[c->count++] = want;
}

/* x and -x, whose codes must differ only in the sign bit. */
static void add_both_signs(struct cases *c, const struct layout *f, double x, unsigned want)
{
    add_case(c, (float)x, want);
    add_case(c, (float)-x, want | sign_code(f));
}

/* What a broken conversion might return. */
enum fault {
    FAULT_NONE,
    FAULT_CODE_OFF_BY_ONE, /* its last bit flipped */
    FAULT_CODE_CONSTANT,
    FAULT_VALUE_NAN,
    FAULT_VALUE_NEXT, /* the next float: as if a value of another format */
    FAULT_TIES_AWAY,  /* from zero: visible at midpoints only */
    FAULT_COUNT
};

static void plant(enum fault fault, enum dtype dtype, float x, unsigned *code, float *value)
{
    const float away = nextafterf(x, x < 0 ? -INFINITY : INFINITY);
    if (fault == FAULT_CODE_OFF_BY_ONE)
        *code ^= 1;
    else if (fault == FAULT_CODE_CONSTANT)
        *code = 0x38;
    else if (fault == FAULT_VALUE_NAN)
        *value = NAN;
    else if (fault == FAULT_VALUE_NEXT)
        *value = nextafterf(*value, 2.0f);
    else if (fault == FAULT_TIES_AWAY)
        dtype_round(value, dtype, &away, 1);
}

/* Element i of codes of 1 or 2 bytes; little-endian, as is every host of a GPU. */
static unsigned code_at(const unsigned char *codes, size_t bytes, size_t i)
{
    return codes[i * bytes] | (bytes == 2 ? codes[2 * i + 1] * 256u : 0u);
}

/* Counts the cases whose code is wrong or whose rounding is not the value of that code. */
static int count_mistakes(const struct layout *f, struct cases *c, enum fault fault)
{
    const size_t bytes = (size_t)f->bits / 8;
    dtype_encode(c->codes, f->dtype, c->x, c->count);
    dtype_round(c->rounded, f->dtype, c->x, c->count);
    int mistakes = 0;
    for (size_t i = 0; i < c->count; i++) {
        unsigned code = code_at(c->codes, bytes, i);
        plant(fault, f->dtype, c->x[i], &code, &c->rounded[i]);
        const bool right = same_code(f, code, c->want[i]) &&
                           same_value(c->rounded[i], code_value(f, c->want[i]));
        if (!right && mistakes++ == 0 && fault == FAULT_NONE)
            print_error("%s(%a): code %#x, rounded %a, expected code %#x\n",
                        dtype_name(f->dtype), c->x[i], code, c->rounded[i], c->want[i]);
    }
    return mistakes;
}

/* Every value encodes to the code it came from; infinity to itself or to the largest value. */
static void add_all_codes(struct cases *c, const struct layout *f)
{
    for (unsigned code = 0; code < 1u << f->bits; code++) {
        const double value = code_value(f, code);
        add_case(c, (float)value,
                 isinf(value) ? overflow_code(f) | (code & sign_code(f)) : code);
    }
}

/* Half-way between neighbours: to the even code. One float to either side: to the nearer. */
static void add_midpoints(struct cases *c, const struct layout *f)
{
    for (unsigned code = 0; code < f->max_code; code++) {
        const float middle = (float)((code_value(f, code) + code_value(f, code + 1)) / 2);
        add_both_signs(c, f, middle, code % 2 == 0 ? code : code + 1);
        add_both_signs(c, f, nextafterf(middle, 0.0f), code);
        add_both_signs(c, f, nextafterf(middle, INFINITY), code + 1);
    }
}

/* Beyond the largest value, below the smallest, and what is no number. */
static void add_ends(struct cases *c, const struct layout *f)
{
    const float max = (float)code_value(f, f->max_code);
    const float limit = (float)((max + beyond_max(f)) / 2); /* IEEE 754: infinite from here */
    add_both_signs(c, f, nextafterf(max, INFINITY), f->max_code);
    add_both_signs(c, f, nextafterf(limit, 0.0f), f->max_code);
    add_both_signs(c, f, limit, overflow_code(f));
    add_both_signs(c, f, nextafterf(limit, INFINITY), overflow_code(f));
    add_both_signs(c, f, FLT_MAX, overflow_code(f));
    add_both_signs(c, f, INFINITY, overflow_code(f));
    add_both_signs(c, f, 0.0, 0);
    add_both_signs(c, f, FLT_TRUE_MIN, 0);
    add_both_signs(c, f, code_value(f, 1) / 4, 0);
    add_both_signs(c, f, NAN, sign_code(f) - 1);
    add_case(c, __builtin_nansf(""), sign_code(f) - 1);
}

/* The code nearest to x >= 0, by distance to every value, the even one of two equally near.
 * values[max_code + 2] ends with beyond_max(). The two distances that matter are exact in
 * double: x has 24 bits and lies within a step of the value. */
static unsigned nearest_code(const struct layout *f, const double *values, double x)
{
    unsigned best = 0;
    double least = x;
    for (unsigned code = 1; code <= f->max_code + 1; code++) {
        const double distance = fabs(values[code] - x);
        if (distance < least || (distance == least && code % 2 == 0)) {
            best = code;
            least = distance;
        }
    }
    return best > f->max_code ? overflow_code(f) : best;
}

static uint32_t next_random(uint64_t *state) /* splitmix64 */
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return (uint32_t)(z >> 32);
}

/* Random mantissas; half of the exponents are any of float's, half are the format's. */
static void add_random(struct cases *c, const struct layout *f)
{
    double values[1 << 15];
    for (unsigned code = 0; code <= f->max_code; code++)
        values[code] = code_value(f, code);
    values[f->max_code + 1] = beyond_max(f);
    uint64_t state = 20240607;
    const int lowest = -f->bias - f->mantissa_bits;
    const int exponents = (1 << f->exponent_bits) + f->mantissa_bits;
    for (int i = 0; i < 2000; i++) {
        const float mantissa = ldexpf((float)(next_random(&state) >> 8 | 1u << 23), -23);
        const int any = (int)(next_random(&state) % 277) - 149;
        const int near = (int)(next_random(&state) % (unsigned)exponents) + lowest;
        const float x = ldexpf(mantissa, i % 2 ? any : near);
        add_both_signs(c, f, x, isinf(x) ? overflow_code(f) : nearest_code(f, values, x));
    }
}

/* Every list passes as it is, and catches every fault that is planted in the results. */
static void test_encoding_and_rounding_and_every_fault(void **state)
{
    static void (*const lists[])(struct cases * c, const struct layout *f) = {
        add_all_codes, add_midpoints, add_ends, add_random};
    static struct cases c;
    (void)state;
    for (size_t k = 0; k < LENGTH(layouts) * LENGTH(lists); k++) {
        const struct layout *f = &layouts[k / LENGTH(lists)];
        c.count = 0;
        lists[k % LENGTH(lists)](&c, f);
        for (enum fault fault = FAULT_NONE; fault < FAULT_COUNT; fault++) {
            if (fault == FAULT_TIES_AWAY && lists[k % LENGTH(lists)] != add_midpoints)
                continue;
            const int mistakes = count_mistakes(f, &c, fault);
            if ((fault == FAULT_NONE) != (mistakes == 0))
                fail_msg("%s, list %zu, fault %d: %d mistakes", dtype_name(f->dtype),
                         k % LENGTH(lists), fault, mistakes);
        }
    }
}

static void test_every_code_decodes_to_its_value(void **state)
{
    (void)state;
    for (const struct layout *f = layouts; f < layouts + LENGTH(layouts); f++) {
        const unsigned count = 1u << f->bits;
        const size_t bytes = (size_t)f->bits / 8;
        _Alignas(float) unsigned char codes[2 << 16];
        float decoded[1 << 16];
        for (unsigned code = 0; code < count; code++)
            memcpy(codes + code * bytes, &code, bytes);
        dtype_decode(decoded, f->dtype, codes, count);
        for (unsigned code = 0; code < count; code++) {
            if (!same_value(decoded[code], code_value(f, code)))
                fail_msg("%s code %#x is %a", dtype_name(f->dtype), code, decoded[code]);
        }
    }
}

/* Codes known from elsewhere, so that code_value() is not the only authority. */
static void test_known_codes(void **state)
{
    static const struct {
        enum dtype dtype;
        unsigned code;
        float x;
    } known[] = {
        {DTYPE_F16, 0x2E66, 0.1f},     {DTYPE_F16, 0x3555, 1.0f / 3},
        {DTYPE_F16, 0xC000, -2.0f},    {DTYPE_F16, 0x7BFF, 65519.996f},
        {DTYPE_F16, 0x7C00, 65520.0f}, {DTYPE_F16, 0x0001, 0x1p-24f},
        {DTYPE_BF16, 0x3DCD, 0.1f},    {DTYPE_BF16, 0x4049, 3.14159274f},
        {DTYPE_BF16, 0x7F80, FLT_MAX}, {DTYPE_BF16, 0x0001, 0x1p-133f},
        {DTYPE_E4M3, 0x7E, 448.0f},    {DTYPE_E4M3, 0xFE, -464.0f},
        {DTYPE_E4M3, 0x1D, 0.1f},      {DTYPE_E4M3, 0x01, 0x1p-9f},
        {DTYPE_E5M2, 0x2E, 0.1f},      {DTYPE_E5M2, 0x7B, 57344.0f},
        {DTYPE_E5M2, 0xFB, -61440.0f}, {DTYPE_E5M2, 0x7B, INFINITY},
    };
    (void)state;
    for (size_t i = 0; i < LENGTH(known); i++) {
        _Alignas(uint16_t) unsigned char got[2];
        dtype_encode(got, known[i].dtype, &known[i].x, 1);
        const unsigned code = code_at(got, (size_t)dtype_bytes(known[i].dtype), 0);
        if (code != known[i].code)
            fail_msg("%s(%a) is %#x", dtype_name(known[i].dtype), known[i].x, code);
    }
}

static void test_names_sizes_and_epsilons(void **state)
{
    static const char *names[DTYPE_COUNT] = {"f32", "f16", "bf16", "e4m3", "e5m2"};
    static const int bytes[DTYPE_COUNT] = {4, 2, 2, 1, 1};
    static const float epsilons[DTYPE_COUNT] = {0x1p-23f, 0x1p-10f, 0x1p-7f, 0x1p-3f, 0x1p-2f};
    static const char *unknown[] = {"", "f", "f32 ", "F32", "f160", "fp8"};
    (void)state;
    for (enum dtype d = DTYPE_F32; d < DTYPE_COUNT; d++) {
        enum dtype parsed = DTYPE_COUNT;
        assert_true(dtype_parse(&parsed, names[d]));
        assert_int_equal(parsed, d);
        assert_string_equal(dtype_name(d), names[d]);
        assert_int_equal(dtype_bytes(d), bytes[d]);
        assert_true(dtype_epsilon(d) == epsilons[d]);
        for (size_t i = 0; i < LENGTH(unknown); i++) {
            assert_false(dtype_parse(&parsed, unknown[i]));
            assert_int_equal(parsed, d);
        }
    }
}

/* Any count: the same codes, nothing written past them, and dtype_round, in place too, equal
 * to decode(encode(x)) in every bit. F32 keeps all bits, those of a NaN too. */
static void test_counts_aliasing_and_bits(void **state)
{
    enum { MOST = 72, SIZE = MOST * sizeof(float) };
    (void)state;
    float x[MOST] = {-0.0f,        INFINITY, -INFINITY, -NAN, __builtin_nansf(""),
                     FLT_TRUE_MIN, FLT_MAX};
    for (int i = 7; i < MOST; i++)
        x[i] = ldexpf(1.0f + 0.013f * (float)i, i % 37 - 20);
    _Alignas(float) unsigned char all[SIZE], codes[SIZE];
    for (enum dtype d = DTYPE_F32; d < DTYPE_COUNT; d++) {
        dtype_encode(all, d, x, MOST);
        for (size_t count = 0; count <= MOST; count++) {
            float decoded[MOST], rounded[MOST];
            memset(codes, 0xA5, SIZE);
            memset(decoded, 0xA5, SIZE);
            memset(rounded, 0xA5, SIZE);
            dtype_encode(codes, d, x, count);
            dtype_decode(decoded, d, codes, count);
            dtype_round(rounded, d, x, count);
            const size_t bytes = count * (size_t)dtype_bytes(d);
            assert_memory_equal(codes, all, bytes);
            for (size_t i = bytes; i < SIZE; i++)
                assert_int_equal(codes[i], 0xA5);
            assert_memory_equal(rounded, decoded, SIZE);
            memcpy(rounded, x, count * sizeof *x);
            dtype_round(rounded, d, rounded, count);
            assert_memory_equal(rounded, decoded, SIZE);
            if (d == DTYPE_F32)
                assert_memory_equal(decoded, x, count * sizeof *x);
        }
    }
}

static void test_comparisons_reject_what_is_wrong(void **state)
{
    const struct layout *e4m3 = &layouts[2];
    (void)state;
    assert_true(same_value(1.5f, 1.5) && same_value(NAN, -NAN) && same_value(-0.0f, -0.0));
    assert_false(same_value(NAN, 1.5) || same_value(1.5f, NAN) || same_value(NAN, INFINITY));
    assert_false(same_value(0.0f, -0.0) || same_value(INFINITY, -INFINITY));
    assert_false(same_value(1.0f, nextafterf(1.0f, 2.0f)) ||
                 same_value(__builtin_nansf(""), NAN));
    assert_true(same_code(e4m3, 0x7E, 0x7E) && same_code(e4m3, 0xFF, 0x7F));
    assert_false(same_code(e4m3, 0x7F, 0x7E) || same_code(e4m3, 0x7E, 0x7F));
    assert_false(same_code(e4m3, 0x39, 0x38) || same_code(e4m3, 0x80, 0x00));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_sizes_and_epsilons),
        cmocka_unit_test(test_known_codes),
        cmocka_unit_test(test_every_code_decodes_to_its_value),
        cmocka_unit_test(test_encoding_and_rounding_and_every_fault),
        cmocka_unit_test(test_counts_aliasing_and_bits),
        cmocka_unit_test(test_comparisons_reject_what_is_wrong),
    };
    return cmocka_run_group_tests_name("dtype", tests, NULL, NULL);
}
