#!/bin/bash
# options.sh - each tool's --help and its page name the same options
#
# The exit codes are compared too, the tool must know each option, and the
# commands that its page shows must work.
#
# Without this test, the manual could show options that do not exist.
. "$top_srcdir/tests/tap.sh"
tools_find
export PATH=$tools:$top_builddir:$PATH
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
unset DTN_CLUSTER DTN_FAULT DTN_LOG "${!SLURM@}"

# helped TOOL...: options of its --help, one a line, letters first
helped() {
    "$1" "${@:2}" --help |
        sed -nE 's/^ +((-[A-Za-z], )?--[a-z-]+).*/\1/p' | tr -d ' ' |
        tr , '\n' | sort
}

# paged PAGE SECTION: options that the items of a page describe; with "rng"
# those of the section RANDOM NUMBERS, with "op" of OPERATORS, else all others.
paged() {
    awk -v section="$2" '
        /^\.Sh/ {
            inside = (/RANDOM NUMBERS/ ? "rng" : /OPERATORS/ ? "op" : "") == \
                section
        }
        inside && /^\.It Fl/ {
            flag = 0
            for (i = 2; i <= NF; i++) {
                if ($i == "Fl")
                    flag = 1
                else if ($i ~ /^(Ar|Cm|Ns|Op)$/)
                    flag = 0
                else if (flag && $i != "," && $i != "|") {
                    name = $i
                    gsub(/\\/, "", name)
                    print "-" name
                }
            }
        }' "$top_srcdir/man/$1.1" | sort
}

