/* CUPTI's profiler host interface is C++ only (it includes <string>), hence this file. */
#include "cuda/counters.h"

#include <algorithm>
#include <vector>

#include <cuda.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

#include "cuda/error.h"
#include "cuda/refusals.h"

enum { MAX_RANGES = 8, MAX_PASSES = 64 };

struct counters {
    CUcontext context = nullptr;
    bool initialized = false;
    CUpti_Profiler_Host_Object *host = nullptr;
    CUpti_RangeProfiler_Object *profiler = nullptr;
    std::vector<uint8_t> availability, config, image; /* read as long as the objects live */
    int wanted = 0;                                   /* metrics that were asked for */
    std::vector<const char *> metrics;                /* those that the chip has */
    std::vector<int> of; /* [metrics.size()]: which of the wanted they are */
};

static enum counters_failure failure_of(CUptiResult code)
{
    switch (code) {
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
        return COUNTERS_PRIVILEGED;
    case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
        return COUNTERS_TAKEN;
    default:
        return COUNTERS_FAILED;
    }
}

enum status counters_failed(struct error *error, int cupti_result, const char *call, int line)
{
    const CUptiResult code = (CUptiResult)cupti_result;
    const char *name = "unknown error";
    cuptiGetResultString(code, &name);
    return error_set(error, STATUS_BAD_ARGUMENT, "%s:%d: %s: %s%s", __FILE__, line, call, name,
                     counters_advice(failure_of(code)));
}

