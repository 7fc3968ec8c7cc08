#!/bin/bash
# recipes.sh - the recipes of packages say what configure and bootstrap say
#
# "make check-packages" builds packages with them; this test needs no tool.
#
# Without this test, a new library or version would be missing in the recipes
# until somebody makes a release.
. "$top_srcdir/tests/tap.sh"
cd "$top_srcdir" || exit 1
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
recipes=conf/packages
version=$(sed -n 's/^AC_INIT(\[dtensor\], \[\([^]]*\)\].*/\1/p' configure.ac)

is "the version of configure.ac is that of the spec" \
    "$(sed -n 's/^Version: *//p' $recipes/dtensor.spec)" "$version"
is "of debian/changelog" \
    "$(sed -n '1s/^dtensor (\(.*\)-[0-9]*) .*/\1/p' debian/changelog)" "$version"
is "and of the Spack recipe" \
    "$(sed -n 's/^ *version("\([0-9.]*\)", tag="v\1")$/\1/p' \
        $recipes/spack/package.py | head -n 1)" "$version"

is "Debian builds with the libraries that bootstrap installs" \
    "$(sed -n '/^Build-Depends:/,/^[^ ]*: /p' debian/control |
        grep -oE '^ lib[a-z0-9-]+-dev' | tr -d ' ' | sort)" \
    "$(sed -n '/^build_packages=/,/"$/p' bootstrap | grep -oE 'lib[a-z0-9-]+-dev' |
        grep -v libc6-dev | sort)"
is "a library of pkg-config that configure wants is in the spec" "$(
    sed -nE 's/^ *\[?PKG_CHECK_MODULES\(\[[A-Z]+\], \[([a-z]+).*/\1/p' configure.ac |
        while read -r name; do
            grep -q "pkgconfig($name)" $recipes/dtensor.spec || echo "$name"
        done)" ""
is "a library that configure can do without is a variant of Spack" "$(
    sed -nE 's/^AC_ARG_WITH\(\[([a-z]+)\],$/\1/p' configure.ac |
        while read -r name; do
            grep -q "variant(\"$name\"" $recipes/spack/package.py || echo "$name"
        done)" ""
is "the README names the packages that the spec needs" "$(
    grep -oE 'pkgconfig\([a-z]+\)' $recipes/dtensor.spec | sort -u |
        while read -r name; do grep -qF "'$name'" README.md || echo "$name"; done)" ""
if command -v python3 >/dev/null; then
    is "the Spack recipe is Python" "$(python3 -c 'import ast, sys
ast.parse(open(sys.argv[1]).read())' $recipes/spack/package.py 2>&1)" ""
else
    skip_test "the Spack recipe is Python" "python3 is not installed"
fi

make -s -C "$top_builddir" install-module DESTDIR="$tmp" >"$tmp/log" 2>&1
folder=$(find "$tmp" -name modulefiles)
is "the module has the version as its name" "$(cd "$folder" && find . -type f)" \
    "./dtensor/$version"
command=$(command -v modulecmd || command -v /usr/lib/*/modulecmd.tcl)
if [ -n "$command" ]; then
    is "module load sets the paths" "$(
        prefix=$(sed -n 's/^prefix = //p' "$top_builddir/Makefile")
        eval "$(MODULEPATH=$folder PATH=/bin "$command" bash load dtensor 2>"$tmp/log")"
        cat "$tmp/log"
        [[ $PATH == "$prefix/bin:"* && $LD_LIBRARY_PATH == "$prefix/lib"* &&
            $PKG_CONFIG_PATH == "$LD_LIBRARY_PATH"/pkgconfig* &&
            $MANPATH == "$prefix/share/man:"* ]] || echo "$PATH $MANPATH")" ""
else
    skip_test "module load sets the paths" "environment-modules is not installed"
fi
done_testing
