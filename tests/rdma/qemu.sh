# shellcheck shell=bash
# qemu.sh - start a guest; sourced by guest.sh and pair.sh
#
# QEMU emulates the processor, also where /dev/kvm opens: on a virtual machine that
# hides the features of its processor, KVM left guests in their BIOS for ever, and
# QEMU falls back only if KVM refuses to start.  The processor is a Nehalem: QEMU
# is slow at the string and checksum instructions of later ones, which rxe uses for
# each byte (195 MB/s instead of 86).  The guest has as many CPUs as the
# host, because ranks poll.  mitigations=off: a kernel that hides its memory from
# programs flushes the emulated TLB twice for each system call (21 us instead of
# 2; a write 65 us instead of 19).  tsc=reliable: on a busy host the kernel takes the
# TSC for unstable and reads the HPET instead, which is a system call and an exit.

# guest_prepare OUT SCRIPT [ARGUMENT...]: write OUT/start, which guests execute
guest_prepare() {
    local out=$1 name
    shift
    mkdir -p "$out"
    rm -f "$out"/{log,status,console,kill,at,net}.*
    {
        printf 'cd %q || exit\n' "$PWD"
        for name in top_srcdir top_builddir ${!DTN_@}; do
            printf 'export %s=%q\n' "$name" "${!name-}"
        done
        printf 'exec bash'
        printf ' %q' "$@"
        echo
    } >"$out/start"
}

# guest_start IMAGE OUT ID [QEMU-ARGUMENT...]: in the background
guest_start() {
    local image out=$2 id=$3 cpus
    image=$(realpath "$1")
    cpus=$(nproc)
    shift 3
    # shellcheck disable=SC2054
    local qemu=(qemu-system-x86_64 -accel tcg,thread=multi -cpu Nehalem
        -smp "$((cpus < 2 ? 2 : cpus < 4 ? cpus : 4))" -m 2560
        -nodefaults -nographic -no-reboot
        -kernel "$image/kernel" -initrd "$image/initrd.gz"
        -append "console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable \
guest.id=$id"
        -serial "file:console.$id"
        -fsdev local,id=host,path=/,security_model=none,readonly=on,multidevs=remap
        -device virtio-9p-pci,fsdev=host,mount_tag=host
        -fsdev local,id=out,path=.,security_model=none
        -device virtio-9p-pci,fsdev=out,mount_tag=out "$@")
    (cd "$out" && exec "${qemu[@]}" </dev/null 2>"console.$id.qemu") &
}

# guest_finish OUT ID: print the output of its script, and return its exit status;
# if the script did not end, print the end of the console, and return 125
guest_finish() {
    cat "$1/log.$2" 2>/dev/null
    [ -s "$1/status.$2" ] && return "$(cat "$1/status.$2")"
    tail -n 20 "$1/console.$2" "$1/console.$2.qemu" >&2
    return 125
}
