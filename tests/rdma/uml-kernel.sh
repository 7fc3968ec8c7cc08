#!/bin/bash
# uml-kernel.sh - print the path of a User Mode Linux kernel with soft-RoCE
#
# That is $DTN_UML_KERNEL, or the one in the cache.  With DTN_UML_BUILD=1 a
# kernel that is not in the cache is made: Debian's linux-source-6.1, without
# patches, configured by uml.config.  It takes 2 GB meanwhile and about 11
# minutes of two cores, and then 10 MB.  Without a kernel this says why on the
# standard error and exits with 77.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/dtensor/uml-6.1
source=linux-source-6.1

say() { printf 'uml-kernel: %s\n' "$*" >&2; }

# One line of why, which is all that a test has room for.
cannot() {
    printf '%s\n' "$*" >&2
    exit 77
}

options() { grep CONFIG_ "$1"; }

packages() {
    local lacking=() package as_root=
    for package in bc bison cpio flex gcc libc6-dev make xz-utils; do
        dpkg-query -W -f '${Status}\n' "$package" 2>/dev/null |
            grep -q 'ok installed' || lacking+=("$package")
    done
    [ ${#lacking[@]} -gt 0 ] || return 0
    [ "$(id -u)" = 0 ] || as_root=sudo
    say "installing ${lacking[*]}"
    $as_root apt-get install -qq -y --no-install-recommends "${lacking[@]}" \
        >/dev/null || cannot "cannot install ${lacking[*]}"
}

fetch() {
    say "fetching $source"
    apt-get download -qq "$source" 2>apt.log || {
        cat apt.log >&2
        cannot "cannot fetch $source (is it in the package lists? apt-get update)"
    }
    dpkg-deb --fsys-tarfile "$source"_*.deb |
        tar -xO "./usr/src/$source.tar.xz" | tar -xJ
    rm "$source"_*.deb
}

# Every option that uml.config asks for must have come out of olddefconfig.
configure() {
    make -s ARCH=um defconfig
    cat "$here/uml.config" >>.config
    make -s ARCH=um olddefconfig 2>/dev/null
    if grep -E '^CONFIG_' "$here/uml.config" | grep -vxFf .config >&2; then
        cannot "these options of uml.config cannot be had in $source"
    fi
}

# In a folder that is gone afterwards; the kernel appears when it is whole.
build() {
    local work
    mkdir -p "$cache"
    work=$(mktemp -d "$cache/build.XXXXXX")
    # shellcheck disable=SC2064 # the folder of now
    trap "rm -rf '$work'" EXIT
    packages
    cd "$work"
    fetch
    cd "$source"
    configure
    say "building in $PWD (about 11 minutes)"
    nice make -s ARCH=um -j "$(nproc)" linux >make.log 2>&1 || {
        tail -n 20 make.log >&2
        cannot "$source does not build as it stands"
    }
    strip -o "$work/linux" linux
    cp "$here/uml.config" "$cache/uml.config"
    mv "$work/linux" "$cache/linux"
}

if [ -n "${DTN_UML_KERNEL-}" ]; then
    [ -x "$DTN_UML_KERNEL" ] ||
        cannot "DTN_UML_KERNEL is $DTN_UML_KERNEL, which cannot be run"
    echo "$DTN_UML_KERNEL"
    exit
fi
if ! [ -x "$cache/linux" ] ||
    ! cmp -s <(options "$here/uml.config") <(options "$cache/uml.config"); then
    [ "${DTN_UML_BUILD-}" = 1 ] ||
        cannot "no kernel in $cache (DTN_UML_BUILD=1 makes one in 11 minutes)"
    build
fi
echo "$cache/linux"
