#!/bin/bash
# readme.sh - the README's program compiles, runs, and prints what is shown
. "$top_srcdir/tests/tap.sh"
readme=$top_srcdir/README.md
[ -x "$top_builddir/dtensor-run" ] || skip_all "dtensor-run is not built"
[ -r "$top_builddir/.libs/libdtensor.so" ] || skip_all "no shared library"
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
unset DTN_CLUSTER DTN_FAULT

# block LANGUAGE: the first fenced block of that language
block() {
    awk -v fence="\`\`\`$1" '
        inside && /^```/ { exit }
        inside { print }
        $0 == fence { inside = 1 }' "$readme"
}

block c >"$tmp/turn.c"
block text >"$tmp/expected"
is "the README shows a program and its output" \
    "$([ -s "$tmp/turn.c" ] && [ -s "$tmp/expected" ] && echo both)" both
is "the program is about 30 lines" \
    "$(awk 'END { print (NR <= 45 ? "short" : NR " lines") }' "$tmp/turn.c")" short

# shellcheck disable=SC2086 # a list of words
${CC:-cc} -std=c11 -Wall -Wextra -Werror $SANITIZER_CFLAGS -I"$top_srcdir/lib" \
    -o "$tmp/turn" "$tmp/turn.c" -L"$top_builddir/.libs" -ldtensor \
    >"$tmp/cc.log" 2>&1
ok $? "it compiles without a warning"
sed 's/^/# /' "$tmp/cc.log"
LC_ALL=C.UTF-8 LD_LIBRARY_PATH=$top_builddir/.libs timeout 60 "$top_builddir/dtensor-run" -n 4 \
    "$tmp/turn" >"$tmp/got" 2>"$tmp/err"
is "it runs on four ranks" "$? $(cat "$tmp/err")" "0 "
is "it prints what the README shows" "$(cat "$tmp/got")" \
    "$(cat "$tmp/expected")"

is "the two commands of the README are words bootstrap knows" "$(
    grep -oE '\./bootstrap [a-z]+' "$readme" | sort -u |
    while read -r _ word; do
        grep -qE "^$word\)" "$top_srcdir/bootstrap" || echo "$word"
    done)" ""
is "the files the README names exist" "$(
    grep -oE '\((conf|man|tests|[A-Z]+\.md)[a-zA-Z0-9_./-]*\)' "$readme" |
    tr -d '()' | sort -u | while read -r file; do
        [ -e "$top_srcdir/$file" ] || echo "$file"
    done)" ""
done_testing
