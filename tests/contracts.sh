#!/bin/bash
# contracts.sh - each public function states its contract
#
# Each function of the public headers says whether it is collective, whether it
# blocks, who owns what, and its errors; the ERRORS of the manual are those of
# the header.
#
# Without this test, a new function could be documented by its prototype alone,
# or the manual could list other errors.
. "$top_srcdir/tests/tap.sh"
cd "$top_srcdir" || exit 1
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

awk -f tests/contracts.awk lib/dtensor/*.h >"$tmp/contracts"

# lacking PROTOTYPE-PATTERN WORD: functions whose prototype is so, without it
lacking() {
    awk -F '\t' -v pattern="$1" -v word="$2" '
        $2 == "PROTOTYPE" && $3 ~ pattern { wanted[$1] }
        $2 == word { delete wanted[$1] }
        END { for (name in wanted) print name ": " word }' "$tmp/contracts" |
        sort
}

is "the header has functions" \
    "$(awk '$2 == "PROTOTYPE" { n++ } END { print (n > 100) }' "$tmp/contracts")" 1
is "every function is described" "$(lacking . WORDS)" ""
fallible='struct dtensor_error [*]err'
for word in COLLECTIVE BLOCKS ERRORS SEMANTICS; do
    is "a function that can fail states ${word,,}" \
        "$(lacking "$fallible" $word)" ""
done
is "a function that hands out a pointer states whose it is" \
    "$(lacking '[*][*][a-z]+p[,)]|[*]pair\[|^[^(]*[*][^(]*[(]' OWNS)" ""

# Codes by function: those of its Errors, and of functions these refer to.
codes=$(sed -nE 's/^ +DTENSOR_(E[A-Z]+) +=.*/\1/p' lib/dtensor/types.h |
    paste -sd '|')
awk -F '\t' -v codes="^($codes)\$" '
    $2 == "PROTOTYPE" { known[$1] }
    $2 != "ERRORS" { next }
    {
        text = $3
        while (match(text, /(those of|as) dtensor_[a-z_]+\(\)( and dtensor_[a-z_]+\(\))*/)) {
            more = substr(text, RSTART, RLENGTH)
            text = substr(text, 1, RSTART - 1) substr(text, RSTART + RLENGTH)
            while (match(more, /dtensor_[a-z_]+/)) {
                refers[$1] = refers[$1] " " substr(more, RSTART, RLENGTH)
                more = substr(more, RSTART + RLENGTH)
            }
        }
        gsub(/dtensor_[a-z_]+\(\)/, "", text)
        while (match(text, /(^|[^A-Z])E[A-Z][A-Z]+/)) {
            code = substr(text, RSTART, RLENGTH)
            sub(/^[^E]/, "", code)
            if (code !~ codes)
                print $1, "?" code
            own[$1] = own[$1] " " code
            text = substr(text, RSTART + RLENGTH)
        }
    }
    function told(name, depth,    list, n, i) {
        n = split(own[name], list, " ")
        for (i = 1; i <= n; i++)
            print asked, list[i]
        n = split(refers[name], list, " ")
        for (i = 1; i <= n; i++)
            if (!(list[i] in known) || depth > 9)
                print asked, "?" list[i]
            else
                told(list[i], depth + 1)
    }
    END {
        for (asked in known)
            told(asked, 0)
    }' "$tmp/contracts" | sort -u >"$tmp/codes"
is "Errors speaks of codes and functions that there are" \
    "$(grep -F '?' "$tmp/codes")" ""
is "a function that can fail has a code" "$(
    awk -F '\t' -v pattern="$fallible" '
        $2 == "PROTOTYPE" && $3 ~ pattern { print $1 }' "$tmp/contracts" |
        while read -r name; do
            grep -q "^$name E" "$tmp/codes" || echo "$name"
        done)" ""

# The same by page: the tags of its ERRORS against the codes of its functions.
pages=$(echo man/*.3)
for page in $pages; do
    is "$page: ERRORS are those of the header" "$(
        awk -v codes="^($codes)\$" '
            /^\.SH/ { inside = $2 == "ERRORS" }
            inside && tag {
                gsub(/[",]/, " ")
                for (i = 2; i <= NF; i++)
                    if ($i ~ codes)
                        print $i
                    else
                        print "?" $i
            }
            { tag = /^\.T[PQ]/ }' "$page" | sort | paste -sd ' ')" "$(
        awk '
            /^\.SH/ { inside = $2 == "NAME" }
            inside && !/^\./ {
                sub(/\\-.*/, "")
                gsub(/,/, " ")
                for (i = 1; i <= NF; i++)
                    print $i
            }' "$page" | while read -r name; do
            sed -n "s/^$name //p" "$tmp/codes"
        done | sort -u | paste -sd ' ')"
done

is "no line of the header is longer than 80 columns" \
    "$(awk 'length > 80 { print FILENAME ":" FNR }' lib/dtensor.h lib/dtensor/*.h)" ""
done_testing
