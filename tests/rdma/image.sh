#!/bin/bash
# image.sh DIR [PACKAGE] - make the kernel and first file system of the RDMA
# guest in DIR
#
# The kernel is a Debian package, by default linux-image-amd64.  It is unpacked
# into DIR, not installed.  The first file system has busybox, the modules of a
# soft RDMA device in the order in which they depend on each other, and the init
# below.  It is made once: DIR/ready says by which version of this script.
set -eu
dir=$1 wanted=${2:-linux-image-amd64}
version=$(cksum <"$0")
[ "$(cat "$dir/ready" 2>/dev/null)" != "$version" ] || exit 0
rm -rf "$dir/ready" "$dir/root" "$dir/initrd"
mkdir -p "$dir/root" "$dir/initrd"/{bin,modules,proc,sys,dev,host,upper,merged}

# fetch: the kernel's package, unless it is there
fetch() {
    local package
    package=$(apt-cache depends "$wanted" |
        awk '/Depends:/ { print $2; exit }')
    [ -n "$package" ] || { echo "no linux-image package is known" >&2; return 1; }
    (cd "$dir" && apt-get download -qq "$package" 2>apt.log) && return
    echo "cannot download $package: $(tail -n 1 "$dir/apt.log")" >&2
    return 1
}
compgen -G "$dir/linux-image-*.deb" >/dev/null || fetch
dpkg -x "$dir"/linux-image-*.deb "$dir/root"
kernel=$(cd "$dir/root/lib/modules" && echo *)
depmod -b "$dir/root" "$kernel"

# Without a crc32 module rxe0 cannot be made.
for module in virtio_pci virtio_net 9pnet_virtio 9p overlay dummy \
    crc32_generic ib_uverbs rdma_ucm ib_umad rdma_rxe \
    sch_netem sch_tbf; do
    modprobe -d "$dir/root" -S "$kernel" --show-depends "$module" |
        awk '$1 == "insmod" { print $2 }'
done | awk '!seen[$0]++' | while read -r module; do
    name=$(basename "$module" .xz)
    case $module in
    *.xz) xz -dc "$module" >"$dir/initrd/modules/$name" ;;
    *) cp "$module" "$dir/initrd/modules/$name" ;;
    esac
    echo "$name"
done >"$dir/order"
mv "$dir/order" "$dir/initrd/modules/order"

cp "$(command -v busybox)" "$dir/initrd/bin/busybox"
cat >"$dir/initrd/init" <<'INIT'
#!/bin/busybox sh
# Mount the host's file system read-only under a layer of memory, make rxe0 and
# rxe1, on links that end here unless there are two cards, run /guest-out/start,
# and switch off.
b=/bin/busybox
$b mount -t proc proc /proc
$b mount -t sysfs sys /sys
$b mount -t devtmpfs dev /dev
for m in $($b cat /modules/order); do
    $b insmod "/modules/$m" || echo "no $m"
done
id=$($b sed -n 's/.*guest\.id=\([^ ]*\).*/\1/p' /proc/cmdline)
share=trans=virtio,version=9p2000.L,msize=1048576
$b mount -t 9p -o "$share,ro,cache=loose" host /host || $b poweroff -f
$b mount -t tmpfs tmpfs /upper
$b mkdir /upper/up /upper/work
r=/merged
$b mount -t overlay -o lowerdir=/host,upperdir=/upper/up,workdir=/upper/work \
    overlay $r || $b poweroff -f
for d in proc sys dev; do $b mount --move /$d $r/$d; done
$b mkdir -p $r/dev/shm $r/dev/pts $r/run $r/guest-out
$b mount -t tmpfs tmpfs $r/dev/shm
$b mount -t tmpfs tmpfs $r/run
$b mount -t 9p -o "$share,rw,cache=none" out $r/guest-out
$b ip link set lo up
for n in 0 1; do
    [ -e /sys/class/net/eth$n ] || $b ip link add eth$n type dummy
    $b ip link set eth$n mtu 9000
    $b ip addr add "10.7$((7 + n)).0.$id/24" dev eth$n
    $b ip link set eth$n up
done
$b hostname "node$id"
$b chroot $r /bin/sh -c '
    printf "127.0.0.1 localhost\n10.77.0.1 node1\n10.77.0.2 node2\n" >/etc/hosts
    for n in 0 1; do
        rdma link add rxe$n type rxe netdev eth$n || echo "no rxe$n can be made"
    done
    ulimit -l unlimited
    GUEST_ID=$1 bash /guest-out/start >/guest-out/log.$1 2>&1 </dev/null
    echo $? >/guest-out/status.$1' sh "$id"
$b sync
$b poweroff -f
INIT
chmod +x "$dir/initrd/init"
(cd "$dir/initrd" && find . | cpio --quiet -o -H newc | gzip -1) >"$dir/initrd.gz"

# unpacked BZIMAGE: the kernel in it, if xz packed it; the header says where it is
unpacked() {
    local setup at
    setup=$(od -An -v -t u1 -j $((0x1f1)) -N 1 "$1")
    at=$(od -An -v -t u4 -j $((0x248)) -N 4 "$1")
    tail -c +$(((setup + 1) * 512 + at + 1)) "$1" | xz -dc --single-stream
}

# QEMU loads an unpacked kernel in no time; to unpack it took a guest half of its
# boot.  Note 18 is the entry by which QEMU starts such a kernel.
cp "$dir"/root/boot/vmlinuz-* "$dir/packed"
unpacked "$dir/packed" >"$dir/kernel" 2>/dev/null || :
readelf -n "$dir/kernel" 2>/dev/null | grep -q 'type: (0x00000012)' ||
    mv "$dir/packed" "$dir/kernel"
rm -f "$dir/packed"
rm -rf "$dir/root" "$dir/initrd"
echo "$version" >"$dir/ready"
