# contracts.awk - what the public header says of each function, one a line
#
# A function's contract is the comment above it, which holds for all functions
# down to the next comment, and what a comment of its section says of "All in
# this section".  It is printed as NAME, WORD and value, separated by tabs,
# where WORD is one of those below; PROTOTYPE is the declaration itself.

function squeezed(text)
{
    gsub(/[ \t]+/, " ", text)
    sub(/^ /, "", text)
    sub(/ $/, "", text)
    return text
}

# Tell the words of `text` and their values; `skip` are words told already.
function tell(name, text, skip,    word, head, rest, told)
{
    told = skip
    while (match(text, heads)) {
        head = substr(text, RSTART, RLENGTH)
        rest = substr(text, RSTART + RLENGTH)
        text = rest
        if (match(rest, heads))
            rest = substr(rest, 1, RSTART - 1)
        while (match(head, /[A-Za-z]+/)) {
            word = toupper(substr(head, RSTART, RLENGTH))
            head = substr(head, RSTART + RLENGTH)
            if (index(skip, " " word " "))
                continue
            print name "\t" word "\t" squeezed(rest)
            told = told word " "
        }
    }
    return told
}

BEGIN {
    head = "(Collective|Blocks|Owns|Errors|Semantics)"
    heads = head "(, (collective|blocks|owns|errors|semantics))*:"
}

FNR == 1 { section = own = text = ""; comment = 0 }

/^\/\* -+ / { section = ""; own = ""; next }
/^\/\*/ { comment = 1; own = "" }
comment {
    line = $0
    gsub(/^ ?\/?\*+\/?|\*+\/.*$/, "", line)
    own = own " " line
    if (/\*\//) {
        comment = 0
        if (match(own, /All in this section/))
            section = substr(own, RSTART)
    }
    next
}

# Declarations, and what stands beside them.
/^(#|typedef)/ { next }
!text && !/^[a-z].*dtensor_[a-z0-9_]+\(/ { next }
{
    line = $0
    if (match(line, /\/\*.*\*\//)) {
        beside = beside " " substr(line, RSTART + 2, RLENGTH - 4)
        line = substr(line, 1, RSTART - 1)
    }
    text = text " " line
}
/;/ {
    text = squeezed(text)
    match(text, /dtensor_[a-z0-9_]+\(/)
    name = substr(text, RSTART, RLENGTH - 1)
    print name "\tPROTOTYPE\t" text
    if (squeezed(own beside) != "")
        print name "\tWORDS\t" squeezed(own beside)
    told = tell(name, own beside, " ")
    tell(name, section, told)
    text = beside = ""
}
