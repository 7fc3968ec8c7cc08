#!/bin/bash
# options.sh - each tool's --help and its page name the same options and exit
# codes, and the tool knows them
. "$top_srcdir/tests/tap.sh"
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
unset DTN_CLUSTER DTN_FAULT DTN_LOG "${!SLURM@}"

# helped TOOL...: options of its --help, one a line, letters first
helped() {
    "$top_builddir/$1" "${@:2}" --help |
        sed -nE 's/^ +((-[A-Za-z], )?--[a-z-]+).*/\1/p' | tr -d ' ' |
        tr , '\n' | sort
}

# paged PAGE SECTION: options that the items of a page describe; with "rng"
# those of the section RANDOM NUMBERS, else all others.
paged() {
    awk -v rng="$2" '
        /^\.Sh/ { inside = (/RANDOM NUMBERS/ ? "rng" : "") == rng }
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
    command=$top_builddir/$tool
    if [ ! -x "$command" ]; then
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
                grep -E -e "unknown option:? $option\$|: $option: no such option"
        done <"$tmp/help")" ""

    for option in --nope -?; do
        "$command" "$option" >"$tmp/out" 2>"$tmp/err" </dev/null
        is "$tool $option: 2, and where to look" "$? $(cat "$tmp/out") $(
            grep -c "^$tool: .*option" "$tmp/err") $(
            grep -c -e "$tool --help" "$tmp/err")" "2  1 1"
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
    is "$tool(1) says what its exit codes are" "$(
        sed -n '/^\.Sh EXIT STATUS/,/^\.Sh/p' "$top_srcdir/man/$tool.1" |
            grep -oE '(^|[^0-9])[0-3]([^0-9]|$)' | tr -cd '0-9' | grep -o 2)" 2
done

if [ -x "$top_builddir/dtensor-bench" ]; then
    is "dtensor-bench(1) describes the options of rng, and no others" \
        "$(paged dtensor-bench rng)" "$(helped dtensor-bench rng | grep -vx -e --help)"
fi
done_testing
