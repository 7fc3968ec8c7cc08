#!/bin/bash
# module.sh DIR - make the kernel module rxe_dmabuf.ko for the guest in DIR
#
# The kernel's headers are unpacked into DIR, never installed.  image.sh has put
# the kernel's package there.  Made once: DIR/module says of which source.
set -eu
dir=$(realpath "$1")
source=$(dirname "$0")/rxe_dmabuf.c
version=$(cat "$0" "$source" | cksum)
[ "$(cat "$dir/module" 2>/dev/null)" != "$version" ] || exit 0
kernel=$(cd "$dir" && echo linux-image-*.deb)
kernel=${kernel#linux-image-} kernel=${kernel%%_*} kernel=${kernel%-unsigned}
headers=linux-headers-$kernel

# fetch PACKAGE: unless it is there
fetch() {
    compgen -G "$dir/$1_*.deb" >/dev/null && return
    (cd "$dir" && apt-get download -qq "$1" 2>apt.log) && return
    echo "cannot download $1: $(tail -n 1 "$dir/apt.log")" >&2
    return 1
}
rm -rf "$dir/module" "$dir/headers" "$dir/build"
mkdir -p "$dir/headers" "$dir/build"
for package in "$headers" "${headers%-*}-common" "linux-kbuild-${kernel%-*}"; do
    fetch "$package"
    dpkg -x "$dir/$package"_*.deb "$dir/headers"
done
# The only absolute path in them is that of the common makefile.
sed -i "s,^include /usr,include $dir/headers/usr," \
    "$dir/headers/usr/src/$headers/Makefile"
cp "$source" "$dir/build/"
echo 'obj-m := rxe_dmabuf.o' >"$dir/build/Makefile"
make -s -C "$dir/headers/usr/src/$headers" M="$dir/build" \
    CONFIG_DEBUG_INFO_BTF_MODULES= modules >"$dir/build/log" 2>&1 || {
    echo "cannot build rxe_dmabuf.ko: $(tail -n 1 "$dir/build/log")" >&2
    exit 1
}
mv "$dir/build/rxe_dmabuf.ko" "$dir/"
rm -rf "$dir/headers" "$dir/build"
echo "$version" >"$dir/module"
