# shellcheck shell=bash
# session.sh - files and sessions of a manual page, made and run as they stand
#
# An example whose first line is a comment with a file's name, as in "/* NAME - ",
# "; NAME - " or, below "#!", "# NAME - ", is that file.  An example that begins
# with "$ " is a session: its commands are run, and what they print has to be what
# the page shows, where four blanks continue a line.  Ranks print in no order, so
# the lines of a dtensor-run are compared sorted.  On the page a process number is
# 4242, this host laptop, a job 1, and the first rank that exits rank 0; how many
# ranks still run then is left open.

# page_examples PAGE FOLDER: FOLDER/N.SECTION for each example, plain text
page_examples() {
    awk -v folder="$2" '
        /^\.SH/ { section = tolower($0); sub(/^\.sh /, "", section); gsub(/[^a-z]/, "-", section) }
        /^\.EX/ { file = sprintf("%s/%02d.%s", folder, ++n, section); next }
        /^\.EE/ { close(file); file = "" }
        file { print > file }' "$1"
    sed -i "s/\\\\(aq/'/g; s/\\\\(ha/^/g; s/\\\\(ti/~/g; s/\\\\(ga/\`/g
        s/\\\\&//g; s/\\\\-/-/g; s/\\\\e/\\\\/g" "$2"/*
}

# example_name FILE: the name of the file that it is, if it is one
example_name() {
    sed -nE '1,2s,^(/\*|;|#) ([a-z]+\.[a-z]+) - .*,\2,p' "$1"
}

# normal COMMAND: what differs from run to run is as on the page
normal() {
    sed -E "s/pid [0-9]+/pid 4242/g; s/ on $(uname -n)\\b/ on laptop/g
        s/(batch job) [0-9]+/\1 1/
        s/; ending the other ([0-9]+ )?ranks?$/; ending the others/
        s/^(dtensor-run: rank) [0-9]+ (\(pid 4242\) exited)/\1 0 \2/" | case $1 in
    dtensor-run*) LC_ALL=C sort ;;
    *) cat ;;
    esac
}

# session FILE: run its commands in the current folder, compare what they print
session() {
    local commands=() shown=() line i=-1 last=0
    while IFS= read -r line; do
        if [[ $line == '$ '* ]]; then
            commands[++i]=${line#"$ "}
            shown[i]=
        else
            shown[i]+=$line$'\n'
        fi
    done <"$1"
    for i in "${!commands[@]}"; do
        bash -c "(exit $last); ${commands[i]}" >session.out 2>&1 </dev/null
        last=$?
        is "$ ${commands[i]}" "$(normal "${commands[i]}" <session.out)" \
            "$(printf %s "${shown[i]}" | sed -zE 's/\n {4}/ /g' | normal "${commands[i]}")"
    done
}

# page_run PAGE SECTIONS: write its files here, run the sessions of the sections
# whose names match
page_run() {
    local example name
    mkdir -p page.tmp bin
    page_examples "$1" page.tmp
    for example in page.tmp/*; do
        name=$(example_name "$example")
        [ -z "$name" ] || cp "$example" "$name"
    done
    for example in page.tmp/*; do
        [[ ${example##*.} =~ $2 && $(head -c 2 "$example") == '$ ' ]] || continue
        session "$example"
    done
}

# session_paths: the tools, library and compiler of this build, as if installed
session_paths() {
    mkdir -p bin
    # shellcheck disable=SC2016 # the words of the script
    printf '%s\n' '#!/bin/sh' "exec ${CC:-cc} $SANITIZER_CFLAGS \"\$@\"" >bin/cc
    chmod +x bin/cc
    sed "s,^libdir=.*,libdir=$top_builddir/.libs,; s,^includedir=.*,includedir=$top_srcdir/lib,
        s,^Libs:,& -Wl\,-rpath\,$top_builddir/.libs," "$top_builddir/dtensor.pc" >bin/dtensor.pc
    export PATH=$PWD/bin:$top_builddir:$PATH PKG_CONFIG_PATH=$PWD/bin
    export LC_ALL=C.UTF-8
    umask 022
}
