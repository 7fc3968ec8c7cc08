# names.awk - what pages describe, from their NAME sections
#
# Prints "NAME PAGE DESCRIPTION" for each name: dtensor_allreduce.3 describes 14
# functions, of which 13 are aliases.  The installation makes a link for each.
function tell(    n, i, at, name, about, page) {
    at = index(text, " - ")
    about = substr(text, at + 3)
    text = substr(text, 1, at)
    gsub(/,/, " ", text)
    page = FILENAME
    sub(/.*\//, "", page)
    n = split(text, name, " ")
    for (i = 1; i <= n; i++)
        print name[i], page, about
}
FNR == 1 { text = ""; inside = 0 }
/^\.S[Hh]/ {
    if (inside)
        tell()
    inside = $2 == "NAME"
    next
}
inside {
    sub(/^\.Nm /, "")
    sub(/^\.Nd/, "-")
    gsub(/\\-/, "-")
    text = text (text == "" ? "" : " ") $0
}
