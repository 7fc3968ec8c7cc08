#!/bin/bash
# abi.sh - a program that was compiled yesterday runs with the library of today
#
# The interface of the last release, tests/packages/interface.txt, is compared with
# the headers by abidiff, as a compiler sees both.  What may be added: functions.
#
# Without this test, a field in the middle of a struct would break every program
# that is installed, and nothing would say so.
. "$top_srcdir/tests/tap.sh"
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
folder=$top_srcdir/tests/packages
advice='raise "current" of DTN_VERSION_INFO in configure.ac, then: make interface'

# functions: those that the text on standard input declares
functions() {
    sed -n '/^typedef/!s/^[a-z].*[ *]\(dtensor_[a-z0-9_]*\)(.*/\1/p' | sort
}

# compiled TEXT LIBRARY: a library with a pointer to each function of TEXT,
# so that its debugging information holds the interface and nothing else
compiled() {
    {
        cat "$1"
        functions <"$1" | sed 's/.*/__typeof__(\&&) interface_& = 0;/'
    } >"$2.c"
    ${CC:-cc} -g -O0 -fno-eliminate-unused-debug-types -shared -fPIC \
        -o "$2" "$2.c" 2>&1
}

# changes TEXT: what abidiff finds in it, against the stored one
changes() {
    compiled "$1" "$tmp/new.so" &&
        abidiff --no-added-syms "$tmp/old.so" "$tmp/new.so" >"$tmp/changes" 2>&1 ||
        grep -E '^  *\[|[0-9] (enumerator|data member)|was (added|removed|changed)' \
            "$tmp/changes" || tail -n 3 "$tmp/changes"
}

# broken SED-COMMAND: 1 if the interface that it makes counts as changed
broken() {
    sed "$1" "$tmp/now" >"$tmp/broken"
    cmp -s "$tmp/now" "$tmp/broken" && echo "nothing to change: $1"
    [ -n "$(changes "$tmp/broken")" ] && echo 1
}

CC=${CC:-cc} "$folder/interface.sh" "$top_srcdir/lib" >"$tmp/now"
library=$top_builddir/.libs/libdtensor.so
is "each function of the library has a version" \
    "$(nm -D --defined-only "$library" | awk '$2 != "A"' |
        grep -v '@@DTENSOR_[0-9]*\.[0-9]*$')" ""

if ! command -v abidiff >/dev/null; then
    skip_test "the interface is that of the last release" \
        "abidiff is not installed (Debian: abigail-tools)"
    done_testing
fi
if ${CC:-cc} --version | grep -q clang; then
    skip_test "the interface is that of the last release" \
        "libabigail 2.2 loses the pointers that clang makes"
    done_testing
fi
is "the stored interface can be compiled" \
    "$(compiled "$folder/interface.txt" "$tmp/old.so")" ""
is "nothing of the stored interface is removed or changed ($advice)" \
    "$(changes "$tmp/now")" ""
is "a function more is no change" \
    "$(echo 'int dtensor_more(int);' >>"$tmp/now"; changes "$tmp/now")" ""
is "one less is" "$(broken '/^void dtensor_fini(/d')" 1
is "a parameter more is" \
    "$(broken 's/^void dtensor_fini(/&int more, /')" 1
is "a field in the middle of a struct is" \
    "$(broken 's/^    int sys_errno;/    int more; &/')" 1
is "a value in the middle of an enum is" \
    "$(broken 's/^    DTENSOR_CUDA/    DTENSOR_MORE, &/')" 1
done_testing
