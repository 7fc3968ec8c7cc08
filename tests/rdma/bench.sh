#!/bin/bash
# bench.sh - rc beside others on a soft RDMA device: what `make bench-rdma` runs
#
# A guest for each part of figures.sh.  DTN_RDMA_ONLY is a word of the parts to
# run, DTN_RDMA_IMAGE as for check.sh.
here=$top_srcdir/tests/rdma
image=${DTN_RDMA_IMAGE:-$top_builddir/rdma-image}
peer=$top_builddir/tests/rdma/peer
libs=$(cd "$top_builddir" && pwd)/.libs
export PATH=$PATH:/usr/sbin:/sbin
mkdir -p "$image" && "$here/image.sh" "$image" || exit

# Open MPI is the host's; the guest sees its files.
no_peer() {
    command -v mpirun.openmpi >/dev/null || { echo "no mpirun.openmpi" && return; }
    command -v mpicc.openmpi >/dev/null || { echo "no mpicc.openmpi" && return; }
    ompi_info --parsable 2>/dev/null | grep -q '^mca:pml:ucx:' ||
        { echo "it is without UCX" && return; }
    mpicc.openmpi -std=c11 -D_GNU_SOURCE -O2 -I"$top_srcdir/lib" -o "$peer" \
        "$top_srcdir/tests/peers/host_mpi.c" "$libs/libdtensor.so" \
        -Wl,-rpath,"$libs" || echo "its compiler failed"
}

parts="writes
turns"
why=$(no_peer)
[ -n "$why" ] || parts="$parts
peer 2
peer 4"
[ -z "$why" ] || echo "not compared with Open MPI: $why (apt-get install \
openmpi-bin libopenmpi-dev)"
status=0
while read -r part; do
    [[ $part == *"${DTN_RDMA_ONLY-}"* ]] || continue
    # shellcheck disable=SC2086
    "$here/guest.sh" "$image" "$top_builddir/rdma-out/${part/ /-}" 600 \
        "$here/figures.sh" $part || status=1
done <<<"$parts"
exit $status
