#!/bin/bash
# house.sh - the rules of the house that a script can check
#
# Exports, names, sizes and widths, comments, and lists of files.
#
# Without this test, each of these rules would hold only until somebody is in a
# hurry.
. "$top_srcdir/tests/tap.sh"
cd "$top_srcdir" || exit 1
library=$top_builddir/.libs/libdtensor.so

is "tools include dtensor.h and their own headers only" \
    "$(find tools -name '*.[ch]' -exec grep -nE '^#include "' {} + |
        grep -vE '#include "(dtensor|tools/[a-z_/]+|config)\.h"')" ""

declared=$(grep -ohE '\bdtensor_[a-z0-9_]+ ?\(' lib/dtensor.h lib/dtensor/*.h | tr -d ' (' |
    grep -vE '^dtensor_(init|fini)$' | cat - <(echo dtensor_init; echo dtensor_fini) |
    grep -vE '^dtensor_[a-z]+_f$' | sort -u)
if [ -r "$library" ]; then
    exported=$(nm -D --defined-only "$library" | awk '$2 ~ /[TDBR]/ { print $3 }' |
        sed 's/@.*//' | sort -u)
    is "the library exports what dtensor.h declares, no more and no less" \
        "$(diff <(echo "$declared") <(echo "$exported"))" ""
else
    skip_test "exports" "no shared library in $top_builddir"
fi

# Names that begin with two underscores are the compiler's.
objects=$(find "$top_builddir"/lib "$top_builddir"/transport -path '*/.libs/*.o')
if [ -n "$objects" ]; then
    is "every name that files share begins with dtn_ or dtensor_" "$(
        xargs nm -gA --defined-only <<<"$objects" |
            sed "s,^$top_builddir/,,; s,\.libs/.* , ," |
            grep -vE " (dtn_|dtensor_|__)")" ""
else
    skip_test "names that files share" "no objects in $top_builddir"
fi
is "and so does every tag in a header" "$(
    grep -rnE '^ *(struct|enum|union) [a-z0-9_]+ \{' lib transport --include='*.h' |
        grep -vE ' (dtn|dtensor)(_[a-z0-9_]+)? \{')" ""

