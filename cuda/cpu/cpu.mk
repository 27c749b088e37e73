# The kernels on the CPU, observed: cuda/cpu/cpu.h. Needs a C++ compiler, no CUDA toolkit.

# The one that belongs to CC.
CPU_CXX ?= $(if $(findstring clang,$(notdir $(CC))),$(subst clang,clang++,$(CC)),$(CXX))
# -O2 for the slow builds too: threads one after the other take long enough. Programs alone are
# linked with these objects, so that a variable of an OpenMP thread is a load away.
CPU_COMMON = $(CFLAGS) -O2 -ftls-model=local-exec $(ARCH_FLAGS) -I. -Isim -Icuda/cpu/include -fopenmp \
             -Wall -Wextra -Werror $(sanitize_flags)
# -O3: with less, gcc does not work on all lanes of a warp at once.
CPU_CFLAGS = -std=gnu11 $(CPU_COMMON) -O3 -Wshadow -Wstrict-prototypes -Wmissing-prototypes
# Loops that nvcc unrolls need not be here; elements that a condition guards twice are no surprise.
# clang's check of function types needs C++'s part of the sanitizers, which CC does not link.
# -fno-plt: expf() is called often enough.
CPU_CXXFLAGS = -std=c++17 $(CPU_COMMON) -fno-plt -fno-exceptions -fno-rtti -fno-math-errno \
               -DFLASHLAB_CPU -include cuda_runtime.h -Wno-unknown-pragmas \
               $(if $(findstring clang,$(CPU_CXX)),-Wno-pass-failed $(if $(SANITIZE),-fno-sanitize=function),\
               -Wno-maybe-uninitialized -Wno-attributes)

