#!/bin/bash
# aarch64.sh - the library built for 64-bit ARM, and tests that start no ranks
# under emulation: the same bits by NEON.  Not part of check: make -C build
# check-aarch64, with Debian's gcc-aarch64-linux-gnu and qemu-user.  DTN_SYSROOT
# is where ARM's loader and C library are.
. "$top_srcdir/tests/tap.sh"
host=aarch64-linux-gnu
sysroot=${DTN_SYSROOT:-/usr/$host}
dir=$top_builddir/aarch64

command -v $host-gcc >/dev/null || skip_all "gcc-$host is not installed"
qemu=$(command -v qemu-aarch64 || command -v qemu-aarch64-static) ||
    skip_all "qemu-user is not installed"
cpu=$(uname -m)
[ "$cpu" != aarch64 ] || skip_all "this is such a machine: make check"

# Headers that are the same for every CPU; what needs libinih is not linked.
rm -rf "$dir" && mkdir -p "$dir/include" || exit 1
for header in xxhash.h ini.h; do
    [ ! -r /usr/include/$header ] || cp /usr/include/$header "$dir/include"
done
cd "$dir" || exit 1
"$top_srcdir/configure" -q --host=$host --without-verbs --enable-werror \
    CFLAGS="-O2 -g" CPPFLAGS="-I$dir/include" INIH_CFLAGS=" " INIH_LIBS=" " \
    JANSSON_CFLAGS=" " JANSSON_LIBS=" " CC="${DTN_CCACHE-} $host-gcc" \
    >configure.log 2>&1
ok $? "configured for $host"
make -s -j "$(nproc)" libdtn.la >make.log 2>&1
ok $? "and built, warnings fatal"

# The plain loops are what NEON is used for: two 64-bit products at a time.
is "Philox multiplies vectors" "$(
    $host-objdump -d lib/random/.libs/libdtn_la-philox.o lib/random/*philox.o \
        2>/dev/null | grep -cE 'umull2?[[:space:]].*\.2d' |
        awk '{ print ($1 > 0) }')" 1
is "and so do normals" "$(
    $host-objdump -d lib/random/.libs/libdtn_la-values.o lib/random/*values.o \
        2>/dev/null | grep -cE 'fmla[[:space:]].*\.4s' |
        awk '{ print ($1 > 0) }')" 1

for test in box dtype error philox reduce units values; do
    make -s tests/test_$test >make.log 2>&1
    DTN_TEST_ROUNDS=2 timeout 60 "$qemu" -L "$sysroot" tests/test_$test >out.log 2>&1
    status=$?
    is "test_$test: all of its $(grep -c '^ok ' out.log) claims hold" \
        "$status $(grep '^not ok ' out.log)" "0 "
done
done_testing
