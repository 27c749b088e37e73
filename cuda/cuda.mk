# The CUDA side: kernels, host interface, GPU tests. Included by the top Makefile.
#
# NVCC is found on the PATH or in /usr/local/cuda, CUDA_HOME from it; without it every target says
# so, and the shared library can do nothing but say so. CUDA_ARCH=sm_NN builds for that GPU only.

NVCC ?= $(or $(shell command -v nvcc 2>/dev/null),$(wildcard /usr/local/cuda/bin/nvcc))
CUDA_HOME ?= $(or $(patsubst %/bin/nvcc,%,$(realpath $(NVCC))),/usr/local/cuda)
CXX ?= c++
CUDA_ARCH ?=
# Machine code for Ampere (and Ada) and Hopper; PTX for what is newer.
CUDA_GENCODE = $(if $(CUDA_ARCH),$(call gencode,$(CUDA_ARCH)),$(call gencode,sm_80) \
               $(call gencode,sm_90a) -gencode arch=compute_90,code=compute_90)
gencode = -gencode arch=$(1:sm_%=compute_%),code=$(1)
# The tracing build is for looking, not for speed: PTX, which the driver compiles when it loads it.
CUDA_TRACE_GENCODE = $(if $(CUDA_ARCH),$(call gencode,$(CUDA_ARCH)), \
                     -gencode arch=compute_80,code=compute_80)
CUDA_STEP_ARCHS ?= sm_80 sm_90a
CUDA_LADDER_ARCHS ?= sm_80 sm_90a
CUDA_CHECK_ARCHS ?= sm_75 sm_80 sm_86 sm_89 sm_90a sm_100 sm_120

CUDA_INCLUDES = -I. -Isim
# EXTRA_NVCCFLAGS: -lineinfo for profilers and compute-sanitizer's line numbers.
NVCCFLAGS = -std=c++17 -O3 $(EXTRA_NVCCFLAGS) --Werror all-warnings \
            -Xcompiler -Wall,-Wextra,-Werror,-fPIC $(CUDA_INCLUDES)
# CUPTI lies beside the toolkit's other files or in extras/CUPTI, as the toolkit was installed.
CUDA_SYSTEM = $(addprefix -isystem $(CUDA_HOME)/,include extras/CUPTI/include)
CUDA_CFLAGS = -I. -Icuda/tests $(CUDA_SYSTEM)
CUDA_CXXFLAGS = -std=c++17 -O2 -g -fPIC -Wall -Wextra -Wshadow -Werror $(CUDA_INCLUDES) $(CUDA_SYSTEM)
CUDA_LIBS = $(foreach folder,$(CUDA_HOME)/lib64 $(CUDA_HOME)/extras/CUPTI/lib64,\
            -L$(folder) -Wl,-rpath,$(folder)) -lcudart_static -lcupti -lstdc++ -lrt -ldl -lpthread