CPU_ENGINE := $(wildcard cuda/cpu/*.c)
CPU_KERNELS := $(wildcard cuda/kernels/*.cu cuda/lessons/*.cu) cuda/launch.cu
CPU_OBJECTS := $(CPU_KERNELS:cuda/%.cu=$(BUILD)/obj/cpu/%.o) \
               $(patsubst %,$(BUILD)/obj/cpu/%.o,error $(CPU_ENGINE:cuda/%.c=%))

$(BUILD)/cpu_flags: export FLAGS_NOW = $(CC) $(CPU_CFLAGS) $(CPU_CXX) $(CPU_CXXFLAGS)
$(BUILD)/cpu_flags: FORCE
	@mkdir -p $(@D)
	@command -v $(CPU_CXX) >/dev/null || { echo "$(CPU_CXX) not found: apt-get install g++"; exit 1; }
	@printf '%s\n' "$$FLAGS_NOW" | cmp -s - $@ || printf '%s\n' "$$FLAGS_NOW" >$@

# A program of one's own, kernels and main() in one file, wherever it lies: see docs/cpu.md.
%.cpu: %.cu cuda/cpu/translate.sed $(CPU_LIBRARY) $(LIBRARY) $(BUILD)/cpu_flags
	@echo "  CXX $< (CPU)"
	@{ echo '#line 1 "$<"'; sed -E -z -f cuda/cpu/translate.sed $<; } >$@.cpp
	@$(CPU_CXX) $(CPU_CXXFLAGS) -Wno-error $@.cpp $(CPU_LIBRARY) $(LIBRARY) $(OPENBLAS_LIBS) -lm -o $@

$(BUILD)/cpu/%.cpp: cuda/%.cu cuda/cpu/translate.sed
	@mkdir -p $(@D)
	@{ echo '#line 1 "$<"'; sed -E -z -f cuda/cpu/translate.sed $<; } >$@

$(BUILD)/obj/cpu/%.o: $(BUILD)/cpu/%.cpp $(BUILD)/cpu_flags
	@mkdir -p $(@D)
	@echo "  CXX cuda/$*.cu (CPU)"
	@$(CPU_CXX) $(CPU_CXXFLAGS) -MMD -MP -c $< -o $@

# Kernels of the tests' own.
$(BUILD)/cpu/tests/%.cpp: tests/cpu/%.cu cuda/cpu/translate.sed
	@mkdir -p $(@D)
	@{ echo '#line 1 "$<"'; sed -E -z -f cuda/cpu/translate.sed $<; } >$@

# KERNEL.FAULT: the kernel with one line of its source changed. Its launcher is planted_FAULT, which
# is linked beside the true one; all else in it is its own, or the linker would take one block_max()
# for both. -O1: it runs once; -w: a fault may be a
# warning too.
planted = $(subst ., ,$(notdir $(1)))
$(BUILD)/cpu/planted/%/kernel.cpp: tests/cpu/planted/%.sed tests/cpu/plant.sh cuda/cpu/translate.sed \
                                   $(wildcard cuda/kernels/*.cu) cuda/tile.h cuda/row_softmax.h
	@tests/cpu/plant.sh $< $(@D)

$(BUILD)/obj/cpu/planted/%.o: $(BUILD)/cpu/planted/%/kernel.cpp $(BUILD)/cpu_flags
	@mkdir -p $(@D)
	@echo "  CXX $* (planted)"
	@$(CPU_CXX) -I$(<D) $(CPU_CXXFLAGS) -O1 -w -MMD -MP -MF $(@:.o=.d) -MT $@ \
	    -Dlaunch_$(word 1,$(call planted,$*))=planted_$(word 2,$(call planted,$*)) -c $< -o $@.all
	@ld -r --force-group-allocation $@.all -o $@
	@objcopy -w --keep-global-symbol='planted_*' $@
	@rm $@.all

$(BUILD)/obj/cpu/%.o: cuda/%.c $(BUILD)/cpu_flags
	@mkdir -p $(@D)
	@echo "  CC $< (CPU)"
	@$(CC) $(CPU_CFLAGS) -MMD -MP -c $< -o $@

.PHONY: bench-cpu
bench-cpu: $(BUILD)/bench/cpu_kernels ## measure what observing the CUDA kernels on this CPU costs
	@$< $(BUILD)/bench/cpu_kernels.json

$(BUILD)/bench/cpu_kernels: $(call object,cuda/cpu/bench/cpu_kernels.c) $(CPU_LIBRARY) $(LIBRARY)
	$(link) -o $@

$(CPU_LIBRARY): $(CPU_OBJECTS)
	@rm -f $@
	@$(AR) rcs $@ $^

PLANTED_OBJECTS := $(patsubst tests/cpu/planted/%.sed,$(BUILD)/obj/cpu/planted/%.o,\
                     $(wildcard tests/cpu/planted/*.sed))
OWN_OBJECTS := $(patsubst tests/cpu/%.cu,$(BUILD)/obj/cpu/tests/%.o,\
                 $(wildcard tests/cpu/kernels/*.cu tests/cpu/planted/*.cu))

# The libraries again: those that make adds to the objects of a test come after them.
CPU_TESTS := $(patsubst %,$(BUILD)/tests/test_cpu_%,\
               kernels bits vectors faults checks engine races groups)
$(BUILD)/tests/test_cpu_kernels $(BUILD)/tests/test_cpu_bits: $(call object,tests/cpu/run.c)
$(BUILD)/tests/test_cpu_faults: $(call object,tests/cpu/message.c) $(PLANTED_OBJECTS) $(OWN_OBJECTS)
$(BUILD)/tests/test_cpu_races $(BUILD)/tests/test_cpu_groups: $(OWN_OBJECTS)
$(BUILD)/tests/test_cpu_checks $(BUILD)/tests/test_cpu_engine: $(call object,tests/cpu/message.c) $(OWN_OBJECTS)
$(CPU_TESTS): $(BUILD)/tests/%: $(BUILD)/obj/tests/%.o $(CPU_LIBRARY) \
              $(call object,$(TEST_COMMON_SOURCES) $(COMMON_SOURCES)) $(LIBRARY)
	$(link) $(CPU_LIBRARY) $(LIBRARY) $(ALL_LIBS) $(CMOCKA_LIBS) -o $@

# What must not compile, see there.
.PHONY: cpu-refusals
cpu-refusals: $(BUILD)/cpu_flags
	@tests/cpu/check_refusals.sh $(CPU_CXX) $(CPU_CXXFLAGS)
test: cpu-refusals
