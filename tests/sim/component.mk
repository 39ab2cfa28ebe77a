# SPDX-License-Identifier: BSD-3-Clause
# Builds the component level of the simulation, to OUT/component:
#
#	make -f tests/sim/component.mk BUILD=build/gcc OUT=build/sim
#
# FROM: the tree whose product files are compiled; mutants-component.sh sets it to a tree with a seeded bug.
component: component-program

include $(dir $(lastword $(MAKEFILE_LIST)))Makefile

FROM ?= $(top)
part_product := $(addprefix plugins/transport/,loop/loop_lane.c loop/loop_queue.c common/cells.c \
	$(addprefix shm-comch/,$(addprefix shm_,producer.c consumer.c bell.c frame.c queues.c region.c rma.c share.c)))
# for parts/resume.c: the core as an archive, so that only used objects are linked; the fake transport of the unit tests
part_core := $(filter-out $(left_out),$(addprefix core/,$(call listed,libgantry_core_la,core)))
part_fake := host plugin_dir report transport queues worker core
# few messages at a time and small buffers, so that a schedule clears little memory
part_flags := -I$(top)/tests -DFAKE_MSGS=16 -DFAKE_CTRLS=8 -DFAKE_CTRL_BYTES=512 -DFAKE_QUEUES=2 -DFAKE_REGION_BYTES=4096
part_o := $(patsubst $(sim)/%.c,$(OUT)/%.o,$(wildcard $(sim)/parts/*.c)) $(part_product:%.c=$(OUT)/parts/product/%.o)
# The product and the parts are linked with the simulator, whose own calls go to libc. So symbols are renamed in objects.
renames := $(OUT)/parts/renames

# Copies to its ring are plain stores of the simulation, too.
$(OUT)/parts/product/plugins/transport/loop/loop_lane.o: product_flags += -fno-builtin-memcpy
$(OUT)/parts/product/plugins/transport/loop/loop_lane.o: $(makefiles)
# Renamed sections: component.c restores the initial values of all variables of the product for each schedule.
reset_sections := $(foreach s,data data.rel data.rel.local bss,--rename-section .$(s)=product_$(subst .,_,$(s)),alloc,load,data,contents)

component-program: $(OUT)/component

$(renames): $(sim)/wraps.list
	@mkdir -p $(@D)
	sed -n '/^gn_/d;s/^[a-z_].*/& __wrap_&/p' $< >$@ # functions of the product: by the linker
	echo 'memcpy part_memcpy' >>$@
# parts/comch_pair.c provides the memory of a pair of connections
pair_renames := $(foreach f,memfd_create ftruncate fchmod fallocate fcntl close mmap munmap madvise,--redefine-sym $(f)=pair_$(f)) \
	--redefine-sym open=pair_open_file --redefine-sym comch_bell_ok=pair_bell_ok
$(OUT)/parts/product/plugins/transport/shm-comch/shm_queues.o $(OUT)/parts/product/plugins/transport/shm-comch/shm_region.o: \
	first_renames = objcopy $(pair_renames) $@
$(OUT)/parts/product/%.o: $(FROM)/%.c $(renames)
	@mkdir -p $(@D)
	$(CC) $(product_flags) -MMD -MP -c -o $@ $<
	$(first_renames)
	objcopy --redefine-syms=$(renames) $(reset_sections) $@
# Objects of the core that the simulation of whole topologies has compiled are copied. A tree with a seeded bug compiles its own.
# Objects that report their states are compiled with other flags.
part_shared := $(filter-out $(foreach m,$(machines),$($(m)_machine)),$(if $(filter $(top),$(FROM)),$(part_core)))
$(part_shared:%.c=$(OUT)/parts/product/%.o): $(OUT)/parts/product/%.o: $(OUT)/product/%.o $(renames)
	@mkdir -p $(@D)
	objcopy --redefine-syms=$(renames) $(reset_sections) $< $@
$(OUT)/parts/%.o: $(sim)/parts/%.c $(renames)
	@mkdir -p $(@D)
	$(CC) $(sim_flags) $(part_flags) -MMD -MP -c -o $@ $<
	objcopy --redefine-syms=$(renames) $@
$(OUT)/component.o: $(sim)/parts/list.h
# an archive, so that only the used functions of the simulated kernel are linked
$(OUT)/parts/kernel.a: $(addprefix $(OUT)/,sched.o lines.o draw.o hooks.o heap.o proc.o) $(patsubst $(sim)/%.c,$(OUT)/%.o,$(wildcard $(sim)/os_*.c))
	rm -f $@
	ar rcs $@ $^
$(OUT)/parts/core.a: $(part_core:%.c=$(OUT)/parts/product/%.o)
	rm -f $@
	ar rcs $@ $^
$(OUT)/parts/fake/%.o: $(top)/tests/fake/%.c $(renames)
	@mkdir -p $(@D)
	$(CC) $(sim_flags) $(part_flags) -DTEST_PLUGINDIR='""' -MMD -MP -c -o $@ $<
	objcopy --redefine-syms=$(renames) $@
$(OUT)/component: $(OUT)/component.o $(part_o) $(part_fake:%=$(OUT)/parts/fake/%.o) $(OUT)/parts/core.a $(OUT)/parts/kernel.a
	$(CC) -o $@ $^ -Wl,--wrap=gn_clock_init -ljansson -luuid -lconfig -lssl -lcrypto -lm -ldl
