#!/bin/bash
# uml-init.sh - the first process of a guest of uml-pair.py
#
# Puts a writable layer in memory over the host's files, brings up the network
# and rxe0, the RDMA device on it, and runs $OUT/job there; its output and exit
# status go to $OUT/job.out.N and $OUT/job.rc.N.  $OUT is the host's own.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
if [ "${1-}" != inside ]; then
    # mount(8) is set-uid root; but what root owns on the host may be nobody's
    # here.  Started by the loader it stays root.
    mount() { /lib64/ld-linux-x86-64.so.2 "$(type -P mount)" "$@"; }
    mount -t tmpfs tmpfs /mnt
    mkdir /mnt/upper /mnt/work /mnt/root
    mount -t overlay -o nosuid,lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work \
        overlay /mnt/root
    cd /mnt/root || exit
    mount -t proc proc proc
    mount -t sysfs sysfs sys
    mount -t devtmpfs devtmpfs dev
    mkdir -p dev/shm
    mount -t tmpfs tmpfs dev/shm
    mount -t tmpfs tmpfs run
    mount -t hostfs -o "$OUT" hostfs ".$OUT"
    exec chroot . "$OUT/init" inside
fi

# perftest wants to know a speed; it measures it all the same.
{
    cat /proc/cpuinfo
    echo "cpu MHz : 1000"
} >/run/cpuinfo
mount --bind /run/cpuinfo /proc/cpuinfo
echo "node$GUEST_ID" >/proc/sys/kernel/hostname
printf '10.77.0.%s node%s\n' 1 1 2 2 >/etc/hosts
ulimit -l unlimited
ip link set lo up
ip link set vec0 mtu 9000 up
ip addr add "10.77.0.$GUEST_ID/24" dev vec0
rdma link add rxe0 type rxe netdev vec0
cd "$OUT" || exit
bash "$OUT/job" >"job.out.$GUEST_ID" 2>&1
echo $? >"job.rc.$GUEST_ID"
echo o >/proc/sysrq-trigger
sleep 10
