#include "common/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/dram_report.h"
#include "models/io.h"

void report_add_integer(cJSON *object, const char *key, int64_t value)
{
    char digits[32];
    snprintf(digits, sizeof digits, "%" PRId64, value);
    cJSON_AddRawToObject(object, key, digits);
}

void report_write_json(cJSON *json)
{
    char *text = cJSON_Print(json);
    CHECK(text, "no memory to print JSON");
    puts(text);
    free(text);
    cJSON_Delete(json);
}

char *report_grouped(char *buffer, int64_t value)
{
    char digits[24];
    const int length = snprintf(digits, sizeof digits, "%" PRId64, value);
    char *out = buffer;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0 && digits[i - 1] != '-')
            *out++ = ',';
        *out++ = digits[i];
    }
    *out = '\0';
    return buffer;
}

static const char *const direction_names[DIRECTION_COUNT] = {"read", "written", "reduced"};

static void add_traffic(cJSON *object, const struct traffic *traffic)
{
    char key[32];
    for (int k = 0; k < DIRECTION_COUNT; k++) {
        snprintf(key, sizeof key, "%s_bytes", direction_names[k]);
        report_add_integer(object, key, traffic->of[k].bytes);
    }
    for (int k = 0; k < DIRECTION_COUNT; k++) {
        snprintf(key, sizeof key, "%s_sectors", direction_names[k]);
        report_add_integer(object, key, traffic->of[k].sectors);
    }
}

static bool moved(const struct traffic *t)
{
    return t->of[DIRECTION_READ].bytes || t->of[DIRECTION_WRITE].bytes ||
           t->of[DIRECTION_REDUCE].bytes;
}

static void add_account(cJSON *parent, const char *key, const struct account *account)
{
    cJSON *object = cJSON_AddObjectToObject(parent, key);
    const struct traffic total = account_total(account);
    add_traffic(object, &total);
    cJSON *tensors = cJSON_AddObjectToObject(object, "tensors");
    for (int i = 0; i < account->tensor_count; i++)
        if (moved(&account->tensor[i].traffic))
            add_traffic(cJSON_AddObjectToObject(tensors, account->tensor[i].name),
                        &account->tensor[i].traffic);
    cJSON *flops = cJSON_AddObjectToObject(object, "flops");
    report_add_integer(flops, "matrix", account->flops.matrix);
    report_add_integer(flops, "other", account->flops.other);
    report_add_integer(flops, "exp", account->flops.exp);
}

void report_add_options(cJSON *parent, const struct simulation *s)
{
    const struct attention *a = &s->attention;
    cJSON *o = cJSON_AddObjectToObject(parent, "options");
    report_add_integer(o, "batch", a->batch);
    report_add_integer(o, "heads_q", a->heads_q);
    report_add_integer(o, "heads_kv", a->heads_kv);
    report_add_integer(o, "seqlen_q", a->seqlen_q);
    report_add_integer(o, "seqlen_k", a->seqlen_k);
    report_add_integer(o, "head_dim", a->head_dim);
    report_add_integer(o, "head_dim_v", a->head_dim_v);
    cJSON_AddNumberToObject(o, "scale", (double)a->scale);
    cJSON_AddStringToObject(o, "mask", mask_name(a->mask));
    cJSON_AddStringToObject(o, "dtype", dtype_name(a->dtype));
    report_add_integer(o, "block_q", a->block_q);
    report_add_integer(o, "block_k", a->block_k);
    cJSON_AddBoolToObject(o, "tiled_gemm", a->tiled_gemm);
    cJSON_AddBoolToObject(o, "tma", s->tma);
    cJSON_AddStringToObject(o, "machine", s->machine->name);
}

