# links.awk - links between the pages of the manual, in their HTML
#
# Reads lines "NAME SECTION FILE", then a page.  Words like NAME(3), bold or not,
# become links to FILE; a page that is not among them stays a word.
FNR == NR { file[$1 "(" $2 ")"] = $3; next }
{
    gsub(/&minus;/, "-")
    while (match($0, /<a class="Xr"[^>]*>[^<]*<\/a>/)) {
        word = substr($0, RSTART, RLENGTH)
        gsub(/<[^>]*>/, "", word)
        $0 = substr($0, 1, RSTART - 1) word substr($0, RSTART + RLENGTH)
    }
    rest = $0
    while (match(rest, /(<b>)?[a-z][a-z0-9_-]*(<\/b>)?\([1-9]\)/)) {
        word = substr(rest, RSTART, RLENGTH)
        printf "%s", substr(rest, 1, RSTART - 1)
        rest = substr(rest, RSTART + RLENGTH)
        gsub(/<\/?b>/, "", word)
        if (word in file)
            printf "<a class=\"Xr\" href=\"%s\">%s</a>", file[word], word
        else
            printf "%s", word
    }
    print rest
}
