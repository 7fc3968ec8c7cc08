#!/bin/sh
# html.sh - the manual as HTML
#
#     html.sh FOLDER COMMAND PAGE...
#
# COMMAND turns a page on standard input into HTML.  FOLDER gets one file for each
# PAGE, and index.html; what refers to one of these pages is a link to it.
set -eu
if [ $# -lt 3 ]; then
    echo "usage: html.sh FOLDER COMMAND PAGE..." >&2
    exit 2
fi
here=${0%/*} folder=$1 command=$2
shift 2
mkdir -p "$folder"
list=$folder/list.tmp
trap 'rm -f "$list"' EXIT
names() { ${AWK:-awk} -f "$here/names.awk" "$@"; }
names "$@" | while read -r name page about; do
    echo "$name ${page##*.} $page.html"
done >"$list"

for page in "$@"; do
    file=$folder/${page##*/}.html
    $command <"$page" | ${AWK:-awk} -f "$here/links.awk" "$list" - >"$file"
    [ -s "$file" ] || { echo "html.sh: $command made nothing of $page" >&2; exit 1; }
done

# section NUMBER HEAD PAGE...: its pages, with the names of each
section() {
    printf '<h2>%s</h2>\n<dl>\n' "$2"
    number=$1
    shift 2
    for page in "$@"; do
        [ "${page##*.}" = "$number" ] || continue
        echo "<dt><a href=\"${page##*/}.html\">"
        names "$page" | while read -r name page about; do
            echo "$name"
        done
        echo "</a><dd>$(names "$page" | sed 's/^[^ ]* [^ ]* //; q')"
    done
    echo '</dl>'
}

{
    echo '<!DOCTYPE html>'
    echo '<html lang="en"><head><meta charset="utf-8">'
    echo '<title>libdtensor</title></head><body>'
    echo '<h1>libdtensor: the manual</h1>'
    section 7 Overview "$@"
    section 1 Commands "$@"
    section 5 Files "$@"
    section 3 Functions "$@"
    echo '</body></html>'
} >"$folder/index.html"
