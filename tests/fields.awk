# fields.awk - fields of structs and unions in headers that have no comment
#
# A field is explained by a comment behind it, by one above it, or by one behind
# or above another field of the same list of declarations without a blank line
# in between that names it: "int rank, n;   /* ... */" is one declaration and
# needs one comment.  Prints file:line: declaration for each that has none.
function finish() { pending = "" }
FNR == 1 { depth = 0; comment = 0; covered = 0; finish() }
{
    line = $0
    starts = 0
    if (comment) {                       # inside a comment of several lines
        if (line !~ /\*\//) next
        sub(/^.*\*\//, "", line)
        comment = 0
        covered = 1
        if (line ~ /^[ \t]*$/) next
    }
    has = line ~ /\/\*/
    if (has && line !~ /\*\//) { comment = 1; sub(/\/\*.*/, "", line) }
    else gsub(/\/\*[^*]*(\*[^\/][^*]*)*\*\//, "", line)
    blank = line ~ /^[ \t]*$/
    if (blank && has) {                  # a comment alone: below or above?
        if (pending != "") finish()
        covered = 1
        next
    }
    if (pending != "" ) { print pending; finish() }
    if (blank) { covered = 0; next }
}
# a struct opens: only the outermost has to begin in the first column
depth == 0 && line ~ /^(typedef )?(struct|union)( [a-zA-Z_0-9]+)? *\{/ {
    depth = 1; covered = 0; next
}
depth > 0 && line ~ /^ *(static )?(const )?(struct|union|enum)( [a-zA-Z_0-9]+)? *\{[^}]*$/ {
    depth++; told[depth] = has || covered; covered = 0; next
}
depth > 0 && line ~ /^ *\}/ {
    if (depth-- > 1 && line ~ /\} *[a-z]/ && !has && !told[depth + 1]) pending = FILENAME ":" FNR ": " $0
    covered = 0
    next
}
depth > 0 {
    if (has || covered) { if (line ~ /;/) covered = 0; else covered = 1; next }
    if (line ~ /;/) pending = FILENAME ":" FNR ": " $0
}
END { if (pending != "") print pending }
