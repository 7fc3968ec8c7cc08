#!/bin/bash
# install.sh - make install lays down what the README's program needs, and make
# uninstall takes all of it away
. "$top_srcdir/tests/tap.sh"
command -v pkg-config >/dev/null || skip_all "no pkg-config here"
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
root=$tmp/root
unset MAKEFLAGS MFLAGS MAKELEVEL DTN_CLUSTER DTN_FAULT DTN_LOG

# in_build TARGET: its words only when it fails
in_build() {
    make -s -C "$top_builddir" "$1" DESTDIR="$root" >"$tmp/make.log" 2>&1 ||
        { cat "$tmp/make.log"; return 1; }
}

# value NAME: of a directory in dtensor.pc
value() {
    PKG_CONFIG_PATH=$top_builddir pkg-config --variable="$1" dtensor
}

# files DIR: what is in it, one a line
files() {
    (cd "$1" 2>/dev/null && find . ! -type d | sed 's|^\./||' | sort)
}

is "make install succeeds" "$(in_build install)" ""
prefix=$root$(value prefix)
libdir=$root$(value libdir)
is "the programs are there" "$(files "$prefix/bin")" \
    "dtensor-bench
dtensor-conf
dtensor-plan
dtensor-run"
is "the header and its parts are there" "$(files "$root$(value includedir)")" \
    "$(cd "$top_srcdir/lib" && printf '%s\n' dtensor.h dtensor/*.h | sort)"
is "the library is there, and for pkg-config" \
    "$(files "$libdir" | grep -v '\.so\.[0-9]*\.')" "libdtensor.la
libdtensor.so
libdtensor.so.0
pkgconfig/dtensor.pc"
is "all of the manual is there" "$(files "$prefix/share/man" | sed 's|.*/||' | sort)" \
    "$(files "$top_srcdir/man")"

# The README's two commands, with the words of pkg-config moved to DESTDIR.
awk '/^```/ && inside { exit } inside { print } /^```c$/ { inside = 1 }' \
    "$top_srcdir/README.md" >"$tmp/turn.c"
flags=$(PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_LIBDIR=$libdir/pkgconfig \
    PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1 \
    pkg-config --cflags --libs dtensor)
# shellcheck disable=SC2086 # several words each
is "the README's program compiles with it" \
    "$(cd "$tmp" && ${CC:-cc} $SANITIZER_CFLAGS turn.c -o turn $flags 2>&1)" ""
export LD_LIBRARY_PATH=$libdir
is "and is linked with the installed library" \
    "$(ldd "$tmp/turn" | awk '/libdtensor/ { print $3 }')" \
    "$libdir/libdtensor.so.0"
is "the installed dtensor-run runs it" \
    "$(timeout 60 "$prefix/bin/dtensor-run" -n 4 "$tmp/turn" 2>&1 | tail -n 1)" \
    "rank 0 holds 0 1, 8 9, 16 17, ..."
for tool in dtensor-run dtensor-conf dtensor-bench; do
    timeout 60 "$prefix/bin/$tool" --version >"$tmp/out" 2>&1
    is "the installed $tool knows its version" "$? $(sed '1s/ .*//;q' "$tmp/out")" \
        "0 $tool"
done

is "make uninstall succeeds" "$(in_build uninstall)" ""
is "and leaves nothing" "$(files "$root")" ""
done_testing
