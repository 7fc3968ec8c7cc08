#!/bin/bash
# check.sh - rc on soft RDMA devices, in guests: what `make check-rdma` runs
#
# Each row of `runs` is a script that prints TAP in one guest, or in two guests
# joined by a wire.  Their results become results of this test; a guest that does
# not reach the end of its plan has failed.  DTN_RDMA_IMAGE is the directory of
# the guest's kernel (rdma-image).  DTN_RDMA_ONLY is part of the names of the
# runs to make.  DTN_RDMA_PATIENCE multiplies the seconds that a guest may take.
# With DTN_RDMA_SUITES=all gpusuites.sh runs all suites that there are.
#
# Without this test, nothing would run over verbs on a machine without an RDMA
# device.
. "$top_srcdir/tests/tap.sh"
here=$top_srcdir/tests/rdma
image=${DTN_RDMA_IMAGE:-$top_builddir/rdma-image}
export PATH=$PATH:/usr/sbin:/sbin

# guests, seconds, script and its arguments; gpu: a guest with Linux 6.12
runs="
guest 240 transport.sh
guest 150 deaths.sh
guest 240 collectives.sh
guest 180 tensors.sh
guest 120 zerocopy.sh
guest 400 calls.sh
guest 400 poor.sh
guest 400 rails.sh
guest 200 speed.sh
guest 200 footprint.sh
guest 120 refusals.sh
gpu   400 gpudirect.sh
gpu   600 gpusuites.sh
pair  240 unlike.sh
pair  240 hosts.sh 1
pair  300 hosts.sh 2
pair  240 weather.sh
pair  240 twowires.sh
pair  150 control.sh
pair  150 lost.sh packets
pair  150 lost.sh power
"

# lacking: print what is needed and is not here
lacking() {
    [ "$(uname -m)" = x86_64 ] || echo "an x86-64 machine"
    for tool in qemu-system-x86_64 busybox cpio depmod modprobe rdma tc \
        setpriv apt-get dpkg; do
        command -v "$tool" >/dev/null || echo "$tool"
    done
    [ -n "$(compgen -G '/usr/lib/*/libibverbs/librxe-rdmav*.so')" ] ||
        echo "ibverbs-providers"
}

# collect LABEL: take over the TAP on stdin, of one program or several
collect() {
    local line n=0 plans=0 whole=0
    while IFS= read -r line; do
        line=${line%$'\r'}
        case $line in
        'ok '*' # SKIP '*)
            n=$((n + 1)) line=${line#ok * - }
            skip_test "$1: ${line%% # SKIP*}" "${line#*# SKIP }"
            ;;
        'ok '*) n=$((n + 1)) && ok 0 "$1: ${line#ok * - }" ;;
        'not ok '*) n=$((n + 1)) && ok 1 "$1: ${line#not ok * - }" ;;
        '1..'*)
            [ "${line#1..}" = "$n" ] && whole=$((whole + 1))
            plans=$((plans + 1)) n=0
            ;;
        *)
            while [[ $line == '#'* ]]; do line=${line#\#} line=${line# }; done
            echo "# $line"
            ;;
        esac
    done
    [ "$plans" -gt 0 ] && [ "$n" -eq 0 ] && [ "$whole" -eq "$plans" ]
    ok $? "$1: ran to its end"
}

# progress WORDS...: print to the output of make, not to the log
progress() { { echo "check-rdma: $*, after $SECONDS s" >&9; } 2>/dev/null || :; }

# complete: did the run in `out` end well, with no claim refused?  If the host
# does not run the processors of an emulated guest for a minute, its claims can
# fail in many ways.  So a run that fails is tried three times; an error of the
# library fails each time.
complete() {
    [ "$status" -eq 0 ] && ! grep -qs '^not ok' "$out"/log.[12]
}

# gpu_image: the kernel of the gpu guest, and the module for it
gpu_image() {
    mkdir -p "$image/gpu" &&
        "$here/image.sh" "$image/gpu" linux-image-6.12-amd64 &&
        "$here/module.sh" "$image/gpu"
}

lacking=$(lacking | paste -sd,)
[ -z "$lacking" ] || skip_all "no RDMA guest without ${lacking//,/, }"
"$top_builddir/dtensor-bench" --version | grep -q 'verbs yes' ||
    skip_all "this build is without verbs"
mkdir -p "$image"
why=$("$here/image.sh" "$image" 2>&1) ||
    skip_all "no guest kernel: $(tail -n 1 <<<"$why")"

all=$(grep -c '\.sh' <<<"$runs") nth=0
while read -r guests seconds script arguments; do
    [ -n "$script" ] || continue
    nth=$((nth + 1))
    name=${script%.sh}${arguments:+-$arguments}
    [[ $name == *"${DTN_RDMA_ONLY-}"* ]] || continue
    progress "run $nth of $all: $name ($guests)"
    kernel=$image
    if [ "$guests" = gpu ]; then
        guests=guest kernel=$image/gpu arguments=$image/gpu/rxe_dmabuf.ko
        if ! why=$(gpu_image 2>&1); then
            skip_test "$name" "no guest kernel with dma-bufs: $(tail -n 1 <<<"$why")"
            continue
        fi
    fi
    out=$top_builddir/rdma-out/$name
    seconds=$((seconds * ${DTN_RDMA_PATIENCE:-1}))
    for try in 1 2 3; do
        # shellcheck disable=SC2086
        "$here/$guests.sh" "$kernel" "$out" "$seconds" "$here/$script" \
            $arguments >/dev/null 2>"$top_builddir/rdma-out.log"
        status=$?
        ! complete || break
    done
    [ "$try" -eq 1 ] || echo "# $name: the guests of $((try - 1)) tries failed"
    collect "$name node1" <"$out/log.1"
    if [ "$guests" = pair ] && [ ! -e "$out/kill.2" ]; then
        collect "$name node2" <"$out/log.2"
    fi
    [ "$status" -eq 0 ] || sed 's/^/# /' "$top_builddir/rdma-out.log"
    ok "$status" "$name: the guest ends well"
done <<<"$runs"
progress "all $all runs are over"
done_testing
