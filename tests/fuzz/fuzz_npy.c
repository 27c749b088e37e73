/* Fuzzer of core/npy's parser: any bytes are either refused with a message, or give an array
 * whose shape, count and data agree. Seeds are in tests/fuzz/corpus/npy.
 *
 * libFuzzer comes with clang:
 *   clang -fsanitize=fuzzer,address,undefined ... && ./fuzz_npy tests/fuzz/corpus/npy
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "core/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_refused(const struct npy *array, enum status status,
                          const struct error *error)
{
    CHECK(status == STATUS_BAD_FILE, "status %d", (int)status);
    CHECK(error->status == status, "status %d in the error, %d returned", (int)error->status,
          (int)status);
    CHECK(strncmp(error->text, "seed.npy: ", 10) == 0, "no name in \"%s\"", error->text);
    CHECK(!array->data && array->count == 0 && array->ndim == 0, "a refused array");
    /* Whatever was in the file, the message is one printable line. */
    for (const char *c = error->text; *c; c++)
        CHECK(*c >= ' ' && *c <= '~', "byte 0x%02x in the message", (unsigned char)*c);
}

static void check_accepted(const struct npy *array, size_t size)
{
    CHECK(array->ndim >= 0 && array->ndim <= NPY_MAX_DIMS, "ndim %d", array->ndim);
    int64_t product = 1;
    for (int d = 0; d < array->ndim; d++) {
        CHECK(array->shape[d] >= 0, "shape[%d] = %lld", d, (long long)array->shape[d]);
        CHECK(!__builtin_mul_overflow(product, array->shape[d], &product), "overflow");
    }
    CHECK(array->count == product, "count %lld of a shape of %lld", (long long)array->count,
          (long long)product);
    CHECK((uint64_t)array->count <= size / 2, "%lld elements from %zu bytes",
          (long long)array->count, size);
    CHECK(array->data, "no data");
    int64_t nonfinite = 0;
    for (int64_t i = 0; i < array->count; i++)
        nonfinite += isnan(array->data[i]) || isinf(array->data[i]);
    CHECK(array->nonfinite == nonfinite, "nonfinite %lld, not %lld",
          (long long)array->nonfinite, (long long)nonfinite);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct npy array;
    struct error error;
    enum status status = npy_parse(&array, bytes, size, "seed.npy", &error);
    if (status == STATUS_OK)
        check_accepted(&array, size);
    else
        check_refused(&array, status, &error);
    npy_free(&array);
    return 0;
}