static void print_json(const struct simulation *s, const struct l2_traffic *dram,
                       const struct account *simulated, const struct account *predicted,
                       bool equal)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "algorithm", algorithm_name(s->algorithm));
    report_add_options(json, s);
    add_account(json, "simulated", simulated);
    add_account(json, "predicted", predicted);
    if (dram)
        dram_add_json(json, dram);
    cJSON_AddBoolToObject(json, "equal", equal);
    report_write_json(json);
}

static void print_problem(const struct simulation *s)
{
    const struct attention *a = &s->attention;
    printf("%s on %s: batch %d, heads %d/%d, N %d/%d, d %d", algorithm_name(s->algorithm),
           s->machine->name, a->batch, a->heads_q, a->heads_kv, a->seqlen_q, a->seqlen_k,
           a->head_dim);
    if (a->head_dim_v != a->head_dim)
        printf("/%d", a->head_dim_v);
    printf(", %s\nBr %d, Bc %d, mask %s, scale %.6g%s%s\n\n", dtype_name(a->dtype), a->block_q,
           a->block_k, mask_name(a->mask), (double)a->scale,
           a->tiled_gemm ? ", tiled GEMMs" : "", s->tma ? ", copy engine (TMA)" : "");
}

static void print_row(const char *name, const struct traffic *t)
{
    char read[32], written[32], read_sectors[32], written_sectors[32];
    printf("%-10s %17s %17s %16s %16s\n", name, report_grouped(read, t->of[0].bytes),
           report_grouped(written, t->of[1].bytes),
           report_grouped(read_sectors, t->of[0].sectors),
           report_grouped(written_sectors, t->of[1].sectors));
}

static void print_flops(const char *name, const struct flops *f)
{
    char matrix[32], other[32], exp[32];
    printf("%-10s %17s %17s %16s\n", name, report_grouped(matrix, f->matrix),
           report_grouped(other, f->other), report_grouped(exp, f->exp));
}

static void print_on_chip(const struct gpu *gpu)
{
    printf("\n%-18s %15s %17s   %s\n", "launch", "SRAM bytes", "register bytes", "grid");
    for (int i = 0; i < gpu->launch_count; i++) {
        const struct launch_record *r = &gpu->launches[i];
        char sram[32], registers[32];
        printf("%-18s %15s %17s   %d x %d x %d\n", r->name,
               report_grouped(sram, r->peak_bytes[LEVEL_SRAM]),
               report_grouped(registers, r->peak_bytes[LEVEL_REGISTERS]), r->grid.x, r->grid.y,
               r->grid.z);
    }
}

static void print_text(const struct simulation *s, const struct l2_traffic *dram,
                       const struct account *simulated, const struct account *predicted,
                       bool equal)
{
    const struct traffic total = account_total(simulated), expected = account_total(predicted);
    print_problem(s);
    printf("%-10s %17s %17s %16s %16s\n", "tensor", "bytes read", "bytes written",
           "sectors read", "sectors written");
    for (int i = 0; i < simulated->tensor_count; i++)
        if (moved(&simulated->tensor[i].traffic))
            print_row(simulated->tensor[i].name, &simulated->tensor[i].traffic);
    print_row("total", &total);
    print_row("predicted", &expected);
    printf("\n%-10s %17s %17s %16s\n", "FLOPs", "matrix", "other", "exp");
    print_flops("simulated", &simulated->flops);
    print_flops("predicted", &predicted->flops);
    print_on_chip(&s->gpu);
    if (dram)
        dram_print(dram);
    printf("\n%s simulated and predicted counts are %s\n", equal ? "PASS" : "FAIL",
           equal ? "equal, tensor by tensor" : "not equal");
}

bool report(const struct simulation *s, const struct l2_traffic *dram, bool json)
{
    const struct account simulated = gpu_account(&s->gpu);
    const struct account predicted = io_predict(s->algorithm, &s->attention, s->tma);
    const bool equal = account_equal(&simulated, &predicted);
    (json ? print_json : print_text)(s, dram, &simulated, &predicted, equal);
    return equal;
}
