# flashlab: `make help` lists the targets. Everything is built under $(BUILD).

BUILD ?= build
CC ?= cc
# -march=native: the simulator's GEMMs and exp use the widest vectors of this machine.
ARCH_FLAGS ?= -march=native
# No -ffast-math: masks are -INFINITY. The two -fno below only drop errno and trap ordering.
CFLAGS ?= -O3 -g
WARNINGS = -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
           -Wpointer-arith -Wwrite-strings -Wvla -Werror
# Prefixes of libraries that are not installed system-wide: make CMOCKA_PREFIX=/opt/cmocka ...
OPENBLAS_PREFIX ?=
CMOCKA_PREFIX ?=
CJSON_PREFIX ?=
RANDOM123_PREFIX ?=
LIBPNG_PREFIX ?=
# SANITIZE=address,undefined builds everything with those sanitizers.
SANITIZE ?=
# UNCOUNTED=1 compiles the counters out, to measure what they cost: see bench.
UNCOUNTED ?=
# How long each fuzzer runs.
FUZZ_SECONDS ?= 30
CLANG ?= clang
# Version 14 where it is installed: others format otherwise.
CLANG_FORMAT ?= $(or $(shell command -v clang-format-14),clang-format)
CLANG_TIDY ?= $(or $(shell command -v clang-tidy-14),clang-tidy)
GNUPLOT ?= gnuplot

# All cores, unless the caller chose a -j. A make below another one shares its jobs.
ifeq ($(MAKELEVEL)$(filter -j%,$(MAKEFLAGS)),0)
MAKEFLAGS += -j$(shell nproc 2>/dev/null || echo 1)
endif

comma := ,
pkg = $(shell pkg-config $(1) $(2) 2>/dev/null)
prefix_cflags = $(if $(1),-I$(1)/include)
prefix_libs = $(if $(1),-L$(1)/lib -Wl$(comma)-rpath$(comma)$(1)/lib)
ifeq ($(OPENBLAS_PREFIX),)
openblas_cflags := $(call pkg,--cflags,openblas)
openblas_libs := $(or $(call pkg,--libs,openblas),-lopenblas)
OPENBLAS_CFLAGS ?= $(openblas_cflags)
OPENBLAS_LIBS ?= $(openblas_libs)
else
OPENBLAS_CFLAGS ?= $(call prefix_cflags,$(OPENBLAS_PREFIX))
OPENBLAS_LIBS ?= $(call prefix_libs,$(OPENBLAS_PREFIX)) -lopenblas
endif
CJSON_CFLAGS ?= $(call prefix_cflags,$(CJSON_PREFIX))
CJSON_LIBS ?= $(call prefix_libs,$(CJSON_PREFIX)) -lcjson
CMOCKA_CFLAGS ?= $(call prefix_cflags,$(CMOCKA_PREFIX))
CMOCKA_LIBS ?= $(call prefix_libs,$(CMOCKA_PREFIX)) -lcmocka
RANDOM123_CFLAGS ?= $(call prefix_cflags,$(RANDOM123_PREFIX))
ifeq ($(LIBPNG_PREFIX),)
libpng_cflags := $(call pkg,--cflags,libpng)
libpng_libs := $(or $(call pkg,--libs,libpng),-lpng)
LIBPNG_CFLAGS ?= $(libpng_cflags)
LIBPNG_LIBS ?= $(libpng_libs)
else
LIBPNG_CFLAGS ?= $(call prefix_cflags,$(LIBPNG_PREFIX))
LIBPNG_LIBS ?= $(call prefix_libs,$(LIBPNG_PREFIX)) -lpng
endif

# No warnings: instrumented code looks worse to the compilers than it is, and the plain builds warn.
sanitize_flags = $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all \
                 -fno-omit-frame-pointer -w)
ALL_CFLAGS = -std=gnu11 -I. -Isim -Ilessons $(CFLAGS) $(ARCH_FLAGS) $(WARNINGS) -fopenmp -fno-math-errno \
             -fno-trapping-math -ffp-contract=fast $(sanitize_flags) $(OPENBLAS_CFLAGS) $(CJSON_CFLAGS) \
             $(RANDOM123_CFLAGS) $(if $(UNCOUNTED),-DFLASHLAB_UNCOUNTED) $(EXTRA_CFLAGS)
