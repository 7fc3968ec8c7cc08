#!/bin/bash
# manual.sh - the manual is well formed, complete, and its programs run
#
# Every page is read by mandoc, its links are followed, and its examples are
# compiled and run.
#
# Without this test, an example in the manual could stop compiling with any
# change of the header.
. "$top_srcdir/tests/tap.sh"
cd "$top_srcdir" || exit 1
library=$top_builddir/.libs/libdtensor.so
launcher=$top_builddir/dtensor-run
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
unset DTN_CLUSTER DTN_FAULT DTN_LOG

pages=$(echo man/*.[1-9])
pages3=$(echo man/*.3)
headers=(lib/dtensor.h lib/dtensor/*.h)

# plain [FILE...]: what the escapes of an example stand for
plain() {
    sed "s/\\\\(aq/'/g; s/\\\\(ha/^/g; s/\\\\(ti/~/g; s/\\\\(ga/\`/g
        s/\\\\&//g; s/\\\\-/-/g; s/\\\\e/\\\\/g" "$@"
}

# ---------------------------------------------------------------- lint ---
if command -v mandoc >/dev/null; then
    for page in $pages; do
        is "$page: mandoc has nothing to complain of" \
            "$(mandoc -T lint -W warning "$page" 2>&1)" ""
    done
else
    skip_test "mandoc has nothing to complain of" "mandoc is not installed"
fi
# One rule for all: the source is libdtensor, the date year-month-day or, in
# pages of tools, as mdoc wants it.
is "every page's foot says libdtensor, and a date" "$(
    for page in $pages; do
        grep -qE -e '^\.TH [A-Z0-9_-]+ [357] [0-9]{4}-[0-9]{2}-[0-9]{2} libdtensor ' \
            -e '^\.Os libdtensor$' "$page" || echo "$page"
        grep -qE '^\.(Dd [A-Z][a-z]+ [0-9]+, [0-9]{4}$|TH )' "$page" || echo "$page"
    done)" ""
is "no text line of the library's pages is longer than 80 columns" "$(
    for page in man/*.3 man/dtensor.7; do
        awk -v page="$page" '
            /^\.(EX|TS)/ { raw = 1 }
            /^\.(EE|TE)/ { raw = 0 }
            !raw && !/^\./ && length > 80 { print page ":" FNR }' "$page"
    done)" ""

# ----------------------------------------------------------- completeness ---
# Prototypes of the header, one a line, blanks squeezed; then of the pages.
awk '
    { gsub(/\/\*([^*]|\*+[^*\/])*\*+\//, "") }
    /\/\*/ { comment = 1 }
    /\*\// { comment = 0; next }
    comment || /^(#|typedef)/ { next }
    !text && !/^[a-z].*dtensor_[a-z0-9_]+\(/ { next }
    { text = text " " $0 }
    /;/ { print text; text = "" }' "${headers[@]}" |
    tr -s ' ' | sed 's/^ //; s/ $//' | sort >"$tmp/header"
for page in $pages; do
    awk '
        /^\.SH/ { inside = $2 == "SYNOPSIS"; next }
        inside && /^\.PP/ { if (text) print text; text = "" }
        inside && /^\.BI? .*typedef/ { next }
        inside && /^\.BI? [^#]/ {
            line = $0
            sub(/^\.BI? /, "", line)
            out = ""
            while (line != "") {
                if (match(line, /^"[^"]*"/)) {
                    out = out substr(line, 2, RLENGTH - 2)
                    line = substr(line, RLENGTH + 1)
                } else {
                    match(line, /^[^ ]+/)
                    out = out substr(line, 1, RLENGTH)
                    line = substr(line, RLENGTH + 1)
                }
                sub(/^ /, "", line)
            }
            text = text " " out
        }
        END { if (text) print text }' "$page"
done | grep 'dtensor_.*(' | tr -s ' ' | sed 's/^ //; s/ $//' |
    sort >"$tmp/pages"
is "the header has functions" "$(awk 'END { print (NR > 40) }' "$tmp/header")" 1
is "the prototypes of the manual are those of the header" \
    "$(diff "$tmp/header" "$tmp/pages")" ""

# types [FILE...]: each struct and enum that is defined, with its comments, on a
# line of its own, whatever the layout
types() {
    awk '
        /^(struct|enum) dtensor_[a-z_]+ \{$/ { text = ""; inside = 1 }
        inside { text = text " " $0 }
        inside && /^\};$/ { print text; inside = 0 }' "$@" |
        sed -E 's,/\*|\*/, ,g; s/  +\* / /g' | tr -s ' ' | sort
}
# shellcheck disable=SC2086
plain $pages3 | types >"$tmp/types.pages"
types "${headers[@]}" >"$tmp/types"
is "the header has structs and enums" \
    "$(awk 'END { print (NR > 40) }' "$tmp/types")" 1
is "each of them is on one page, with its fields, values and their meaning" \
    "$(diff "$tmp/types" "$tmp/types.pages")" ""

functions=$(grep -oE 'dtensor_[a-z0-9_]+\(' "$tmp/header" | tr -d '(' | sort)
# shellcheck disable=SC2086 # several files
awk -f man/names.awk $pages3 | sort >"$tmp/names"
is "every function is in the NAME line of one page, and nothing else is" \
    "$(diff <(echo "$functions") <(cut -d' ' -f1 "$tmp/names"))" ""
is "every page is named after a function" "$(
    for page in man/*.3; do
        name=$(basename "$page" .3)
        grep -qx "$name" <<<"$functions" || echo "$name"
    done)" ""
is "dtensor(7) lists every function once, by topic" "$(
    diff <(awk '/^\.SH/ { inside = $2 == "FUNCTIONS" }
        inside && /^\.BR dtensor_/ { print $2 }' man/dtensor.7 | sort) \
        <(echo "$functions"))" ""

# ------------------------------------------------------------------ man -k ---
# What man -k and apropos search: the NAME sections.  A word, and the page that
# one who looks for it wants.
# shellcheck disable=SC2086
awk -f man/names.awk $pages >"$tmp/whatis"
is "man -k finds the words that people look for" "$(
    while read -r page words; do
        for word in $words; do
            grep " $page " "$tmp/whatis" | grep -qiF -- "${word//_/ }" ||
                echo "$word: not in NAME of $page"
        done
    done <<'WORDS'
dtensor_alloc.3 RDMA shared memory
dtensor_alloc_on.3 GPU CUDA
dtensor_allreduce.3 all-reduce broadcast all-gather reduce-scatter all-to-all collective
dtensor_attention.3 ring_attention context_parallel
dtensor_call_run.3 non-blocking persistent
dtensor_call_ways.3 cost algorithm
dtensor_debug_begin.3 profile trace
dtensor_errname.3 error version
dtensor_generator_create.3 random seed generator
dtensor_init.3 initialize finalize
dtensor_mesh_create.3 device mesh
dtensor_parallelize.3 tensor_parallelism
dtensor_placements_parse.3 shard replicate partial placement
dtensor_plan_start.3 non-blocking redistribute
dtensor_rand.3 random
dtensor_simulate.3 simulate machine
dtensor_redistribute.3 reshard
dtensor_redop_create.3 user-defined
dtensor_register.3 zero_copy
dtensor_save.3 checkpoint npy
dtensor_send.3 point-to-point receive
dtensor_tape_create.3 gradient backward autograd
dtensor_zeros.3 create
dtensor-bench.1 benchmark latency bandwidth
dtensor-cluster.5 INI hosts
dtensor-conf.1 check
dtensor-faults.7 timeout failure
dtensor-random.7 Philox seed
dtensor-rdma.7 RDMA InfiniBand RoCE verbs
dtensor-repro.7 reproducible
dtensor-run.1 launcher
WORDS
)" ""
if command -v lexgrog >/dev/null; then
    is "man-db reads the NAME section of every page" "$(
        for page in $pages; do
            lexgrog "$page" >/dev/null 2>&1 || echo "$page"
        done)" ""
else
    skip_test "man-db reads the NAME sections" "lexgrog is not installed"
fi

sections="NAME,SYNOPSIS,DESCRIPTION,RETURN VALUE,ERRORS,EXAMPLES,SEE ALSO"
is "every page of section 3 has its sections in order" "$(
    for page in $pages3; do
        sed -n 's/^\.SH //p' "$page" | grep -v '^NOTES$' | paste -sd, |
            grep -qxF "$sections" || echo "$page"
    done)" ""
is "pages that are referred to exist" "$(
    sed -nE 's/^\.BR (dtensor[a-z_\\-]*) \(([1-9])\).*/\1.\2/p' man/*.[1-9] |
        tr -d \\\\ | sort -u | while read -r page; do
            [ -r "man/$page" ] || grep -q "^${page%.3} " "$tmp/names" ||
                echo "$page"
        done)" ""
is "every page is installed" "$(
    for page in $pages; do
        grep -qwF "%D%${page#man}" man/Makefile.inc || echo "$page"
    done)" ""
is "dtensor(7) names every error code" "$(
    sed -nE 's/^ +(DTENSOR_E[A-Z]+) +=.*/\1/p' "${headers[@]}" |
        while read -r name; do
            grep -qw "$name" man/dtensor.7 || echo "$name"
        done)" ""
