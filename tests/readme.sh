#!/bin/bash
# readme.sh - the README's program compiles, runs, and prints what is shown
#
# Its cluster file and its job are tried too.  What it has to install is in
# install.sh.
#
# Without this test, the README could show an output that the library no longer
# prints.
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

# The commands before it, on what is built already: two ranks.
mkdir "$tmp/try" && ln -s "$top_srcdir/lib" "$tmp/try/lib"
ln -s "$top_builddir" "$tmp/try/build" && ln -s ../turn.c "$tmp/try/turn.c"
awk '/^```console$/ { inside = 1; next } /^```/ { inside = 0 } inside' "$readme" |
    sed -e '/bootstrap/d' -e 's/^\$ //' -e "s|^cc |${CC:-cc} $SANITIZER_CFLAGS |" >"$tmp/try.sh"
is "its first commands start two ranks" "$(
    cd "$tmp/try" && timeout 60 bash -e ../try.sh 2>&1 | tail -n 1)" \
    "rank 0 holds 0 1, 2 3, 8 9, ..."

# ---------------------------------------------------------------- cluster ---
cd "$tmp" || exit 1
block ini >pair.ini
block sh >job.sh
is "its cluster file is what the job asks for" \
    "$("$top_builddir/dtensor-conf" pair.ini 2>&1) $(
        sed -nE 's/.*--nodes=([0-9]+) --ntasks-per-node=([0-9]+).*/\1 \2/p' job.sh)" \
    "pair.ini: ok: 8 ranks on 2 nodes; meshes world(world=8), grid(dp=2,tp=4) 2 4"
bash -n job.sh
ok $? "its job is a script"
is "each of its steps ends when a rank fails" \
    "$(grep '^srun' job.sh | grep -vc -- '--kill-on-bad-exit=1 ')" 0
block conf >step.ini
is "its file for any allocation is good inside a step" "$(
    SLURM_STEP_NODELIST='n[0-1]' SLURM_STEP_TASKS_PER_NODE='4(x2)' \
        SLURM_JOB_ID=1 SLURM_STEP_ID=0 \
        "$top_builddir/dtensor-conf" step.ini 2>&1)" \
    "step.ini: ok: 8 ranks on 2 nodes; meshes world(world=8), grid(dp=2,tp=4)"
is "its program can say what the README says of grid" "$(
    grep -oE '"grid", "[^"]*"' "$readme")" '"grid", "S(0),S(1)"'
sed 's/^hosts.*/hosts = localhost/; s/^ranks.*/ranks = 8/' pair.ini >here.ini
sed 's/"world", "S(0)"/"grid", "S(0),S(1)"/; s/"S(1)"/"S(1),S(0)"/' turn.c >grid.c
# shellcheck disable=SC2086 # a list of words
${CC:-cc} -std=c11 $SANITIZER_CFLAGS -I"$top_srcdir/lib" -o grid grid.c \
    -L"$top_builddir/.libs" -ldtensor
is "and then does on eight ranks" "$(
    DTN_CLUSTER=here.ini LD_LIBRARY_PATH=$top_builddir/.libs timeout 60 \
        "$top_builddir/dtensor-run" -n 8 ./grid 2>&1 |
        grep -E ' on |^rank')" "f32[8,8]  S(0),S(1)  on grid(dp=2,tp=4)
f32[8,8]  S(1),S(0)  on grid(dp=2,tp=4)
rank 0 holds 0 1, 2 3, 8 9, ..."

# The job's last line, with two ranks of this host and little to move.
bench=$(sed -n 's/^srun .*dtensor-bench //p' job.sh)
# shellcheck disable=SC2086 # a list of words
timeout 120 "$top_builddir/dtensor-bench" --local 2 $bench -b 1K -e 4K -n 2 \
    >bench.out 2>&1
status=$?
if grep -q 'built without libjansson' bench.out; then
    skip_test "the job's dtensor-bench runs" "it was built without JSON"
else
    is "the job's dtensor-bench runs" \
        "$status $(grep -c '^# wrong results 0 ' bench.out) $(head -c 1 speed.json)" \
        "0 1 {"
fi

# ------------------------------------------------------------------ words ---
# The command that ./bootstrap demo ends with, on what is built already.
mkdir -p build/demo && ln -s "$top_builddir/dtensor-bench" build/demo
sed -n '/^demo)/,/;;/p' "$top_srcdir/bootstrap" |
    awk '/build\/demo\/dtensor-bench/ { inside = 1 } /;;/ { exit } inside' >demo.sh
timeout 120 bash demo.sh >demo.out 2>&1
is "the demo runs, and all it moves is right" \
    "$? $(grep -c '^# wrong results 0 ' demo.out) $(grep -c '^# after' demo.out)" \
    "0 1 1"
is "there are as many element types as it says" "$(
    grep -oE '[a-z]+ element types' "$readme")" "seventeen element types"
is "which is what the header has" "$(
    awk '/^enum dtensor_dtype/ { inside = 1 } /DTENSOR_NDTYPES/ { exit }
        inside && /^ +DTENSOR_/ { n++ } END { print n }' \
        "$top_srcdir/lib/dtensor/types.h")" 17
is "the commands of the README are words bootstrap knows" "$(
    grep -oE '\./bootstrap [a-z]+' "$readme" | sort -u |
    while read -r _ word; do
        grep -qE "^$word\)" "$top_srcdir/bootstrap" || echo "$word"
    done)" ""
is "the functions that the README names exist" "$(
    grep -oE 'dtensor_[a-z_]+\(\)' "$readme" | tr -d '()' | sort -u |
    while read -r name; do
        grep -qE "\b$name\(" "$top_srcdir"/lib/dtensor/*.h || echo "$name"
    done)" ""
is "the files the README names exist" "$(
    grep -oE '\((conf|man|tests|[A-Z]+\.md)[a-zA-Z0-9_./-]*\)' "$readme" |
    tr -d '()' | sort -u | while read -r file; do
        [ -e "$top_srcdir/$file" ] || echo "$file"
    done)" ""
done_testing