CUDA_KERNELS := $(wildcard cuda/kernels/*.cu)
# Compiled a second time, to write step records: see cuda/steps.h.
CUDA_TRACED := $(patsubst %,cuda/kernels/%.cu,naive_attention standard_attention flash1_forward \
               flash2_forward)
# Programs load the shared library when they are asked for a GPU; the GPU tests link with the other.
CUDA_SHARED := $(BUILD)/libflashlab_cuda.so
CUDA_LIBRARY := $(BUILD)/libflashlab_cuda.a
cuda_object = $(patsubst %,$(BUILD)/obj/%.o,$(basename $(1)))
CUDA_LADDER := $(wildcard cuda/ladder/*.cu)
# Steps that use TMA: for Hopper only, whatever CUDA_ARCH says. From 07 on they use wgmma.
CUDA_HOPPER := $(wildcard cuda/ladder/0[6-9]_*.cu cuda/ladder/1[0-9]_*.cu)
CUDA_WARPGROUP := $(filter-out cuda/ladder/06_%,$(CUDA_HOPPER))
LADDER_LIBRARY := $(BUILD)/libflashlab_ladder.so
FORMATTED += $(wildcard cuda/*.cu cuda/*.cpp cuda/kernels/*.cu cuda/ladder/*.cu \
             cuda/lessons/*.cu cuda/tests/*.cu)

# What runs on a GPU, or needs nvcc.
GPU_TARGETS := cuda-check gpu-programs gpu-test gpu-sanitize gpu-basic gpu-bench gpu-bits gpu-l2 \
               gpu-l2-curves gpu-l2-sides gpu-occupancy gpu-occupancy-times gpu-probes \
               gpu-rates ladder ladder-bench
.PHONY: cuda ladder-tables $(GPU_TARGETS)

$(BUILD)/obj/cuda/%.o: cuda/%.c $(BUILD)/flags
	@mkdir -p $(@D)
	@echo "  CC $<"
	@$(CC) $(ALL_CFLAGS) $(TEST_CFLAGS) $(CUDA_CFLAGS) -fPIC -MMD -MP -c $< -o $@

# What the shared library has of the core, for itself: code for shared libraries is slower.
CUDA_CORE := $(patsubst %,$(BUILD)/obj/pic/sim/core/%.o,attention dtype status step_log)
$(BUILD)/obj/pic/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	@echo "  CC $< (PIC)"
	@$(CC) $(ALL_CFLAGS) -fPIC -MMD -MP -c $< -o $@

link_shared = @mkdir -p $(@D); echo "  LD $@"; $(CC) $(ALL_CFLAGS) -shared \
              -Wl,--version-script=cuda/library.map $(filter %.o,$^)

ladder-tables: | $(BUILD)/have/gnuplot ## write the tables and the figure of docs/ladder.md anew
	@python3 tests/make_ladder_table.py
	@mkdir -p $(FIGURES)
	@python3 tests/make_ladder_table.py --csv $(FIGURES)/ladder.csv
	@$(GNUPLOT) -e "csv='$(FIGURES)/ladder.csv'; output_file='docs/figures/ladder.svg'; is_svg=1; plots='plots/'" plots/ladder.gp

ifneq ($(NVCC),)

cuda: $(CUDA_SHARED) ## build the CUDA kernels, and the library that programs load for a GPU run

CUDA_OBJECTS := $(call cuda_object,$(CUDA_KERNELS) cuda/launch.cu cuda/counters.cpp \
                  $(patsubst %,cuda/%.c,attention counter_names device error observation observe \
                  observe_basic refusals see trace)) \
                $(CUDA_TRACED:cuda/%.cu=$(BUILD)/obj/cuda_trace/%.o)

$(CUDA_LIBRARY): $(CUDA_OBJECTS)
	@rm -f $@
	@$(AR) rcs $@ $^

$(CUDA_SHARED): $(CUDA_OBJECTS) $(CUDA_CORE) cuda/library.map
	$(link_shared) $(CUDA_LIBS) -lm -o $@

ladder: $(LADDER_LIBRARY) ## build the ladder of fast kernels

# The ladder has its own library: the other programs do without its long compilation.
LADDER_OBJECTS := $(call cuda_object,$(CUDA_LADDER) cuda/ladder/ladder.c)
$(LADDER_LIBRARY): $(LADDER_OBJECTS) $(call cuda_object,cuda/launch.cu cuda/error.c) $(CUDA_CORE)
	@mkdir -p $(@D); echo "  LD $@"; $(CC) $(ALL_CFLAGS) -shared $(filter %.o,$^) $(CUDA_LIBS) -lm -o $@

$(call cuda_object,$(CUDA_HOPPER) cuda/tests/ladder_hopper_kernels.cu): override CUDA_ARCH = sm_90a

$(BUILD)/nvcc_flags: export FLAGS_NOW = $(NVCC) $(NVCCFLAGS) $(CUDA_GENCODE) $(CUDA_TRACE_GENCODE) $(CUDA_CXXFLAGS)
$(BUILD)/nvcc_flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' "$$FLAGS_NOW" | cmp -s - $@ || printf '%s\n' "$$FLAGS_NOW" >$@

$(BUILD)/obj/cuda/%.o: cuda/%.cu $(BUILD)/nvcc_flags
	@mkdir -p $(@D)
	@echo "  NVCC $<"
	@$(NVCC) $(NVCCFLAGS) $(CUDA_GENCODE) -MMD -MP -MF $(@:.o=.d) -c $< -o $@

$(BUILD)/obj/cuda_trace/%.o: cuda/%.cu $(BUILD)/nvcc_flags
	@mkdir -p $(@D)
	@echo "  NVCC $< (tracing)"
	@$(NVCC) $(NVCCFLAGS) -DFLASHLAB_TRACE $(CUDA_TRACE_GENCODE) -MMD -MP -MF $(@:.o=.d) -c $< -o $@

$(BUILD)/obj/cuda/%.o: cuda/%.cpp $(BUILD)/nvcc_flags
	@mkdir -p $(@D)
	@echo "  CXX $<"
	@$(CXX) $(CUDA_CXXFLAGS) -MMD -MP -c $< -o $@

# What the programs of cuda/tests share, and what they use of tests/common.
CUDA_TEST_COMMON := $(call cuda_object,$(filter-out cuda/tests/test_% cuda/tests/gpu_% cuda/tests/ladder_%, \
                    $(wildcard cuda/tests/*.c))) \
                    $(call object,$(foreach name,bits csv probe_list probes problem reference \
                    tolerance transpositions vectors, \
                    tests/common/$(name).c))

$(BUILD)/cuda/%: $(BUILD)/obj/cuda/tests/%.o $(CUDA_TEST_COMMON) $(CUDA_LIBRARY) $(LIBRARY)
	@mkdir -p $(@D)
	@echo "  LD $@"
	@$(CC) $(ALL_CFLAGS) $^ $(ALL_LIBS) $(CMOCKA_LIBS) $(CUDA_LIBS) $(EXTRA_LIBS) -o $@

$(foreach name,ladder ladder_counters ladder_hopper ladder_refusals,$(BUILD)/cuda/test_$(name)): \
    $(LADDER_OBJECTS) $(call cuda_object,cuda/tests/ladder_run.c)
$(BUILD)/cuda/test_ladder_hopper: $(call cuda_object,cuda/tests/ladder_hopper_kernels.cu)
$(BUILD)/cuda/test_ladder_helpers: $(call cuda_object,cuda/tests/ladder_helper_kernels.cu)
$(BUILD)/cuda/gpu_bench $(BUILD)/cuda/gpu_rates: EXTRA_LIBS = -lcublas
$(BUILD)/cuda/gpu_probes: $(call cuda_object,cuda/tests/probe_kernels.cu cuda/tests/transposition_kernels.cu)
$(BUILD)/cuda/gpu_rates: $(call cuda_object,cuda/tests/rate_kernels.cu)
$(BUILD)/cuda/gpu_l2 $(BUILD)/cuda/gpu_l2_curves: $(call cuda_object,cuda/tests/cold_cache.cu cuda/tests/l2_curve_kernels.cu)
$(BUILD)/cuda/gpu_l2_sides: $(call cuda_object,cuda/tests/l2_side_kernels.cu)
$(BUILD)/cuda/gpu_occupancy: $(call cuda_object,cuda/tests/occupancy_kernels.cu)
$(BUILD)/cuda/gpu_occupancy_times: $(call cuda_object,cuda/tests/occupancy_times_kernels.cu)
$(BUILD)/cuda/gpu_occupancy: EXTRA_LIBS = -Wl,--wrap=launch_prepare

CUDA_TESTS := $(patsubst cuda/tests/%.c,$(BUILD)/cuda/%,$(wildcard cuda/tests/test_*.c))

GPU_PROGRAMS := $(CUDA_TESTS) $(patsubst cuda/tests/%.c,$(BUILD)/cuda/%,$(wildcard cuda/tests/gpu_*.c))

gpu-programs: $(GPU_PROGRAMS) ## build what runs on a GPU, run none of it

gpu-test: $(CUDA_TESTS) $(BUILD)/cuda/gpu_info ## run the CUDA kernels against references and hardware counters
	@if $(BUILD)/cuda/gpu_info; then tests/run_tests.sh $(CUDA_TESTS); \
	else echo "gpu-test: skipped $(notdir $(CUDA_TESTS)); nothing was tested"; fi

# The tools that find bad memory accesses, races, uninitialised reads and wrong barriers; they
# are slow, so on fewer shapes.
SANITIZER_TOOLS ?= memcheck racecheck initcheck synccheck
sanitize = log=$(BUILD)/cuda/$$tool-$(notdir $(1)).log; \
           FLASHLAB_SHAPES=$(2) $(CUDA_HOME)/bin/compute-sanitizer --tool $$tool --error-exitcode 1 \
               $(1) $(3) >$$log 2>&1 || { cat $$log; exit 1; }; \
           echo "$$tool, $(notdir $(1)): $$(tail -1 $$log)";
gpu-sanitize: $(BUILD)/cuda/test_results $(BUILD)/cuda/test_ladder $(BUILD)/cuda/gpu_info ## run the CUDA kernels under compute-sanitizer
	@if $(BUILD)/cuda/gpu_info; then \
	    for tool in $(SANITIZER_TOOLS); do \
	        $(call sanitize,$(BUILD)/cuda/test_results,14) \
	        $(call sanitize,$(BUILD)/cuda/test_ladder,8,'test_random*') \
	    done; \
	else echo "gpu-sanitize: skipped; nothing was tested"; fi

BENCH_CSV ?= $(BUILD)/cuda/times.csv
gpu-bench: $(BUILD)/cuda/gpu_bench $(BUILD)/cuda/gpu_info ## time the CUDA kernels beside copy bandwidth and cuBLAS, then the ladder
	@if $(BUILD)/cuda/gpu_info >/dev/null; then $< $(BENCH_CSV) && $(MAKE) --no-print-directory ladder-bench; \
	else $(BUILD)/cuda/gpu_info; echo "gpu-bench: skipped; nothing was timed"; fi

# The ladder is compiled only if it will be timed. LADDER_BENCH: options of bench.py, "--kernels 05,10".
LADDER_JSON ?= $(BUILD)/cuda/ladder.json
LADDER_BENCH ?=
ladder-bench: $(BUILD)/cuda/gpu_info ## time the ladder beside PyTorch's attention and cuBLAS
	@if ! $(BUILD)/cuda/gpu_info >/dev/null; then $(BUILD)/cuda/gpu_info; echo "ladder-bench: skipped; nothing was timed"; \
	elif ! python3 -c 'import torch' 2>/dev/null; then echo "ladder-bench: skipped, python3 has no torch; the ladder was not timed"; \
	else $(MAKE) --no-print-directory $(LADDER_LIBRARY) && \
	    python3 cuda/ladder/bench.py $(LADDER_LIBRARY) --json $(LADDER_JSON) $(LADDER_BENCH); fi

gpu-basic: $(BUILD)/cuda/gpu_basic ## print counters and times of vector add, matmuls and softmaxes, for cuda/results/*_basic.csv
	@$<

gpu-bits: $(BUILD)/cuda/gpu_bits ## print what the CUDA kernels compute, for cuda/results/*_bits.csv
	@$<

gpu-l2: $(BUILD)/cuda/gpu_l2 ## print the counters of L2 and DRAM with cold caches, for cuda/results/*_l2.csv
	@$<

gpu-l2-curves: $(BUILD)/cuda/gpu_l2_curves ## print DRAM bytes of simple patterns by size, for cuda/results/*_l2_curves.csv
	@$<

gpu-l2-sides: $(BUILD)/cuda/gpu_l2_sides ## print which partition of L2 SMs and lines belong to, for cuda/results/*_l2_sides.csv
	@$<

gpu-occupancy: $(BUILD)/cuda/gpu_occupancy ## print the driver's blocks an SM, for cuda/results/*_occupancy.csv
	@$<

gpu-occupancy-times: $(BUILD)/cuda/gpu_occupancy_times ## print times at every occupancy, for cuda/results/*_occupancy_times.csv
	@$<

gpu-probes: $(BUILD)/cuda/gpu_probes ## print the counters of small probes, for cuda/results/*_probes.csv
	@$<

gpu-rates: $(BUILD)/cuda/gpu_rates ## print how fast each unit is alone, for cuda/results/*_rates.csv
	@$<

# A file a GPU, so that all cores work at them.
CUDA_CHECKS := $(addprefix $(BUILD)/cuda/kernels/,$(CUDA_CHECK_ARCHS)) \
               $(addprefix $(BUILD)/cuda/steps/,$(CUDA_STEP_ARCHS))
LADDER_CHECKS := $(addprefix $(BUILD)/cuda/ladder/,$(CUDA_LADDER_ARCHS))
cuda-check: $(CUDA_CHECKS) $(LADDER_CHECKS) ## compile every kernel for all GPUs; fails on spills, and if step marks change code
	@cat $^

$(CUDA_CHECKS): $(BUILD)/cuda/%: $(CUDA_KERNELS) $(wildcard cuda/*.h) $(BUILD)/nvcc_flags \
                                 cuda/check_kernels.sh cuda/check_steps.sh
	@mkdir -p $(@D)
	@echo "  CHECK $*"
	@cuda/check_$(notdir $(@D)).sh "$(NVCC) $(NVCCFLAGS)" $(@F) $(CUDA_KERNELS) >$@.log 2>&1 || \
	    { cat $@.log; exit 1; }
	@mv $@.log $@

ladder_files = $(filter-out $(if $(filter-out sm_90a,$(1)),$(CUDA_HOPPER)),$(wildcard cuda/ladder/[0-9]*.cu))
$(LADDER_CHECKS): $(BUILD)/cuda/ladder/%: $(CUDA_LADDER) $(wildcard cuda/ladder/*.h cuda/*.h) \
                                          $(BUILD)/nvcc_flags cuda/check_kernels.sh
	@mkdir -p $(@D)
	@echo "  CHECK ladder/$*"
	@WARPGROUP_FILES="$(CUDA_WARPGROUP)" cuda/check_kernels.sh "$(NVCC) $(NVCCFLAGS)" $* \
	    $(call ladder_files,$*) >$@.log 2>&1 || \
	    { cat $@.log; exit 1; }
	@mv $@.log $@

else

cuda: $(CUDA_SHARED)
	@echo "$@: nvcc was not found (set NVCC or put it on the PATH); built without a GPU"

$(CUDA_SHARED): $(call cuda_object,cuda/stub.c) $(BUILD)/obj/pic/sim/core/status.o cuda/library.map
	$(link_shared) -o $@

$(GPU_TARGETS):
	@echo "$@: skipped, nvcc was not found (set NVCC or put it on the PATH); nothing was tested"

endif