for tool in dtensor-bench dtensor-conf dtensor-plan dtensor-run; do
    if ! command=$(command -v "$tool") || [[ $command != "$top_builddir"/* ]]; then
        skip_test "$tool and its page" "it is not built"
        continue
    fi
    helped $tool >"$tmp/help"
    is "$tool --help lists options" \
        "$(grep -cxE -e '--(help|version)|-[hV]' "$tmp/help")" 4
    is "$tool(1) describes these, and no others" "$(paged $tool "")" \
        "$(cat "$tmp/help")"

    # --nope ends it, be it an option that there is not or an argument that will
    # not do.
    is "$tool knows them all" "$(
        while read -r option; do
            "$command" "$option" --nope </dev/null 2>&1 >/dev/null |
                grep -E -e ": $option: no such option"
        done <"$tmp/help")" ""

    for option in --nope -?; do
        "$command" "$option" >"$tmp/out" 2>"$tmp/err" </dev/null
        is "$tool $option: 2, and where to look" "$? $(cat "$tmp/out") $(
            grep -c "^$tool: .*option" "$tmp/err") $(
            grep -cxF "Try '$tool --help' for more information." "$tmp/err")" \
            "2  1 1"
    done
    for option in --help -h --version -V; do
        "$command" $option >"$tmp/out" 2>"$tmp/err" </dev/null
        is "$tool $option: 0, on the standard output" \
            "$? $(grep -c . "$tmp/err") $(head -n 1 "$tmp/out" |
                grep -cE "^(Usage: )?$tool ")" "0 0 1"
        if [ -w /dev/full ]; then
            "$command" $option >/dev/full 2>"$tmp/err" </dev/null
            is "$tool $option onto a full disk fails, and says so" \
                "$(($? != 0)) $(grep -c "^$tool: .*No space left" "$tmp/err")" "1 1"
        fi
    done
    "$command" --version >&- 2>"$tmp/err" </dev/null
    is "$tool --version without a standard output fails, and says so" \
        "$(($? != 0)) $(grep -c "^$tool: .*Bad file" "$tmp/err")" "1 1"
    "$command" --version >"$tmp/out" </dev/null
    is "$tool --version: name, version, build, licence" "$(
        grep -cE -e "^$tool [0-9]+\.[0-9]+\.[0-9]+ \([a-z0-9., ]+\)$" \
            -e '^Licence: BSD-3-Clause$' "$tmp/out") $(wc -l <"$tmp/out")" "2 2"
    is "$tool(1) says what its exit codes are" "$(
        sed -n '/^\.Sh EXIT STATUS/,/^\.Sh/p' "$top_srcdir/man/$tool.1" |
            grep -oE '(^|[^0-9])[0-3]([^0-9]|$)' | tr -cd '0-9' | grep -o 2)" 2
done

# Commands of the pages' examples, each with what it is said to print, and of the
# files in conf.  What wants a cluster, or the reader's program, is left out.
typed() {
    awk '/^\.Sh/ { inside = /EXAMPLES|RANDOM/ }
        inside && sub(/^\.Dl \$ /, "$ ")
        /^\.Bd/ { shown = inside }
        /^\.Ed/ { shown = 0 }
        shown && !/^\./' "$top_srcdir/man/$1.1" |
        sed "s/\\\\(dq/\"/g; s/\\\\(aq/'/g; s/\\\\-/-/g; s/\\\\e/\\\\/g"
    sed -nE "s/^;.* +($1 .*\\.ini)\$/\$ \\1/p" "$top_srcdir"/conf/*.ini
}

# missing LINES: those that are not in the file "out"; pids differ
missing() { grep -v '^dtensor-run: ' <<<"$1" | grep -vxFf out; }

cp "$top_srcdir"/conf/*.ini "$tmp" && cd "$tmp" && chmod 600 ./*.ini || exit 1
seq 1234 >words
for tool in dtensor-bench dtensor-conf dtensor-plan dtensor-run; do
    [ -x "$top_builddir/$tool" ] || continue
    typed $tool >lines
    mapfile -t starts < <(grep -n '^\$ ' lines | cut -d : -f 1)
    for n in "${starts[@]}"; do
        command=$(sed -n "${n}s/^. //p" lines)
        shown=$(sed "1,${n}d; /^\\\$ /,\$d" lines)
        expected=0
        case $command in
        srun* | jq* | *./prog* | *\\ | *a.ini*) continue ;;
        *'exit $'*) expected=1 ;;
        esac
        (umask 077 && timeout 600 bash -c "$command") >out 2>err </dev/null
        status=$?
        if grep -q 'without libjansson' err; then
            skip_test "\$ $command" "$(head -n 1 err)"
        else
            is "\$ $command" "$status $(missing "$shown")" "$expected "
        fi
    done
done

# Else the first file or socket would be the standard output.
if [ -x "$top_builddir/dtensor-bench" ]; then
    dtensor-bench --local 2 allreduce -b 8 -e 8 -n 1 \
        --csv rows >&- 2>err </dev/null
    is "dtensor-bench without a standard output fails, and says so" \
        "$(($? != 0)) $(grep -c "^dtensor-bench: .*Bad file" err)" "1 1"
fi

if [ -x "$top_builddir/dtensor-bench" ]; then
    for command in rng op; do
        is "dtensor-bench(1) describes the options of $command, and no others" \
            "$(paged dtensor-bench $command)" \
            "$(helped dtensor-bench $command | grep -vx -e --help)"
    done
fi
if [ -x "$top_builddir/dtensor-bench" ]; then
    nvcc=$(grep -c '^#define DTN_BUILD .*cuda kernels yes' "$top_builddir/config.h")
    is "dtensor-bench --version says whether kernels are built in" \
        "$(dtensor-bench --version | grep -o 'cuda [^),]*')" \
        "cuda kernels $([ "$nvcc" = 1 ] && echo yes || echo no)"
fi

# bootstrap knows what its --help says, and the README what it is for.
for option in --help -h; do
    "$top_srcdir/bootstrap" $option >"$tmp/out" 2>"$tmp/err" </dev/null
    is "./bootstrap $option: 0, on the standard output" \
        "$? $(grep -oE '^  ./bootstrap [-a-z]+' "$tmp/out" | sed 's/.* //' |
            paste -sd' ') $(cat "$tmp/err")" "0 demo build check ci --help "
done
"$top_srcdir/bootstrap" nonsense >"$tmp/out" 2>"$tmp/err" </dev/null
is "./bootstrap nonsense: 2, and what there is" "$? $(cat "$tmp/out" "$tmp/err")" \
    '2 bootstrap: unknown word "nonsense"; expected nothing, demo, build, check, ci or --help'
done_testing
