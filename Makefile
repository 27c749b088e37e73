# flashlab: `make help` lists the targets. Everything is built under $(BUILD).

BUILD ?= build
CC ?= cc
# -march=native: the simulator's GEMMs and exp use the widest vectors of this machine.
ARCH_FLAGS ?= -march=native
# No -ffast-math: masks are -INFINITY. These two only drop errno and trap ordering.
CFLAGS ?= -O3 -g
WARNINGS = -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
           -Wpointer-arith -Wwrite-strings -Wvla -Werror
# Prefixes of libraries that are not installed system-wide: make CMOCKA_PREFIX=/opt/cmocka ...
CMOCKA_PREFIX ?=
CJSON_PREFIX ?=
# SANITIZE=address,undefined builds everything with those sanitizers.
SANITIZE ?=
FUZZ_SECONDS ?= 60

pkg = $(shell pkg-config $(1) $(2) 2>/dev/null)
OPENBLAS_CFLAGS ?= $(call pkg,--cflags,openblas)
OPENBLAS_LIBS ?= $(or $(call pkg,--libs,openblas),-lopenblas)
CJSON_CFLAGS ?= $(if $(CJSON_PREFIX),-I$(CJSON_PREFIX)/include)
CJSON_LIBS ?= $(if $(CJSON_PREFIX),-L$(CJSON_PREFIX)/lib -Wl$(comma)-rpath$(comma)$(CJSON_PREFIX)/lib) -lcjson
CMOCKA_CFLAGS ?= $(if $(CMOCKA_PREFIX),-I$(CMOCKA_PREFIX)/include)
CMOCKA_LIBS ?= $(if $(CMOCKA_PREFIX),-L$(CMOCKA_PREFIX)/lib -Wl$(comma)-rpath$(comma)$(CMOCKA_PREFIX)/lib) -lcmocka
comma := ,

sanitize_flags = $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer)
ALL_CFLAGS = -std=gnu11 -Isim -Ilessons $(CFLAGS) $(ARCH_FLAGS) $(WARNINGS) -fopenmp -fno-math-errno \
             -fno-trapping-math -ffp-contract=fast $(sanitize_flags) $(OPENBLAS_CFLAGS) $(CJSON_CFLAGS) \
             $(EXTRA_CFLAGS)
ALL_LIBS = $(OPENBLAS_LIBS) $(CJSON_LIBS) -lm

SIM_SOURCES := $(wildcard sim/core/*.c sim/ops/*.c sim/kernels/*.c sim/models/*.c)
COMMON_SOURCES := $(wildcard lessons/common/*.c)
TOOL_SOURCES := $(wildcard lessons/flashlab*.c)
LESSON_SOURCES := $(wildcard lessons/[0-9]*.c)
TEST_SOURCES := $(wildcard tests/test_*.c)
TEST_COMMON_SOURCES := $(wildcard tests/common/*.c)

object = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
LIBRARY := $(BUILD)/libflashlab.a
LESSONS := $(patsubst lessons/%.c,$(BUILD)/lessons/%,$(LESSON_SOURCES))
TESTS := $(patsubst tests/%.c,$(BUILD)/tests/%,$(TEST_SOURCES))

.PHONY: all test lessons clean format format-check help
.DELETE_ON_ERROR:
.SECONDARY:

all: $(LIBRARY) $(BUILD)/flashlab lessons ## build the library, the tool and the lessons

lessons: $(LESSONS) ## build the lessons

test: $(TESTS) $(BUILD)/flashlab ## build and run all tests
	@tests/run_tests.sh $(TESTS)

$(LIBRARY): $(call object,$(SIM_SOURCES))
	@rm -f $@
	@$(AR) rcs $@ $^

$(BUILD)/obj/%.o: %.c Makefile
	@mkdir -p $(@D)
	@echo "  CC $<"
	@$(CC) $(ALL_CFLAGS) -MMD -MP -c $< -o $@

$(BUILD)/flashlab: $(call object,$(TOOL_SOURCES) $(COMMON_SOURCES)) $(LIBRARY)
	@echo "  LD $@"
	@$(CC) $(ALL_CFLAGS) $^ $(ALL_LIBS) -o $@

$(BUILD)/lessons/%: $(BUILD)/obj/lessons/%.o $(call object,$(COMMON_SOURCES)) $(LIBRARY)
	@mkdir -p $(@D)
	@echo "  LD $@"
	@$(CC) $(ALL_CFLAGS) $^ $(ALL_LIBS) -o $@

$(BUILD)/obj/tests/%.o: EXTRA_CFLAGS += -Itests $(CMOCKA_CFLAGS)
$(BUILD)/tests/%: $(BUILD)/obj/tests/%.o $(call object,$(TEST_COMMON_SOURCES) $(COMMON_SOURCES)) $(LIBRARY)
	@mkdir -p $(@D)
	@echo "  LD $@"
	@$(CC) $(ALL_CFLAGS) $^ $(ALL_LIBS) $(CMOCKA_LIBS) -o $@

FORMATTED := $(shell git ls-files -co --exclude-standard '*.c' '*.h' 2>/dev/null)
format: ## format all C sources in place
	clang-format -i $(FORMATTED)
format-check: ## fail if clang-format would change anything
	clang-format --dry-run -Werror $(FORMATTED)

clean: ## remove everything built
	rm -rf $(BUILD)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
