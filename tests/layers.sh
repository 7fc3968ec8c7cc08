#!/bin/bash
# layers.sh - rooms stand on each other, and no two files stand on one another
#
# The rooms and their order are those of Makefile.am.  What a file refers to is
# asked of its object (nm) and of its #include lines.  Without this test the
# layers of the house would be a drawing only: an include of a header from above,
# or two files that call each other, would pass every other test.
. "$top_srcdir/tests/tap.sh"
cd "$top_srcdir" || exit 1

rooms=$(sed -n 's,^include \(.*\)/Makefile\.inc$,\1,p' Makefile.am |
    grep -E '^(lib/|transport)')

# "FILE TYPE NAME" of the symbols of all objects below the folders; FILE is the
# source without suffix, such as lib/base/error
symbols() {
    (cd "$top_builddir" && find "$@" -name '*.o' -exec nm -A {} +) |
        sed -E 's,\.libs/,,; s,/libdtn_la-,/,; s,\.o:, ,' |
        awk 'FNR == NR { sources[$1]; next } $1 in sources' \
            <(find "$@" -name '*.c' | sed 's,\.c$,,') -
}

# "FILE FILE NAME": the first refers to NAME, which the second defines.
references() {
    awk '
        $2 == "U" { used[$1 " " $3] = 1; next }
        $3 ~ /[A-TV-Z]/ { home[$4] = $1 }
        END {
            for (u in used) {
                split(u, at, " ")
                if (at[2] in home && home[at[2]] != at[1])
                    print at[1], home[at[2]], at[2]
            }
        }' | sort
}

# "FILE HEADER" for each include of a header of the library.
includes() {
    find lib transport -name '*.[ch]' ! -path 'lib/dtensor*' \
        -exec grep -HE '^#include "' {} + |
        sed 's,:#include "\([^"]*\)".*, \1,' |
        grep -vE ' (dtensor|config)\.h$' |
        awk '{ print $1, $2 ~ /^transport\// ? $2 : "lib/" $2 }'
}

# Of lines "FILE FILE ..." those whose second is in a room above the first's.
upward() {
    awk -v rooms="$rooms" '
        function floor(file) {
            while (sub(/\/[^\/]*$/, "", file))
                if (file in level)
                    return level[file]
            return -1
        }
        BEGIN { n = split(rooms, name); for (i = 1; i <= n; i++) level[name[i]] = i }
        floor($2) > floor($1) || floor($1) < 0 || floor($2) < 0'
}

# The files of each circle in lines "FILE FILE", one circle a line.
circles() {
    cut -d' ' -f1,2 | tsort 2>&1 >/dev/null | awk '
        /input contains a loop/ { if (line) print line; line = ""; next }
        { sub(/^tsort: /, ""); line = line (line ? " " : "") $0 }
        END { if (line) print line }' | sort -u
}

calls=$(symbols lib transport | references)
if [ "$(wc -l <<<"$calls")" -gt 100 ]; then
    is "no file calls a room above its own" "$(upward <<<"$calls")" ""
    is "no files call each other in a circle" "$(circles <<<"$calls")" ""
else
    skip_test "no file calls a room above its own" "no objects in $top_builddir"
    skip_test "no files call each other in a circle" "no objects"
fi
calls=$(symbols tools/{conf,draw,plan,run} | references)
if [ "$(wc -l <<<"$calls")" -gt 40 ]; then
    is "no files of a tool call each other in a circle" \
        "$(circles <<<"$calls")" ""
else
    skip_test "no files of a tool call each other in a circle" "no objects"
fi
is "no file includes a header of a room above its own" \
    "$(includes | upward)" ""
is "no headers include each other in a circle" \
    "$(includes | grep -E '^[^ ]*\.h ' | circles)" ""
done_testing
