/* flashlab times: the model of time beside what an H200 took, row by row and by kind. */
#include <inttypes.h>
#include <stdio.h>

#include "common/options.h"
#include "common/output_file.h"
#include "common/report.h"
#include "common/time_rows.h"
#include "flashlab.h"

static const struct usage usage = {
    .program = "flashlab times",
    .summary = "Lists every time recorded on an H200 beside the estimate of the model of time\n"
               "(sim/models/time.h): our CUDA kernels, FlashAttention-2 and cuDNN.",
    .options = OPTION_BIT(OPTION_JSON) | OPTION_BIT(OPTION_CSV),
};

static double us(double seconds)
{
    return 1e6 * seconds;
}

static void print_row(const struct time_row *row)
{
    printf("%-18s %-34s %9.1f %9.1f %+5.0f %s\n", row->kernel, row->shape, us(row->measured),
           us(row->estimate), 100 * time_row_error(row), row->longest);
}

static void print_summary(const struct time_rows *rows)
{
    printf("%-20s %4s %7s %7s\n", "", "", "median", "within");
    printf("%-20s %4s %7s %7s  %s\n", "kind", "runs", "error %", "25 %", "worst");
    for (int kind = 0; kind <= TIME_KINDS; kind++) {
        const struct time_errors e = time_rows_errors(rows, (enum time_kind)kind);
        if (e.rows > 0)
            printf("%-20s %4d %7.1f %7d  %+.0f %%: %s\n", time_kind_name((enum time_kind)kind),
                   e.rows, 100 * e.median, e.within_quarter, 100 * e.worst, e.where->kernel);
    }
}

static void print_all(const struct time_rows *rows)
{
    for (int kind = 0; kind < TIME_KINDS; kind++) {
        printf("%s\n%-18s %-34s %9s %9s %5s %s\n", time_kind_name((enum time_kind)kind),
               "kernel", "shape", "us", "model", "err%", "longest");
        for (int i = 0; i < rows->count; i++)
            if (rows->row[i].kind == (enum time_kind)kind)
                print_row(&rows->row[i]);
        printf("\n");
    }
    print_summary(rows);
}

static void print_json(const struct time_rows *rows)
{
    cJSON *json = cJSON_CreateArray();
    for (int i = 0; i < rows->count; i++) {
        const struct time_row *row = &rows->row[i];
        cJSON *object = cJSON_CreateObject();
        cJSON_AddItemToArray(json, object);
        cJSON_AddStringToObject(object, "kind", time_kind_name(row->kind));
        cJSON_AddStringToObject(object, "kernel", row->kernel);
        cJSON_AddStringToObject(object, "shape", row->shape);
        cJSON_AddNumberToObject(object, "measured_us", us(row->measured));
        cJSON_AddNumberToObject(object, "estimate_us", us(row->estimate));
        cJSON_AddNumberToObject(object, "overlapped_us", us(row->overlapped));
        cJSON_AddNumberToObject(object, "in_turn_us", us(row->in_turn));
        cJSON_AddStringToObject(object, "longest", row->longest);
    }
    report_write_json(json);
}

static enum status write_csv(const struct time_rows *rows, const char *path,
                             struct error *error)
{
    struct output_file csv;
    if (output_open(&csv, "--csv", path, error))
        return error->status;
    fprintf(csv.stream, "kind,kernel,shape,measured_us,estimate_us,overlapped_us,in_turn_us,"
                        "longest\n");
    for (int i = 0; i < rows->count; i++) {
        const struct time_row *row = &rows->row[i];
        fprintf(csv.stream, "\"%s\",%s,%s,%.3f,%.3f,%.3f,%.3f,%s\n", time_kind_name(row->kind),
                row->kernel, row->shape, us(row->measured), us(row->estimate),
                us(row->overlapped), us(row->in_turn), row->longest);
    }
    return output_commit(&csv, error);
}

int flashlab_times(int argc, char **argv)
{
    struct options o;
    struct error error = {0};
    struct time_rows rows;
    options_init(&o);
    const enum options_result result = options_parse(&o, &usage, argc, argv);
    if (result != OPTIONS_RUN)
        return options_exit_status(result);
    if (time_rows_read(&rows, &error))
        return usage_error(&usage, &error);
    if (o.csv && write_csv(&rows, o.csv, &error)) {
        time_rows_free(&rows);
        return usage_error(&usage, &error);
    }
    if (o.json)
        print_json(&rows);
    else
        print_all(&rows);
    time_rows_free(&rows);
    return exit_status(&usage, EXIT_OK);
}