is "dtensor(7) names every environment variable the library reads" "$(
    grep -rhoE '"(DTN|SLURMD?)_[A-Z_]+"' lib transport | tr -d '"' | sort -u |
        while read -r name; do
            grep -qw "$name" man/dtensor.7 || echo "$name"
        done)" ""

# ------------------------------------------------------------------- HTML ---
# broken FOLDER: links of its pages that lead nowhere, and names of our pages
# that are no links
broken() {
    (
        cd "$1" || exit
        awk '
            FNR == 1 { page = substr(FILENAME, 3); there[page] }
            {
                word = second ? "href" : "(id|name)"
                for (text = $0; match(text, word "=\"[^\"]*\"");
                     text = substr(text, RSTART + RLENGTH)) {
                    at = substr(text, RSTART, RLENGTH)
                    gsub(/^[^"]*"|"$/, "", at)
                    if (!second)
                        there[page "#" at]
                    else if (!((at ~ /^#/ ? page at : at) in there))
                        print page ": " at
                }
            }' ./*.html second=1 ./*.html
        grep -oHE '(^|[^>])dtensor[a-z0-9_-]*(</b>)?\([1-9]\)' -- *.html
    )
}
# shellcheck disable=SC2086
if mandoc -Thtml </dev/null >/dev/null 2>&1; then
    sh man/html.sh "$tmp/html" "mandoc -Thtml" $pages 2>"$tmp/err"
    is "each page becomes HTML, by mandoc" "$? $(cat "$tmp/err") $(
        find "$tmp/html" -type f | wc -l)" "0  $(($(wc -w <<<"$pages") + 1))"
    is "every link of it leads to a page" "$(broken "$tmp/html")" ""
    is "links of the page of all functions: one for each" "$(
        sed -n '/id="FUNCTIONS"/,/id="ERRORS"/p' "$tmp/html/dtensor.7.html" |
            grep -oE '>dtensor_[a-z0-9_]*\(3\)</a>' | sort -u | wc -l)" \
        "$(wc -l <<<"$functions")"
else
    skip_test "the pages as HTML, by mandoc" "mandoc is not installed"
fi
# shellcheck disable=SC2086
if groff -mandoc -Thtml </dev/null >/dev/null 2>&1; then
    sh man/html.sh "$tmp/groff" "groff -mandoc -Thtml" man/dtensor-run.1 \
        man/dtensor_init.3 2>"$tmp/err"
    is "by groff too, with links" "$? $(cat "$tmp/err") $(
        cd "$tmp/groff" && echo * && grep -o 'href="dtensor-run.1.html"' \
            dtensor_init.3.html | sort -u)" \
        "0  dtensor-run.1.html dtensor_init.3.html index.html
href=\"dtensor-run.1.html\""
else
    skip_test "the pages as HTML, by groff" "groff cannot make HTML here"
fi

# --------------------------------------------------------------- programs ---
if [ ! -r "$library" ]; then
    skip_test "programs of the manual" "no shared library in $top_builddir"
    done_testing
fi

# program PAGE: its example that has a main(), as C.
program() {
    awk '
        /^\.SH/ { inside = $2 == "EXAMPLES" }
        inside && /^\.EX/ { text = ""; example = 1; next }
        inside && /^\.EE/ { if (text ~ /int main\(/) printf "%s", text
                            example = 0 }
        example { text = text $0 "\n" }' "$1" | plain
}

# runs CLAIM COMMAND...: it exits with 0 and says nothing on stderr
runs() {
    local claim=$1
    shift
    timeout -k 5 60 "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
    is "$claim" "$? $(cat "$tmp/err")" "0 "
}

for page in $pages; do
    name=$(basename "$page")
    program "$page" >"$tmp/$name.c"
    [ -s "$tmp/$name.c" ] || continue
    # shellcheck disable=SC2086
    ${CC:-cc} -std=c11 -Wall -Wextra -Werror $SANITIZER_CFLAGS -Ilib \
        -o "$tmp/$name.bin" "$tmp/$name.c" "$library" \
        -Wl,-rpath,"$top_builddir/.libs" >"$tmp/cc.log" 2>&1
    is "$page: the program compiles" "$? $(cat "$tmp/cc.log")" "0 "
    [ -x "$tmp/$name.bin" ] || continue
    is "$page: the program fits 80 columns" \
        "$(awk 'length > 80' "$tmp/$name.c")" ""
    runs "$page: it runs as one rank" "$tmp/$name.bin"
    if [ -x "$launcher" ]; then
        for n in 2 3; do
            runs "$page: it runs as $n ranks" "$launcher" -n $n "$tmp/$name.bin"
        done
    else
        skip_test "$page: it runs as 2 ranks" "dtensor-run is not built"
    fi
done
is "every page of section 3 has a program" "$(
    for page in $pages3; do
        [ -s "$tmp/$(basename "$page").c" ] || echo "$page"
    done)" ""
done_testing
