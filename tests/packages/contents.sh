#!/bin/bash
# contents.sh - each file that is installed is in one package, of Debian and RPM
#
# The lists of the recipes are compared with what make install installs, without
# a build of packages, which make check-packages does.
#
# Without this test, a new file would break the next build of packages, or be in
# none.
. "$top_srcdir/tests/tap.sh"
src=$(cd "$top_srcdir" && pwd)
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
unset MAKEFLAGS MFLAGS MAKELEVEL
make -s -C "$top_builddir" install DESTDIR="$tmp/root" prefix=/usr exec_prefix=/usr \
    libdir=/usr/lib/arch docdir=/usr/share/doc/dtensor-doc >"$tmp/log" 2>&1 ||
    { tail "$tmp/log"; exit 1; }
(cd "$tmp/root" && find usr ! -type d) | sort >"$tmp/files"

# packaged: "PACKAGE FILE" for each line "PACKAGE PATTERN" that holds the file; the
# pattern of a folder holds what is below it
packaged() {
    local file package pattern
    while read -r file; do
        while read -r package pattern; do
            # shellcheck disable=SC2053 # a pattern
            if [[ $file == $pattern || $file == $pattern/* ]]; then
                echo "$package $file"
            fi
        done <"$tmp/patterns"
    done <"$tmp/files"
}

# compared WHOSE: the patterns with the files
compared() {
    packaged >"$tmp/packaged"
    is "each file is in a package of $1" \
        "$(comm -23 "$tmp/files" <(cut -d' ' -f2 "$tmp/packaged" | sort -u))" ""
    is "and in one only" "$(cut -d' ' -f2 "$tmp/packaged" | sort | uniq -d)" ""
    is "each line of $1 has a file" "$(
        while read -r package pattern; do
            (cd "$tmp/root" && compgen -G "$pattern" >"$tmp/found") ||
                echo "$package: $pattern"
        done <"$tmp/patterns")" ""
}

ok "$(($(wc -l <"$tmp/files") < 100))" "make install installs files"
for list in "$src"/debian/*.install "$src/debian/not-installed"; do
    name=${list##*/}
    sed "/^\$/d; s/^/${name%.install} /" "$list"
done >"$tmp/patterns"
compared Debian

awk '/^%(changelog|post)/ { list = "" } /^%files/ { list = "dtensor-" $2; next }
    list && /^%{_|^%doc / { sub(/^%doc /, ""); print list, $0 }' \
    "$src/conf/packages/dtensor.spec" |
    sed 's,%{_docdir}/%{name},usr/share/doc/dtensor-doc,; s,%{_libdir},usr/lib/*,
        s,%{_includedir},usr/include,; s,%{_datadir},usr/share,
        s,%{_bindir},usr/bin,; s,%{_mandir},usr/share/man,' >"$tmp/patterns"
echo 'removed usr/lib/*/libdtensor.la' >>"$tmp/patterns"
compared "the RPMs"
if command -v rpmspec >/dev/null; then
    is "rpmspec reads the spec" \
        "$(rpmspec -P "$src/conf/packages/dtensor.spec" 2>&1 >/dev/null)" ""
else
    skip_test "rpmspec reads the spec" "rpm is not installed"
fi
done_testing