ALL_LIBS = $(OPENBLAS_LIBS) $(CJSON_LIBS) -lm -ldl
# Lessons find lessons/data and plots/ from wherever they are started.
LESSON_CFLAGS = -DFLASHLAB_ROOT='"$(CURDIR)"' \
                -DFLASHLAB_CUDA_LIBRARY='"$(abspath $(BUILD))/libflashlab_cuda.so"'
# Tests of the command line run the tool of their own build.
TEST_CFLAGS = -Itests -DFLASHLAB_TOOL='"$(abspath $(BUILD))/flashlab"' $(CMOCKA_CFLAGS)
# The flags of one source file.
flags_of = $(ALL_CFLAGS) $(if $(filter lessons/%,$(1)),$(LESSON_CFLAGS)) \
           $(if $(filter lessons/vit/%,$(1)),$(LIBPNG_CFLAGS)) $(if $(filter tests/%,$(1)),$(TEST_CFLAGS))

SIM_SOURCES := $(wildcard sim/core/*.c sim/ops/*.c sim/kernels/*.c sim/models/*.c)
# With what the GPU side and a machine without a GPU share.
COMMON_SOURCES := $(wildcard lessons/common/*.c) cuda/observation.c cuda/counter_names.c \
                  cuda/refusals.c
# What lesson 04 has for itself: nothing else needs libpng.
VIT_SOURCES := $(wildcard lessons/vit/*.c)
TOOL_SOURCES := $(wildcard lessons/flashlab*.c)
LESSON_SOURCES := $(wildcard lessons/[0-9]*.c)
TEST_SOURCES := $(wildcard tests/test_*.c)
TEST_COMMON_SOURCES := $(wildcard tests/common/*.c)
FUZZ_SOURCES := $(wildcard tests/fuzz/fuzz_*.c)
BENCH_SOURCES := $(wildcard sim/bench/*.c)

object = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
LIBRARY := $(BUILD)/libflashlab.a
CPU_LIBRARY := $(BUILD)/libflashlab_cpu.a
LESSONS := $(patsubst lessons/%.c,$(BUILD)/lessons/%,$(LESSON_SOURCES))
TESTS := $(patsubst tests/%.c,$(BUILD)/tests/%,$(TEST_SOURCES))
FUZZERS := $(patsubst tests/fuzz/fuzz_%.c,$(BUILD)/fuzzers/%,$(FUZZ_SOURCES))
FLAGSHIP := 08_flash_attention
FIGURES = $(BUILD)/plots

.PHONY: all lib lessons tests run run-lessons plots recordings test bench bench-programs sanitize fuzz \
        fuzz-run format format-check tidy check-docs clean help FORCE
.DELETE_ON_ERROR:
.SECONDARY:

all: lib $(BUILD)/flashlab lessons tests ## build everything: library, tool, lessons, tests
lib: $(LIBRARY) ## build the simulator, libflashlab.a
lessons: $(LESSONS) ## build the lessons
tests: $(TESTS) $(BUILD)/flashlab ## build the tests, run none

run: $(BUILD)/lessons/$(FLAGSHIP) $(BUILD)/flashlab lessons | $(BUILD)/have/gnuplot ## run the flagship lesson, draw its figures
	@mkdir -p $(FIGURES)
	@$< --csv $(FIGURES)/$(FLAGSHIP).csv --plot $(FIGURES)/$(FLAGSHIP).png
	@$< --csv $(FIGURES)/$(FLAGSHIP).csv --plot $(FIGURES)/$(FLAGSHIP).svg >/dev/null
	@echo; echo "Figures and their data:"; ls $(FIGURES)/$(FLAGSHIP)*.png \
	    $(FIGURES)/$(FLAGSHIP)*.svg $(FIGURES)/$(FLAGSHIP)*.csv | sed 's/^/  /'

# One lesson after the other: each uses all cores.
run-lessons: $(LESSONS) ## run every lesson with its defaults, fail if a claim fails
	@tests/run_lessons.sh $(LESSONS)

plots: $(LESSONS) | $(BUILD)/have/gnuplot ## draw every lesson's figures, PNG and SVG, and check them
	@tests/run_lessons.sh --plots $(FIGURES) $(LESSONS)
	@python3 tests/check_plots.py --self-test
	@python3 tests/check_plots.py $(FIGURES) $(notdir $(LESSONS))

# traffic_*: the lessons' own problem; vit_*: that of lesson 04; steps_*: one whose steps are few enough to keep.
RECORDED = naive standard flash1 flash2
recordings: $(BUILD)/flashlab cuda ## record on this machine's GPU what lessons show without one
	@set -e; for name in $(RECORDED); do \
	    $(BUILD)/flashlab record --algorithm $$name \
	        --recording lessons/recordings/traffic_$$name.json; \
	    $(BUILD)/flashlab record --algorithm $$name --heads-q 12 --seqlen 196 \
	        --recording lessons/recordings/vit_$$name.json; \
	done; for name in $(filter-out naive,$(RECORDED)); do \
	    $(BUILD)/flashlab record --algorithm $$name --seqlen 256 --steps \
	        --recording lessons/recordings/steps_$$name.json; \
	done

test: tests ## build and run all tests
	@tests/run_tests.sh $(TESTS)

# Counting costs what the same program gains when the counters are compiled out.
bench: ## measure the simulator's speed, write build/bench/simulator.json
	@$(MAKE) --no-print-directory bench-programs
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/uncounted UNCOUNTED=1 bench-programs
	@$(BUILD)/bench/simulator $(BUILD)/uncounted/bench/simulator $(BUILD)/bench/simulator.json
	@$(BUILD)/bench/growth $(BUILD)/bench/growth.json
	@$(MAKE) --no-print-directory bench-cpu
bench-programs: $(patsubst sim/bench/%.c,$(BUILD)/bench/%,$(BENCH_SOURCES))

# -O1: the sanitizers' checks cost more than the optimiser wins back.
# The kernels on the CPU run the rows of the counter table that have less than so many accesses.
sanitize: ## run the tests under AddressSanitizer and UBSan
	@FLASHLAB_MOST_ACCESSES=4000000 $(MAKE) --no-print-directory BUILD=$(BUILD)/sanitize SANITIZE=address,undefined \
	    CFLAGS='-O1 -g' test

fuzz: ## fuzz the readers of files and the options, FUZZ_SECONDS each (needs clang)
	@command -v $(CLANG) >/dev/null || { echo "fuzz: $(CLANG) not found: apt-get install" \
	    "clang libclang-rt-dev libomp-dev"; exit 1; }
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/fuzz CC=$(CLANG) CFLAGS='-O1 -g' \
	    SANITIZE=fuzzer-no-link,address,undefined fuzz-run
# What a fuzzer learns goes to build/fuzz/corpus; tests/fuzz/corpus holds the seeds.
fuzz-run: $(FUZZERS:%=%.run)
$(FUZZERS:%=%.run): %.run: % FORCE
	@name=$(notdir $*); \
	mkdir -p $(BUILD)/corpus/$$name; \
	echo "  FUZZ $$name, $(FUZZ_SECONDS) s"; \
	$* -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1 -verbosity=0 \
	    -artifact_prefix=$(BUILD)/$$name- -rss_limit_mb=4096 -timeout=10 \
	    $(BUILD)/corpus/$$name tests/fuzz/corpus/$$name >$(BUILD)/$$name.log 2>&1 || \
	    { cat $(BUILD)/$$name.log; exit 1; }; \
	grep -E 'number_of_executed_units|average_exec' $(BUILD)/$$name.log | sed 's/^/    /'

FORMATTED = $(shell find sim lessons tests cuda -name '*.[ch]' 2>/dev/null | sort)
format: ## format all C sources in place
	@$(CLANG_FORMAT) -i $(FORMATTED)
format-check: ## fail if clang-format would change anything
	@$(CLANG_FORMAT) --dry-run -Werror $(FORMATTED)

TIDIED := $(SIM_SOURCES) $(BENCH_SOURCES) $(COMMON_SOURCES) $(VIT_SOURCES) $(TOOL_SOURCES) \
          $(LESSON_SOURCES) $(TEST_SOURCES) $(TEST_COMMON_SOURCES) $(FUZZ_SOURCES) $(wildcard tests/cpu/*.c cuda/cpu/*.c)
tidy_flags = $(if $(filter cuda/cpu/%,$(1)),$(CPU_CFLAGS),$(call flags_of,$(1)))
tidy: $(patsubst %.c,$(BUILD)/tidy/%.ok,$(TIDIED)) ## run clang-tidy, its warnings are errors
# A file is checked again when any header has changed: there are few, and no list of who uses which.
$(BUILD)/tidy/%.ok: %.c .clang-tidy $(BUILD)/flags $(shell find sim lessons tests cuda -name '*.h')
	@mkdir -p $(@D)
	@echo "  TIDY $<"
	@$(CLANG_TIDY) --quiet $< -- $(call tidy_flags,$<) 2>$(@:.ok=.log) || { cat $(@:.ok=.log); exit 1; }
	@touch $@

L2_TESTS := $(patsubst %,$(BUILD)/tests/test_l2_%,twins h200 curves)
check-docs: $(BUILD)/flashlab $(L2_TESTS) ## check links, commands and pasted output of README.md, docs/ and lessons/
	@python3 tests/check_docs.py --self-test >$(BUILD)/check_docs_self_test.log || \
	    { cat $(BUILD)/check_docs_self_test.log; exit 1; }
	@python3 tests/make_counter_tables.py --tool $(BUILD)/flashlab --self-test
	@python3 tests/make_counter_tables.py --tool $(BUILD)/flashlab --check
	@python3 tests/make_l2_tables.py --tests $(BUILD)/tests --check
	@python3 tests/make_ladder_table.py --check
	@python3 tests/check_docs.py

.PHONY: counter-tables l2-tables
l2-tables: $(L2_TESTS) ## write the tables of docs/l2.md anew
	@python3 tests/make_l2_tables.py --tests $(BUILD)/tests

counter-tables: $(BUILD)/flashlab ## write docs/counters.md anew, fail if any count is not the measured one
	@python3 tests/make_counter_tables.py --tool $(BUILD)/flashlab

# The table of machines, whose text the program carries: bytes, as a C string may not be so long.
$(BUILD)/gen/machine_table_text.c: sim/core/machines.txt
	@mkdir -p $(@D)
	@{ echo '#include "core/machine_file.h"'; echo 'const char machine_table_text[] = {'; \
	    od -An -v -td1 $< | sed -E 's/ *(-?[0-9]+)/\1,/g'; echo '0};'; } >$@
MACHINE_TABLE := $(BUILD)/obj/gen/machine_table_text.o
$(MACHINE_TABLE): $(BUILD)/gen/machine_table_text.c $(BUILD)/flags
	@mkdir -p $(@D)
	@echo "  CC $<"
	@$(CC) $(ALL_CFLAGS) -MMD -MP -c $< -o $@

$(LIBRARY): $(call object,$(SIM_SOURCES)) $(MACHINE_TABLE)
	@rm -f $@
	@$(AR) rcs $@ $^

# What objects were built with: they are rebuilt when the compiler or a flag changes.
$(BUILD)/flags: export FLAGS_NOW := $(CC) $(ALL_CFLAGS) $(LESSON_CFLAGS) $(TEST_CFLAGS) $(ALL_LIBS) \
                                   $(LIBPNG_CFLAGS) $(LIBPNG_LIBS)
$(BUILD)/flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' "$$FLAGS_NOW" | cmp -s - $@ || printf '%s\n' "$$FLAGS_NOW" >$@

# One line for what is not installed, before the compiler fills the screen. $* is a header, its
# slashes written as --.
$(BUILD)/have/%: $(BUILD)/flags | $(BUILD)/have/compiler
	@echo '#include <$(subst --,/,$*)>' | \
	    $(CC) $(ALL_CFLAGS) $(TEST_CFLAGS) $(LIBPNG_CFLAGS) -x c -E - >/dev/null 2>&1 || \
	    { echo "<$(subst --,/,$*)> not found: apt-get install $(package_of_$*)"; exit 1; }
	@touch $@
package_of_cblas.h = libopenblas-dev, or set OPENBLAS_PREFIX
package_of_cjson--cJSON.h = libcjson-dev, or set CJSON_PREFIX
package_of_cmocka.h = libcmocka-dev, or set CMOCKA_PREFIX
package_of_Random123--philox.h = librandom123-dev, or set RANDOM123_PREFIX
package_of_png.h = libpng-dev, or set LIBPNG_PREFIX
$(BUILD)/have/compiler: $(BUILD)/flags
	@mkdir -p $(@D)
	@command -v $(CC) >/dev/null || { echo "$(CC) not found: apt-get install gcc"; exit 1; }
	@touch $@
$(BUILD)/have/gnuplot:
	@mkdir -p $(@D)
	@command -v $(GNUPLOT) >/dev/null || \
	    { echo "$(GNUPLOT) not found: apt-get install gnuplot-nox"; exit 1; }
	@touch $@

have = $(addprefix $(BUILD)/have/,$(1))
random123 := $(if $(wildcard sim/core/random.c),Random123--philox.h)
$(call object,$(SIM_SOURCES) $(BENCH_SOURCES)): | $(call have,cblas.h $(random123))
$(call object,$(COMMON_SOURCES) $(VIT_SOURCES) $(TOOL_SOURCES) $(LESSON_SOURCES)): | $(call have,cjson--cJSON.h)
$(call object,lessons/vit/image_png.c): | $(call have,png.h)
$(call object,$(TEST_SOURCES) $(TEST_COMMON_SOURCES)): | $(call have,cmocka.h cjson--cJSON.h)

$(BUILD)/obj/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	@echo "  CC $<"
	@$(CC) $(call flags_of,$<) -MMD -MP -c $< -o $@

# Objects first: libraries give only what is still missing when their turn comes.
link = @mkdir -p $(@D); echo "  LD $@"; $(CC) $(ALL_CFLAGS) $(filter %.o,$^) $(filter %.a,$^) \
       $(EXTRA_LIBS) $(ALL_LIBS)
vit_programs = $(BUILD)/lessons/04_vit $(BUILD)/tests/test_image $(BUILD)/tests/test_vit $(BUILD)/fuzzers/image
$(vit_programs): $(call object,$(VIT_SOURCES))
$(vit_programs): EXTRA_LIBS = $(LIBPNG_LIBS)

# CPU_LIBRARY, the CUDA kernels on the CPU, is made by cuda/cpu/cpu.mk; they use the core too.
$(BUILD)/flashlab: $(call object,$(TOOL_SOURCES) $(COMMON_SOURCES)) $(CPU_LIBRARY) $(LIBRARY)
	$(link) -o $@

$(BUILD)/lessons/%: $(BUILD)/obj/lessons/%.o $(call object,$(COMMON_SOURCES)) $(CPU_LIBRARY) $(LIBRARY)
	$(link) -o $@

$(BUILD)/tests/%: $(BUILD)/obj/tests/%.o $(call object,$(TEST_COMMON_SOURCES) $(COMMON_SOURCES)) \
                  $(CPU_LIBRARY) $(LIBRARY)
	$(link) $(CMOCKA_LIBS) -o $@

$(BUILD)/tests/test_ladder_check: $(call object,cuda/ladder/ladder.c)

$(BUILD)/bench/%: $(BUILD)/obj/sim/bench/%.o $(LIBRARY)
	$(link) -o $@

$(BUILD)/fuzzers/%: $(BUILD)/obj/tests/fuzz/fuzz_%.o $(call object,$(COMMON_SOURCES)) $(CPU_LIBRARY) \
                    $(LIBRARY)
	$(link) -fsanitize=fuzzer -o $@

clean: ## remove everything built
	rm -rf $(BUILD)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo "Variables: BUILD (where to build), CC, CFLAGS, ARCH_FLAGS, SANITIZE, FUZZ_SECONDS,"
	@echo "OPENBLAS_PREFIX, CJSON_PREFIX, CMOCKA_PREFIX, RANDOM123_PREFIX, LIBPNG_PREFIX. Objects are"
	@echo "rebuilt when flags change; keep two builds apart with two BUILDs: make CC=clang BUILD=build/clang"

-include cuda/cuda.mk
-include cuda/cpu/cpu.mk
-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
