#!/bin/bash
# aarch64.sh - the library built for 64-bit ARM, and tests that start no ranks
# under emulation: the same bits by NEON.  Not part of check: make -C build
# check-aarch64, with Debian's gcc-aarch64-linux-gnu and qemu-user.
# DTN_SYSROOT is where ARM's loader and C library are.
#
# Without this test, the NEON code would never run before a user runs it.
. "$top_srcdir/tests/tap.sh"
host=aarch64-linux-gnu
sysroot=${DTN_SYSROOT:-/usr/$host}
dir=$top_builddir/aarch64

command -v $host-gcc >/dev/null || skip_all "gcc-$host is not installed"
qemu=$(command -v qemu-aarch64 || command -v qemu-aarch64-static) ||
    skip_all "qemu-user is not installed"
cpu=$(uname -m)
[ "$cpu" != aarch64 ] || skip_all "this is such a machine: make check"

# Headers that are the same for every CPU; tests read no cluster file, and ARM's
# libinih need not be here.
rm -rf "$dir" && mkdir -p "$dir/include" || exit 1
for header in xxhash.h ini.h; do
    [ ! -r /usr/include/$header ] || cp /usr/include/$header "$dir/include"
done
cd "$dir" || exit 1
echo 'int ini_parse_stream(void); int ini_parse_stream(void) { return -1; }' |
    $host-gcc -fPIC -c -x c -o ini.o - || exit 1
"$top_srcdir/configure" -q --host=$host --without-verbs --enable-werror \
    CFLAGS="-O2 -g" CPPFLAGS="-I$dir/include" INIH_CFLAGS=" " INIH_LIBS=" " LIBS="$dir/ini.o" \
    JANSSON_CFLAGS=" " JANSSON_LIBS=" " CC="${DTN_CCACHE-} $host-gcc" \
    >configure.log 2>&1
ok $? "configured for $host"
make -s -j "$(nproc)" libdtn.la >make.log 2>&1
ok $? "and built, warnings fatal"

# instructions FUNCTION PATTERN OBJECT...: how many there are
instructions() {
    $host-objdump -d --disassemble="$1" "${@:3}" 2>/dev/null | grep -cE "$2"
}

# The plain loops are what NEON is used for: two 64-bit products at a time.
for level in 2 3; do
    $host-gcc -std=c11 -D_GNU_SOURCE -O$level -I"$top_srcdir" -I"$top_srcdir/lib" \
        -I. -Iinclude -c -o philox-$level.o "$top_srcdir/lib/random/philox.c"
    is "-O$level: Philox multiplies vectors, and nothing else" "$(
        instructions blocks_plain 'umull2?[[:space:]].*\.2d' philox-$level.o
        instructions blocks_plain 'umull[[:space:]]+x' philox-$level.o)" "4
0"
done
values=$(find lib/random -name '*values.o' | head -n 1)
is "normals are vectors, with a loop for the last few" "$(
    [ "$(instructions gauss_f32_plain 'fml[as][[:space:]].*\.4s' "$values")" -ge \
        "$(instructions gauss_f32_plain 'fn?m(add|sub)[[:space:]]+s' "$values")" ] && echo so)" so

for test in box dtype error offsets philox reduce tracker units values; do
    make -s tests/test_$test >make.log 2>&1
    DTN_TEST_ROUNDS=2 timeout 60 "$qemu" -L "$sysroot" tests/test_$test >out.log 2>&1
    status=$?
    is "test_$test: all of its $(grep -c '^ok ' out.log) claims hold" \
        "$status $(grep '^not ok ' out.log)" "0 "
done
done_testing
