# The kernels on the CPU, observed: cuda/cpu/cpu.h. Needs a C++ compiler, no CUDA toolkit.

# The one that belongs to CC.
CPU_CXX ?= $(if $(findstring clang,$(notdir $(CC))),$(subst clang,clang++,$(CC)),$(CXX))
# Never with SANITIZE: AddressSanitizer knows nothing of fibers' stacks, and what the kernels do is
# watched here already. -O2 for the slow builds too: threads one after the other take long enough.
CPU_COMMON = $(CFLAGS) -O2 $(ARCH_FLAGS) -I. -Isim -Icuda/cpu/include -fopenmp -Wall -Wextra -Werror
CPU_CFLAGS = -std=gnu11 $(CPU_COMMON) -Wshadow -Wstrict-prototypes -Wmissing-prototypes
# Loops that nvcc unrolls need not be here; elements that a condition guards twice are no surprise.
CPU_CXXFLAGS = -std=c++17 $(CPU_COMMON) -fno-exceptions -fno-rtti -fno-math-errno -DFLASHLAB_CPU \
               -include cuda_runtime.h -Wno-unknown-pragmas \
               $(if $(findstring clang,$(CPU_CXX)),-Wno-pass-failed,-Wno-maybe-uninitialized)

CPU_LIBRARY := $(BUILD)/libflashlab_cpu.a
CPU_KERNELS := $(wildcard cuda/kernels/*.cu) cuda/launch.cu
CPU_OBJECTS := $(CPU_KERNELS:cuda/%.cu=$(BUILD)/obj/cpu/%.o) \
               $(patsubst %,$(BUILD)/obj/cpu/%.o,error cpu/fibers cpu/requests)

$(BUILD)/cpu_flags: export FLAGS_NOW = $(CC) $(CPU_CFLAGS) $(CPU_CXX) $(CPU_CXXFLAGS)
$(BUILD)/cpu_flags: FORCE
	@mkdir -p $(@D)
	@command -v $(CPU_CXX) >/dev/null || { echo "$(CPU_CXX) not found: apt-get install g++"; exit 1; }
	@printf '%s\n' "$$FLAGS_NOW" | cmp -s - $@ || printf '%s\n' "$$FLAGS_NOW" >$@

$(BUILD)/cpu/%.cpp: cuda/%.cu cuda/cpu/translate.sed
	@mkdir -p $(@D)
	@{ echo '#line 1 "$<"'; sed -E -z -f cuda/cpu/translate.sed $<; } >$@

$(BUILD)/obj/cpu/%.o: $(BUILD)/cpu/%.cpp $(BUILD)/cpu_flags
	@mkdir -p $(@D)
	@echo "  CXX cuda/$*.cu (CPU)"
	@$(CPU_CXX) $(CPU_CXXFLAGS) -MMD -MP -c $< -o $@

$(BUILD)/obj/cpu/%.o: cuda/%.c $(BUILD)/cpu_flags
	@mkdir -p $(@D)
	@echo "  CC $< (CPU)"
	@$(CC) $(CPU_CFLAGS) -MMD -MP -c $< -o $@

$(CPU_LIBRARY): $(CPU_OBJECTS)
	@rm -f $@
	@$(AR) rcs $@ $^

# Before the library: the kernels use the core too.
$(BUILD)/tests/test_cpu_kernels: $(call object,tests/test_cpu_kernels.c tests/cpu/run.c) $(CPU_LIBRARY) \
                                 $(call object,$(TEST_COMMON_SOURCES) $(COMMON_SOURCES)) $(LIBRARY)
	$(link) $(CMOCKA_LIBS) -o $@