# Three headers are loops that their .c file includes once for each width; their
# names end there.
is "and every macro, enumerator and inline function of a header with DTN_, dtn_" "$(
    find lib transport -name '*.h' ! -path 'lib/dtensor*' \
        ! -name reduce_loops.h ! -name '*_lanes.h' ! -name elementary.h -exec awk '
        function bare(text) {
            gsub(/\/\*.*\*\/|\/\*.*|^ \*.*|^ *\*\//, "", text)
            return text
        }
        FNR == 1 { list = 0 }
        { $0 = bare($0) }
        /^ *# *define / && $2 !~ /^DTN_/ { print FILENAME, $2 }
        /^static inline / && !/^static inline [^(]* \**(dtn_[a-z0-9_]*\(|$)/ {
            getline more
            if (/\(/ || bare(more) !~ /^ *\**dtn_/) print FILENAME, $0 }
        /(^| )enum [a-z_]* ?\{/ { list = 1; sub(/.*\{/, "") }
        list {
            line = $0; done = sub(/\}.*/, "", line); gsub(/\([^()]*\)|=[^,]*/, "", line)
            n = split(line, name, /,/)
            for (i = 1; i <= n; i++)
                if (name[i] ~ /^ *[A-Za-z_]/ && name[i] !~ /^ *DTN_/) print FILENAME, name[i]
            if (done) list = 0 }' {} +)" ""

is "no tag is defined twice" "$(
    grep -rhoE --include='*.[ch]' \
        '^ *(struct|enum|union) [a-z0-9_]+ \{' lib transport |
        awk '{ print $2 }' | sort | uniq -d)" ""
# A name in fewer than three files is used where it is defined only, or by an
# inline function of its header.
is "what only one file uses is static" "$(
    comm -12 <(grep -rhE --include='*.h' \
        '^[a-z][^(]*\bdtn_[a-z0-9_]+\(' lib transport |
        grep -vE '^(static|typedef) ' | grep -oE '\bdtn_[a-z0-9_]+\(' | tr -d '(' | sort -u) \
        <(grep -roE --include='*.[ch]' '\bdtn_[a-z0-9_]+\b' lib transport tests |
            sort -u | cut -d: -f2 | sort | uniq -c | awk '$1 < 3 { print $2 }' | sort) |
        while read -r name; do
            [ "$(grep -rhw --include='*.h' "$name" lib transport | wc -l)" -gt 1 ] ||
                echo "$name"
        done)" ""
is "no internal function has more than seven parameters" "$(
    find lib transport tools -name '*.[ch]' ! -path '*/cuda/*' -exec awk '
        FNR == 1 { text = "" }
        /^[a-z].*[a-z0-9_]+\(/ && !/^(return|else|typedef) / && text == "" { text = " " }
        text != "" { text = text $0 }
        text ~ /\)[^()]*$/ { n = gsub(/,/, "", text)
            sub(/^[^(]* [* ]*/, "", text); name = text; sub(/\(.*/, "", name)
            if (n > 6 && name !~ /^dtensor_/) print FILENAME, name
            text = "" }' {} + | sort -u)" ""

is "every exported function is in the NAME line of a man page" \
    "$(comm -23 <(echo "$declared") <(
        awk -f man/names.awk man/*.3 | cut -d' ' -f1 | sort))" ""
is "every exported function is called by a test" "$(
    comm -23 <(echo "$declared") \
        <(grep -rohwE --include="*.[ch]" 'dtensor_[a-z0-9_]+' tests | sort -u))" ""

long=$(find lib tools transport tests -name '*.[ch]' -exec wc -l {} + |
    awk '$1 > 500 && $2 != "total"')
is "no file holds more than 500 lines" "$long" ""

mapfile -t sources < <(find lib transport tools tests -name '*.c')

# A function body starts with "{" in the first column and ends with "}" there.
long=$(awk '
    FNR == 1 { start = 0 }
    /^\{/ && previous ~ /\)$/ { start = FNR; name = previous }
    /^\}/ && start { if (FNR - start > 50) print FILENAME ":" start; start = 0 }
    { previous = $0 }' "${sources[@]}")
is "no function is longer than 50 lines" "$long" ""

# A fragment names the files of its folder and those below as %D%/NAME; a test
# program NAME has the source NAME.c.
mapfile -t fragments < <(find lib transport tools tests -name Makefile.inc)
is "every source is in the Makefile.inc of its room, and so in the tarball" "$(
    awk '
        FNR == 1 { folder = FILENAME; sub(/\/[^\/]*$/, "", folder) }
        FILENAME ~ /Makefile/ {
            gsub(/%D%/, folder)
            n = split($0, word, /[^A-Za-z0-9_.\/-]+/)
            for (i = 1; i <= n; i++)
                listed[word[i]]
            next
        }
        { program = $0; sub(/\.c$/, "", program) }
        !($0 in listed) && !(program in listed)
        ' Makefile.am "${fragments[@]}" \
        <(find lib transport tools tests -name '*.[ch]'))" ""

is "what the library opens is closed in a program that another thread starts" "$(
    grep -rnE 'fopen\([^;]*, "[rwa]\+?b?"\)' --include='*.[ch]' lib transport)" ""

is "nothing is left to be done in the sources' own words" \
    "$(grep -rnE '\b(TODO|FIXME|XXX|not implemented|unimplemented)\b' lib transport tools)" ""

# What a comment of a test names has to be in the repository.
is "every file that a comment of a test names is there" "$(
    grep -rnE '^ *(/?\*|#) ' --include='*.[ch]' --include='*.sh' --include='*.py' tests |
        awk '
        FNR == NR {                      # a name is the end of a path, or all
            for (path = $0; path; path = substr(path, length(part) + 2)) {
                there[path]
                part = path; sub(/\/.*/, "", part)
            }
            next
        }
        {
            at = $0
            sub(/: *[\/*#].*/, "", at)
            for (i = 2; i <= NF; i++) {
                gsub(/^[^a-z0-9.\/_]+|[^a-z0-9]+$/, "", $i)
                if ($i ~ /^[a-z0-9_.\/-]*[a-z0-9]\.(c|h|sh|py|md|txt|awk|golden)$/ &&
                    !($i in there))
                    print at ": " $i
            }
        }' <(find lib transport tools tests man conf doc -type f; ls) -)" ""

# "Without this test, ..." begins the sentence that says what would go unseen.
is "every test says in its opening comment what would break without it" "$(
    for test in tests/*/test_*.c $(grep -lE '^\. .*(tap|inside)\.sh"' tests/*.sh tests/*/*.sh |
            grep -vE '/(inside|figures|uml-guest)\.sh'); do
        awk -v mark='Without (this test|it)[, ]' '
            /^#!/ || /^# shellcheck/ { next }
            !/^(#|\/\*| \*)/ { exit }
            { text = text " " $0 }
            /\*\/$/ { exit }
            END { gsub(/ [#*] | +/, " ", text); exit text !~ mark }' "$test" || echo "$test"
    done)" ""

# Lines: 80 columns, more only for words in quotes, which are never cut.
is "no line has more than 80 columns" "$(
    grep -rnE '^.{81,}$' --include='*.[ch]' lib transport tools tests |
        grep -vE "\"[,;)}\\ ]*\$")" ""
is "no tab is in C, and no space ends a line" "$(
    grep -rnP '\t|[ ]$' --include='*.[ch]' lib transport tools tests
    grep -rnP '\t$' --include='*.sh' --include='*.py' tests bootstrap .ci)" ""
is "the brace that opens a function has its own line" "$(
    grep -rnE '^[a-z][a-z_0-9 *]*\(.*\) ?\{$' --include='*.[ch]' lib transport tools tests)" ""

is "every field of a struct in a header has a comment with its meaning" "$(
    find lib transport tools -name '*.h' -exec awk -f tests/fields.awk {} +)" ""

is "every script of the tests can be executed" "$(
    find tests -name '*.sh' ! -perm -100 -exec grep -l '^#!' {} +)" ""
