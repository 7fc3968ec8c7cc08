# names.awk - the names that pages of section 3 describe, from their NAME lines
#
# Prints "NAME PAGE" for each: dtensor_allreduce.3 describes 14 functions, of
# which 13 are aliases.  The installation makes a link for each alias.
FNR == 1 {
    text = ""
    inside = 0
}
/^\.SH/ { inside = $2 == "NAME"; next }
inside {
    text = text " " $0
    if (text !~ /\\-/)
        next
    sub(/\\-.*/, "", text)
    gsub(/,/, " ", text)
    page = FILENAME
    sub(/.*\//, "", page)
    n = split(text, name, " ")
    for (i = 1; i <= n; i++)
        print name[i], page
    inside = 0
}
