# demo.mk - the dtensor-bench of ./bootstrap demo, compiled without configure
#
# Whoever tries the demo waits for its first line.  So no autotools are installed
# or run, the libraries that dtensor can do without are left out, and only what
# the demo times is optimised: the loops over elements, and the way of a message.
# ./bootstrap build makes what is installed.
#
#   make -f tools/demo.mk -j2
#
DIR = build/demo
VERSION := $(shell awk -F'[][]' '/^AC_INIT/ { print $$4 }' configure.ac)
SOURCES := $(shell find lib transport tools/bench tools/draw tools/cli.c \
	-name '*.c' ! -path lib/cuda/device.c ! -path '*/verbs/*') transport/verbs/look.c
OBJECTS := $(SOURCES:%.c=$(DIR)/%.o)
# The longest first, or one CPU waits for it at the end.
SLOW := $(patsubst %,$(DIR)/lib/%.o,base/reduce math/pointwise)
# Made at once: a rule of one plain command needs no shell.
$(shell mkdir -p $(sort $(dir $(OBJECTS))))

$(DIR)/dtensor-bench: $(SLOW) $(OBJECTS)
	@$(CC) -o $@ $(OBJECTS) -linih -lm -ldl -lpthread

OPTIMISE = -O0
$(DIR)/lib/base/%.o: OPTIMISE = -O3
$(foreach room,coll job redist,$(DIR)/lib/$(room)/%.o) $(DIR)/transport/%.o: \
	OPTIMISE = -O1
$(DIR)/%.o: %.c $(DIR)/config.h
	@$(CC) -std=c11 -ffp-contract=off -fno-math-errno -D_GNU_SOURCE \
		-Ilib -I. -I$(DIR) $(OPTIMISE) -c -o $@ $<

$(DIR)/config.h: configure.ac
	@printf '#define %s "%s"\n' PACKAGE_VERSION $(VERSION) \
		DTN_BUILD "demo: no verbs, cuda kernels, blas, sodium, munge" >$@
