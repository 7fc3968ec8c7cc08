#!/bin/bash
# packages.sh - the packages of Debian and the RPMs are built, and work
#
# Of the tarball of "make dist", as a packager would: built, examined by lintian,
# unpacked side by side, and the program of the README is compiled and run with
# what is in them.  Tests are not run again in the build.
#
#   make check-packages
#
# Without this test, a file that is new would be in no package, and a library
# that is new would be missing where a package is built.
. "$top_srcdir/tests/tap.sh"
unset MAKEFLAGS MFLAGS MAKELEVEL DTN_CLUSTER DTN_FAULT DTN_LOG
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
jobs=$(nproc)
version=$(sed -n 's/^PACKAGE_VERSION = //p' "$top_builddir/Makefile")
tarball=$(cd "$top_builddir" && pwd)/dtensor-$version.tar.xz
make -s -C "$top_builddir" dist >"$tmp/dist.log" 2>&1 || { cat "$tmp/dist.log"; exit 1; }
# The README's program.
awk '/^```/ && inside { exit } inside { print } /^```c$/ { inside = 1 }' \
    "$top_srcdir/README.md" >"$tmp/turn.c"

# works ROOT: the program, compiled and run with what is below ROOT
works() {
    (
        cd "$tmp" && pc=$(find "$1" -name dtensor.pc) || exit
        export PKG_CONFIG_PATH=${pc%/*} PKG_CONFIG_SYSROOT_DIR=$1
        # shellcheck disable=SC2046 # several words
        cc turn.c -o turn $(pkg-config --cflags --libs dtensor) &&
            LD_LIBRARY_PATH=${pc%/pkgconfig/*} timeout 60 "$1/usr/bin/dtensor-run" -n 4 ./turn |
            tail -n 1
    ) 2>&1
}

# files ROOT: what is below it, without the folder of a library's architecture
files() {
    (cd "$1" && find . ! -type d) | sed -E 's,/lib(64|/[a-z0-9_-]+-linux-gnu),/lib,'
}

# The files of "make install" that a package must hold, on one of its paths.
make -s -C "$top_builddir" install DESTDIR="$tmp/installed" >"$tmp/log" 2>&1
wanted=$(files "$tmp/installed" | grep -E '/(bin|include|man[1-9]|lib)/' |
    grep -v '\.la$' | sed 's,.*/,,; s,\.gz$,,' | sort -u)

# lacks ROOT: what is in no package
lacks() {
    comm -23 - <(files "$1" | sed 's,.*/,,; s,\.gz$,,' | sort -u) <<<"$wanted"
}

debian() {
    mkdir "$tmp/debian" && cd "$tmp/debian" && tar xf "$tarball" || return
    (cd "dtensor-$version" && DEB_BUILD_OPTIONS="nocheck parallel=$jobs" \
        dpkg-buildpackage -us -uc -b) >build.log 2>&1
    ok $? "dpkg-buildpackage builds the packages"
    is "which are four" "$(printf '%s\n' *.deb | sed 's/_.*//; /dbgsym/d')" \
        "dtensor-doc
dtensor-tools
libdtensor-dev
libdtensor0"
    if command -v lintian >/dev/null; then
        is "lintian finds no error and nothing to warn of" "$(
            # Only Debian itself has a bug that a first upload closes.
            lintian --allow-root --tag-display-limit 0 \
                --suppress-tags initial-upload-closes-no-bugs ./*.changes 2>&1 |
                grep '^[EW]:')" ""
    else
        skip_test "lintian finds no error" "lintian is not installed"
    fi
    for package in *.deb; do
        dpkg-deb -x "$package" root
    done
    is "the README's program works with them" "$(works "$PWD/root")" \
        "rank 0 holds 0 1, 8 9, 16 17, ..."
    is "what make install installs is in them" "$(lacks root)" ""
    is "a package that needs the library needs version 0.1.0 of it" \
        "$(dpkg-deb -f dtensor-tools_*.deb Depends | grep -o 'libdtensor0 ([^)]*)')" \
        "libdtensor0 (>= 0.1.0)"
    cd "$tmp" || exit
}

rpm_packages() {
    # No database of RPMs says here what is installed.
    rpmbuild -tb --nodeps --nocheck --define "_topdir $tmp/rpm" \
        --define "_smp_mflags -j$jobs" "$tarball" >"$tmp/rpm.log" 2>&1
    ok $? "rpmbuild builds the packages"
    mkdir "$tmp/rpm/root" && cd "$tmp/rpm/root" || return
    for package in ../RPMS/*/*.rpm; do
        rpm2cpio "$package" | cpio -idm --quiet 2>&1
    done
    is "which are three" "$(printf '%s\n' ../RPMS/*/*.rpm | sed 's,.*/,,
        s/-[0-9].*//; /debug/d')" "dtensor
dtensor-devel
dtensor-tools"
    is "the README's program works with them" "$(works "$PWD")" \
        "rank 0 holds 0 1, 8 9, 16 17, ..."
    is "what make install installs is in them" "$(lacks .)" ""
    cd "$tmp" || exit
}

if command -v dpkg-buildpackage >/dev/null && command -v dh >/dev/null; then
    debian
    [ "$tap_failed" -eq 0 ] || tail -n 20 "$tmp/debian/build.log" | sed 's/^/# /'
else
    skip_test "Debian packages" "dpkg-buildpackage and debhelper are not installed"
fi
if command -v rpmbuild >/dev/null && command -v cpio >/dev/null; then
    failed=$tap_failed
    rpm_packages
    [ "$tap_failed" -eq "$failed" ] || tail -n 20 "$tmp/rpm.log" | sed 's/^/# /'
else
    skip_test "RPMs" "rpmbuild and cpio are not installed"
fi
done_testing
