#!/bin/bash
# install.sh - the README's commands install, compile and run its program
#
# They are run as they are printed, and make uninstall must take everything
# away.
#
# Without this test, the first thing that a new user types could fail.
. "$top_srcdir/tests/tap.sh"
command -v pkg-config >/dev/null || skip_all "no pkg-config here"
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
root=$tmp/root
unset MAKEFLAGS MFLAGS MAKELEVEL DTN_CLUSTER DTN_FAULT DTN_LOG

# in_build TARGET: its words only when it fails
in_build() {
    make -s -C "$top_builddir" "$1" DESTDIR="$root" >"$tmp/make.log" 2>&1 ||
        { cat "$tmp/make.log"; return 1; }
}

# value NAME: of a directory in dtensor.pc
value() {
    PKG_CONFIG_PATH=$top_builddir pkg-config --variable="$1" dtensor
}

# files DIR: what is in it, one a line
files() {
    (cd "$1" 2>/dev/null && find . ! -type d | sed 's|^\./||' | sort)
}

# The README's program, and its commands: cc is that of this build, and what a
# root does to the system is done to DESTDIR.
awk '/^```/ && inside { exit } inside { print } /^```c$/ { inside = 1 }' \
    "$top_srcdir/README.md" >"$tmp/turn.c"
awk '/^    cc turn.c / { found = 1 } /^    / { block = block substr($0, 5) "\n"; next }
    found { printf "%s", block; exit } { block = "" }' \
    "$top_srcdir/README.md" >"$tmp/commands"
read -r -a compiler <<<"${CC:-cc}"
mkdir "$tmp/bin"
printf '#!/bin/sh\nexec "$@"\n' >"$tmp/bin/sudo"
printf '#!/bin/sh\n:\n' >"$tmp/bin/ldconfig"
compiler[0]=$(command -v "${compiler[0]}")
printf '#!/bin/sh\nexec %s "$@"\n' "${compiler[*]} $SANITIZER_CFLAGS" >"$tmp/bin/cc"
chmod +x "$tmp"/bin/*
ln -s "$top_builddir" "$tmp/build"

# as_printed: run them; the last line that they print
as_printed() {
    (cd "$tmp" && DESTDIR=$root PKG_CONFIG_SYSROOT_DIR=$root \
        PKG_CONFIG_LIBDIR=$libdir/pkgconfig \
        PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1 \
        PATH=$tmp/bin:$prefix/bin:$PATH \
        timeout 120 bash -e commands) 2>&1 | tail -n 1
}

prefix=$root$(value prefix)
libdir=$root$(value libdir)
export LD_LIBRARY_PATH=$libdir
is "the README's commands work as they are printed" "$(as_printed)" \
    "rank 0 holds 0 1, 8 9, 16 17, ..."
is "the programs are there" "$(files "$prefix/bin")" \
    "dtensor-bench
dtensor-conf
dtensor-plan
dtensor-run"
is "the header and its parts are there" "$(files "$root$(value includedir)")" \
    "$(cd "$top_srcdir/lib" && printf '%s\n' dtensor.{f90,h,hpp} dtensor/* | sort)"
is "the library is there, and for pkg-config" \
    "$(files "$libdir" | grep -v '\.so\.[0-9]*\.')" "libdtensor.la
libdtensor.so
libdtensor.so.0
pkgconfig/dtensor.pc"
is "a shell finds the completion of each program" \
    "$(files "$prefix/share/bash-completion/completions")" "$(files "$prefix/bin")"
version=$(sed -n 's/^PACKAGE_VERSION = //p' "$top_builddir/Makefile")
is "the schema of dtensor-bench --json is there, and an environment module" \
    "$(files "$prefix/share/dtensor")" "dtensor-bench.schema.json
modulefiles/dtensor/$version"
doc=$root$(value docdir)
is "documents, cluster files and examples are there" "$(files "$doc")" "$({
    printf '%s\n' COPYING NEWS README.md
    cd "$top_srcdir" && ls conf/*.ini conf/*.sbatch
    cd tests && ls examples/*.[ch]
} | sort)"
mkdir "$tmp/examples" && cp "$doc"/examples/*.[ch] "$tmp/examples"
is "each example can be compiled as its first lines say" "$(
    cd "$tmp/examples" && export PKG_CONFIG_PATH=$libdir/pkgconfig \
        PKG_CONFIG_SYSROOT_DIR=$root PATH=$tmp/bin:$PATH
    grep -l "^int main" ./*.c | while read -r program; do
        command=$(sed -e ':more; /\\$/{N; s/\\\n \* */ /; b more}' "$program" |
            sed -n 's/^ \* *\$ \(cc .*\)/\1/p')
        bash -c "${command:-false}" || echo "$program: $command"
    done 2>&1)" ""
is "and runs" "$("$prefix/bin/dtensor-run" -n 2 "$tmp/examples/mlp" 2>&1 |
    sed -n "1s/ [0-9.]*$//p")" "step 0: loss"