#define CUPTI_TRY(call, error)                                                                 \
    do {                                                                                       \
        const CUptiResult cupti_code = (call);                                                 \
        if (cupti_code != CUPTI_SUCCESS)                                                       \
            return counters_failed(error, cupti_code, #call, __LINE__);                        \
    } while (0)

/* The context of the runtime, through the runtime: a program that links with libcuda itself
 * does not start where there is no driver. */
static enum status find_context(CUcontext *context, struct error *error)
{
    CUDA_TRY(cudaFree(nullptr), error); /* makes the context */
    void *function = nullptr;
    cudaDriverEntryPointQueryResult found;
    CUDA_TRY(cudaGetDriverEntryPointByVersion("cuCtxGetCurrent", &function, 12000,
                                              cudaEnableDefault, &found),
             error);
    if (!function || ((CUresult(*)(CUcontext *))function)(context) != CUDA_SUCCESS)
        return error_set(error, STATUS_BAD_ARGUMENT, "no current CUDA context");
    return STATUS_OK;
}

/* Which counters of the chip this machine can read, as the host object wants to know it. */
static enum status find_availability(std::vector<uint8_t> *image, CUcontext context,
                                     struct error *error)
{
    CUpti_Profiler_GetCounterAvailability_Params get = {};
    get.structSize = CUpti_Profiler_GetCounterAvailability_Params_STRUCT_SIZE;
    get.ctx = context;
    CUPTI_TRY(cuptiProfilerGetCounterAvailability(&get), error);
    image->resize(get.counterAvailabilityImageSize);
    get.pCounterAvailabilityImage = image->data();
    CUPTI_TRY(cuptiProfilerGetCounterAvailability(&get), error);
    return STATUS_OK;
}

/* The metrics wanted, without those that the chip lacks: none before Hopper has a copy engine.
 */
static enum status find_metrics(struct counters *c, const char *const *metrics,
                                struct error *error)
{
    for (int k = 0; k < c->wanted; k++) {
        CUpti_Profiler_Host_GetMetricProperties_Params get = {};
        get.structSize = CUpti_Profiler_Host_GetMetricProperties_Params_STRUCT_SIZE;
        get.pHostObject = c->host;
        get.pMetricName = metrics[k];
        const CUptiResult code = cuptiProfilerHostGetMetricProperties(&get);
        if (code == CUPTI_ERROR_INVALID_METRIC_NAME || code == CUPTI_ERROR_INVALID_PARAMETER)
            continue;
        CUPTI_TRY(code, error);
        c->metrics.push_back(get.pMetricName);
        c->of.push_back(k);
    }
    if (c->metrics.empty())
        return error_set(error, STATUS_BAD_ARGUMENT, "this GPU has none of the counters");
    return STATUS_OK;
}

/* The host object. */
static enum status open_host(struct counters *c, struct error *error)
{
    CUpti_Device_GetChipName_Params chip = {};
    chip.structSize = CUpti_Device_GetChipName_Params_STRUCT_SIZE;
    CUPTI_TRY(cuptiDeviceGetChipName(&chip), error);
    if (find_availability(&c->availability, c->context, error))
        return error->status;
    CUpti_Profiler_Host_Initialize_Params host = {};
    host.structSize = CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE;
    host.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
    host.pChipName = chip.pChipName;
    host.pCounterAvailabilityImage = c->availability.data();
    CUPTI_TRY(cuptiProfilerHostInitialize(&host), error);
    c->host = host.pHostObject;
    return STATUS_OK;
}

/* The configuration that collects our metrics. */
static enum status configure(struct counters *c, struct error *error)
{
    CUpti_Profiler_Host_ConfigAddMetrics_Params add = {};
    add.structSize = CUpti_Profiler_Host_ConfigAddMetrics_Params_STRUCT_SIZE;
    add.pHostObject = c->host;
    add.ppMetricNames = c->metrics.data();
    add.numMetrics = c->metrics.size();
    CUPTI_TRY(cuptiProfilerHostConfigAddMetrics(&add), error);
    CUpti_Profiler_Host_GetConfigImageSize_Params size = {};
    size.structSize = CUpti_Profiler_Host_GetConfigImageSize_Params_STRUCT_SIZE;
    size.pHostObject = c->host;
    CUPTI_TRY(cuptiProfilerHostGetConfigImageSize(&size), error);
    c->config.resize(size.configImageSize);
    CUpti_Profiler_Host_GetConfigImage_Params get = {};
    get.structSize = CUpti_Profiler_Host_GetConfigImage_Params_STRUCT_SIZE;
    get.pHostObject = c->host;
    get.configImageSize = c->config.size();
    get.pConfigImage = c->config.data();
    CUPTI_TRY(cuptiProfilerHostGetConfigImage(&get), error);
    return STATUS_OK;
}

static enum status open_profiler(struct counters *c, struct error *error)
{
    CUpti_RangeProfiler_Enable_Params enable = {};
    enable.structSize = CUpti_RangeProfiler_Enable_Params_STRUCT_SIZE;
    enable.ctx = c->context;
    CUPTI_TRY(cuptiRangeProfilerEnable(&enable), error);
    c->profiler = enable.pRangeProfilerObject;
    CUpti_RangeProfiler_GetCounterDataSize_Params size = {};
    size.structSize = CUpti_RangeProfiler_GetCounterDataSize_Params_STRUCT_SIZE;
    size.pRangeProfilerObject = c->profiler;
    size.pMetricNames = c->metrics.data();
    size.numMetrics = c->metrics.size();
    size.maxNumOfRanges = MAX_RANGES;
    size.maxNumRangeTreeNodes = MAX_RANGES;
    CUPTI_TRY(cuptiRangeProfilerGetCounterDataSize(&size), error);
    c->image.resize(size.counterDataSize);
    return STATUS_OK;
}

static enum status open_all(struct counters *c, const char *const *metrics, struct error *error)
{
    if (find_context(&c->context, error))
        return error->status;
    CUpti_Profiler_Initialize_Params initialize = {};
    initialize.structSize = CUpti_Profiler_Initialize_Params_STRUCT_SIZE;
    CUPTI_TRY(cuptiProfilerInitialize(&initialize), error);
    c->initialized = true;
    if (open_host(c, error) || find_metrics(c, metrics, error) || configure(c, error))
        return error->status;
    return open_profiler(c, error);
}

enum status counters_open(struct counters **counters, struct error *error)
{
    const char *metrics[COUNTER_COUNT];
    for (int k = 0; k < COUNTER_COUNT; k++)
        metrics[k] = counter_metric((enum counter)k);
    return counters_open_metrics(counters, metrics, COUNTER_COUNT, error);
}

enum status counters_open_metrics(struct counters **counters, const char *const *metrics,
                                  int count, struct error *error)
{
    *counters = new struct counters;
    (*counters)->wanted = count;
    if (open_all(*counters, metrics, error)) {
        counters_close(*counters);
        *counters = nullptr;
        return error->status;
    }
    return STATUS_OK;
}

void counters_close(struct counters *c)
{
    if (!c)
        return;
    if (c->profiler) {
        CUpti_RangeProfiler_Disable_Params disable = {};
        disable.structSize = CUpti_RangeProfiler_Disable_Params_STRUCT_SIZE;
        disable.pRangeProfilerObject = c->profiler;
        cuptiRangeProfilerDisable(&disable);
    }
    if (c->host) {
        CUpti_Profiler_Host_Deinitialize_Params host = {};
        host.structSize = CUpti_Profiler_Host_Deinitialize_Params_STRUCT_SIZE;
        host.pHostObject = c->host;
        cuptiProfilerHostDeinitialize(&host);
    }
    if (c->initialized) {
        CUpti_Profiler_DeInitialize_Params deinitialize = {};
        deinitialize.structSize = CUpti_Profiler_DeInitialize_Params_STRUCT_SIZE;
        cuptiProfilerDeInitialize(&deinitialize);
    }
    delete c;
}

/* An empty image; what is a range, and who repeats it for the passes. */
static enum status set_config(struct counters *c, CUpti_ProfilerRange range,
                              CUpti_ProfilerReplayMode replay, struct error *error)
{
    CUpti_RangeProfiler_CounterDataImage_Initialize_Params image = {};
    image.structSize = CUpti_RangeProfiler_CounterDataImage_Initialize_Params_STRUCT_SIZE;
    image.pRangeProfilerObject = c->profiler;
    image.counterDataSize = c->image.size();
    image.pCounterData = c->image.data();
    CUPTI_TRY(cuptiRangeProfilerCounterDataImageInitialize(&image), error);
    CUpti_RangeProfiler_SetConfig_Params set = {};
    set.structSize = CUpti_RangeProfiler_SetConfig_Params_STRUCT_SIZE;
    set.pRangeProfilerObject = c->profiler;
    set.configSize = c->config.size();
    set.pConfig = c->config.data();
    set.counterDataImageSize = c->image.size();
    set.pCounterDataImage = c->image.data();
    set.range = range;
    set.replayMode = replay;
    set.maxRangesPerPass = MAX_RANGES;
    set.numNestingLevels = 1;
    set.minNestingLevel = 1;
    CUPTI_TRY(cuptiRangeProfilerSetConfig(&set), error);
    return STATUS_OK;
}

static enum status start(struct counters *c, struct error *error)
{
    CUpti_RangeProfiler_Start_Params begin = {};
    begin.structSize = CUpti_RangeProfiler_Start_Params_STRUCT_SIZE;
    begin.pRangeProfilerObject = c->profiler;
    CUPTI_TRY(cuptiRangeProfilerStart(&begin), error);
    return STATUS_OK;
}

/* *last: no pass is left. */
static enum status stop(bool *last, struct counters *c, struct error *error)
{
    CUpti_RangeProfiler_Stop_Params end = {};
    end.structSize = CUpti_RangeProfiler_Stop_Params_STRUCT_SIZE;
    end.pRangeProfilerObject = c->profiler;
    CUPTI_TRY(cuptiRangeProfilerStop(&end), error);
    *last = end.isAllPassSubmitted;
    return STATUS_OK;
}

static enum status decode(struct counters *c, struct error *error)
{
    CUpti_RangeProfiler_DecodeData_Params decode = {};
    decode.structSize = CUpti_RangeProfiler_DecodeData_Params_STRUCT_SIZE;
    decode.pRangeProfilerObject = c->profiler;
    CUPTI_TRY(cuptiRangeProfilerDecodeData(&decode), error);
    if (decode.numOfRangeDropped > 0)
        return error_set(error, STATUS_BAD_ARGUMENT, "more than %d launches under counters",
                         MAX_RANGES);
    return STATUS_OK;
}

/* values: [most][c->wanted] */
static enum status evaluate(double *values, int most, int *launches, struct counters *c,
                            struct error *error)
{
    CUpti_RangeProfiler_GetCounterDataInfo_Params info = {};
    info.structSize = CUpti_RangeProfiler_GetCounterDataInfo_Params_STRUCT_SIZE;
    info.pCounterDataImage = c->image.data();
    info.counterDataImageSize = c->image.size();
    CUPTI_TRY(cuptiRangeProfilerGetCounterDataInfo(&info), error);
    if (info.numTotalRanges > (size_t)most)
        return error_set(error, STATUS_BAD_ARGUMENT, "%zu launches, %d expected at most",
                         info.numTotalRanges, most);
    *launches = (int)info.numTotalRanges;
    std::vector<double> found(c->metrics.size());
    for (int i = 0; i < *launches; i++) {
        CUpti_Profiler_Host_EvaluateToGpuValues_Params get = {};
        get.structSize = CUpti_Profiler_Host_EvaluateToGpuValues_Params_STRUCT_SIZE;
        get.pHostObject = c->host;
        get.pCounterDataImage = c->image.data();
        get.counterDataImageSize = c->image.size();
        get.rangeIndex = (size_t)i;
        get.ppMetricNames = c->metrics.data();
        get.numMetrics = c->metrics.size();
        get.pMetricValues = found.data();
        CUPTI_TRY(cuptiProfilerHostEvaluateToGpuValues(&get), error);
        double *row = values + (size_t)i * (size_t)c->wanted;
        std::fill_n(row, c->wanted, -1.0);
        for (size_t k = 0; k < found.size(); k++)
            row[c->of[k]] = found[k];
    }
    return STATUS_OK;
}

enum status counters_measure(struct counter_values *values, int most, int *launches,
                             struct counters *counters, device_work *work, void *context,
                             struct error *error)
{
    bool last;
    *launches = 0;
    CHECK(counters->wanted == COUNTER_COUNT, "counters of counters_open_metrics()");
    if (set_config(counters, CUPTI_AutoRange, CUPTI_KernelReplay, error) ||
        start(counters, error))
        return error->status;
    enum status status = work(context, error);
    if (status == STATUS_OK)
        status = stream_wait(NULL, error);
    struct error ignored;
    const enum status stopped = stop(&last, counters, status == STATUS_OK ? error : &ignored);
    if (status != STATUS_OK || stopped != STATUS_OK || decode(counters, error))
        return error->status;
    return evaluate(values->of, most, launches, counters, error);
}

/* The range itself. Counters run from the push to the pop, so nothing else may be under way. */
static enum status count_work(struct counters *c, device_work *work, void *context,
                              struct error *error)
{
    CUpti_RangeProfiler_PushRange_Params push = {};
    push.structSize = CUpti_RangeProfiler_PushRange_Params_STRUCT_SIZE;
    push.pRangeProfilerObject = c->profiler;
    push.pRangeName = "work";
    CUPTI_TRY(cuptiRangeProfilerPushRange(&push), error);
    if (work(context, error) || stream_wait(NULL, error))
        return error->status;
    CUpti_RangeProfiler_PopRange_Params pop = {};
    pop.structSize = CUpti_RangeProfiler_PopRange_Params_STRUCT_SIZE;
    pop.pRangeProfilerObject = c->profiler;
    CUPTI_TRY(cuptiRangeProfilerPopRange(&pop), error);
    return STATUS_OK;
}

static enum status run_pass(bool *last, struct counters *c, device_work *before,
                            device_work *work, void *context, struct error *error)
{
    if (start(c, error))
        return error->status;
    enum status status = before(context, error);
    if (status == STATUS_OK)
        status = stream_wait(NULL, error);
    if (status == STATUS_OK)
        status = count_work(c, work, context, error);
    struct error ignored;
    const enum status stopped = stop(last, c, status == STATUS_OK ? error : &ignored);
    return status == STATUS_OK ? stopped : status;
}

enum status counters_measure_range(double *values, struct counters *counters,
                                   device_work *before, device_work *work, void *context,
                                   struct error *error)
{
    bool last = false;
    int ranges;
    if (set_config(counters, CUPTI_UserRange, CUPTI_UserReplay, error))
        return error->status;
    for (int pass = 0; !last; pass++) {
        if (pass == MAX_PASSES)
            return error_set(error, STATUS_BAD_ARGUMENT,
                             "%d metrics were not counted after %d passes", counters->wanted,
                             MAX_PASSES);
        if (run_pass(&last, counters, before, work, context, error))
            return error->status;
    }
    if (decode(counters, error))
        return error->status;
    return evaluate(values, 1, &ranges, counters, error);
}