if command -v shellcheck >/dev/null; then
    scripts=()
    for script in bootstrap .ci/run conf/*.sbatch tests/*.sh tests/*/*.sh tests/in-ns \
        tests/slurm/slurm-here tests/tally; do
        [ ! -e "$script" ] || scripts+=("$script")
    done
    # All of them take 9 s of CPU time: .ci/run reads all, else a clone those
    # that the last commits or nobody yet committed.
    if [ -z "${DTN_TEST_SCRIPTS-}" ] && changed=$(git diff --name-only HEAD~10 2>/dev/null) &&
        ! grep -qxF .shellcheckrc <<<"$changed"; then
        changed+=$'\n'$(git ls-files -o --exclude-standard)
        mapfile -t scripts < <(printf '%s\n' "${scripts[@]}" | grep -xF "$changed")
    fi
    is "shellcheck has nothing to say of our scripts" \
        "$([ ${#scripts[@]} = 0 ] || shellcheck -f gcc "${scripts[@]}")" ""
else
    skip_test "shellcheck has nothing to say" "shellcheck is not installed"
fi

is "dtensor.h includes every part of it" "$(
    for part in lib/dtensor/*.h; do
        grep -qF "#include \"${part#lib/}\"" lib/dtensor.h || echo "$part"
    done)" ""
for header in dtensor.h $(cd lib && echo dtensor/*.h); do
    words="#include \"$header\"
int main(void) { const char *text = dtensor_version(); return text == 0; }"
    is "<$header> is complete, in C and in C++" "$(
        ${CC:-cc} -std=c11 -Wall -Wextra -Werror \
            -fsyntax-only -Ilib -x c - <<<"$words" 2>&1
        ${CXX:-g++} -Wall -Wextra -Werror -fsyntax-only -Ilib -x c++ - \
            <<<"$words" 2>&1)" ""
done

# Documents go stale silently: what they name has to be there.
documents=$(echo HACKING.md; find doc -name '*.md')
is "HACKING.md holds at most 150 lines" "$(awk 'END { print (NR <= 150) }' HACKING.md)" 1
is "the rooms of HACKING.md are those of Makefile.am, in its order" \
    "$(sed -nE 's,^\| `(lib/[a-z]+|transport)` \|.*,\1,p' HACKING.md)" \
    "$(sed -nE 's,^include (lib/[a-z]+|transport)/Makefile\.inc$,\1,p' Makefile.am)"
is "every document is in doc/Makefile.inc, and so in the tarball" "$(
    find doc -name '*.md' | while read -r file; do
        grep -qwF "%D%${file#doc}" doc/Makefile.inc || echo "$file"
    done)" ""
# A program of the tests is named without .c; NAME.c alone is in any folder.
tree=$(find lib transport tools tests man conf doc -type f; ls)
# shellcheck disable=SC2086 # several files
is "every file that a document names is there" "$(
    grep -oHE '(^|[ (`])((lib|transport|tools|tests|man|conf|doc)/)?[a-z0-9_./-]+' \
        $documents | sed -E 's/[ (`]//; s,[/.]*$,,' |
        grep -E ':(lib|transport|tools|tests|man|conf|doc)/|\.(c|h|sh|md|inc|ini|py)$' |
        sort -u | awk -F: '
            FNR == NR {              # any parts of a path that follow each other
                n = split($0, part, "/")
                for (i = 1; i <= n; i++) {
                    there[path = part[i]]
                    for (j = i + 1; j <= n; j++)
                        there[path = path "/" part[j]]
                    sub(/\.c$/, "", path)
                    there[path]
                }
                next
            }
            !($2 in there) { print }' <(echo "$tree") - |
        while IFS=: read -r document name; do
            [ -e "${document%/*}/$name" ] || echo "$document: $name"
        done)" ""
# shellcheck disable=SC2086
is "every function that a document names is there" "$(
    named=$(grep -ohE '`[a-z_0-9]+\(' $documents | tr -d '`(' | sort -u)
    comm -23 <(echo "$named") <(
        grep -rohwF --include='*.[ch]' "$named" lib transport tools | sort -u))" ""

# ./configure && make in the source tree leaves nothing that git does not know.
if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    is "what a build in the source tree makes is ignored by git" "$(
        sed -nE 's/^[ \t]*([a-zA-Z_/.-]+)\$\(EXEEXT\):.*/\1/p' \
            "$top_builddir/Makefile" | sort -u |
            git check-ignore -vn --stdin | sed -n 's/^::\t//p')" ""
    is "and no file of ours is" "$(git ls-files -ci --exclude-standard)" ""
else
    skip_test "git ignores what a build makes" "this is not a clone"
fi
done_testing