is "all of the manual is there" "$(files "$prefix/share/man" | sed 's|.*/||' | sort)" \
    "$({
        files "$top_srcdir/man" | grep '\.[157]$'
        grep -ohE '\bdtensor_[a-z0-9_]+ ?\(' "$top_srcdir"/lib/dtensor/*.h |
            tr -d ' (' | grep -v '_f$' | sed 's/$/.3/'
    } | sort -u)"
is "an alias leads to a page that describes it" "$(
    cd "$prefix/share/man/man3" && for page in *; do
        target=$(sed -n 's|^\.so man3/||p' "$page")
        sed -n '/^\.SH NAME/,/^\.SH SYNOPSIS/p' "${target:-$page}" |
            grep -qw "${page%.3}" || echo "$page"
    done)" ""

is "the README's program is linked with the installed library" \
    "$(ldd "$tmp/turn" | awk '/libdtensor/ { print $3 }')" \
    "$libdir/libdtensor.so.0"
for tool in dtensor-run dtensor-conf dtensor-plan dtensor-bench; do
    timeout 60 "$prefix/bin/$tool" --version >"$tmp/out" 2>&1
    is "the installed $tool knows its version" "$? $(sed '1s/ .*//;q' "$tmp/out")" \
        "0 $tool"
done

# Without root: what the README sets, with the directory that is installed here.
awk '/^```$/ { inside = 0 } inside { print } /^```bash$/ { inside = 1 }' \
    "$top_srcdir/README.md" | sed "s|\$HOME/dtensor|$prefix|g" >"$tmp/paths"
libpath=$(sed -n 's/^export LD_LIBRARY_PATH=//p' "$tmp/paths")
is "the README's paths of an installation without root are those there are" "$(
    unset LD_LIBRARY_PATH
    # shellcheck source=/dev/null
    . "$tmp/paths"
    cd "$tmp" && command -v dtensor-run &&
        PKG_CONFIG_SYSROOT_DIR=$root pkg-config --exists dtensor &&
        dtensor-run -n 4 ./turn 2>&1 | tail -n 1)" \
    "$prefix/bin/dtensor-run
rank 0 holds 0 1, 8 9, 16 17, ..."
if command -v man >/dev/null && man -w man >/dev/null 2>&1; then
    is "and man finds the pages, also by an alias" "$(
        # shellcheck source=/dev/null
        . "$tmp/paths"
        man -w 7 dtensor
        man 3 dtensor_wait | grep -o dtensor_plan_start | head -n 1)" \
        "$prefix/share/man/man7/dtensor.7
dtensor_plan_start"
else
    skip_test "man finds the pages" "there is no man here"
fi
# shellcheck disable=SC2086 # several words
${CC:-cc} $SANITIZER_CFLAGS -I"$prefix/include" -o "$tmp/rpath" "$tmp/turn.c" \
    -L"$libdir" -ldtensor -Wl,-rpath,"$libpath" >"$tmp/cc.log" 2>&1
is "or, linked with -rpath, a program runs without any" "$(
    env -u LD_LIBRARY_PATH "$prefix/bin/dtensor-run" -n 4 "$tmp/rpath" 2>&1 |
        tail -n 1) $(cat "$tmp/cc.log")" "rank 0 holds 0 1, 8 9, 16 17, ... "
grep -qF -- '-Wl,-rpath,$HOME/dtensor/lib' "$top_srcdir/README.md"
ok $? "as the README says"

# A program that has all in itself: libdtn.a is what libdtensor.a is made of.
libs=$(PKG_CONFIG_PATH=$top_builddir pkg-config --static --libs-only-l dtensor)
libs=${libs/-ldtensor/}
lacking=
for lib in $libs; do
    file=lib${lib#-l}.a
    [ "$(${CC:-cc} -print-file-name="$file")" != "$file" ] || lacking+=" $file"
done
claim="pkg-config --static names all that a static program needs"
if [ -n "$SANITIZER_CFLAGS" ]; then
    skip_test "$claim" "no sanitizer is static"
elif [ -n "$lacking" ]; then
    skip_test "$claim" "there is no$lacking here"
else
    # shellcheck disable=SC2086 # several words each
    ${CC:-cc} -static -I"$top_srcdir/lib" -o "$tmp/alone" "$tmp/turn.c" \
        "$top_builddir/.libs/libdtn.a" $libs >"$tmp/cc.log" 2>&1
    is "$claim" "$? $(grep -i 'undefined reference' "$tmp/cc.log")" "0 "
    is "and it runs" \
        "$(timeout 60 "$prefix/bin/dtensor-run" -n 4 "$tmp/alone" 2>&1 | tail -n 1)" \
        "rank 0 holds 0 1, 8 9, 16 17, ..."
fi

is "make uninstall succeeds" "$(in_build uninstall)" ""
is "and leaves nothing" "$(files "$root")$(find "$root" -name dtensor)" ""
done_testing
