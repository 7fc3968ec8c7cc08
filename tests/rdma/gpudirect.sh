#!/bin/bash
# gpudirect.sh MODULE - in one guest with Linux 6.12: memory of a pretend GPU
#
# First without the module that lets soft RDMA devices register dma-bufs, as on
# a machine whose card cannot, then with it.
#
# Without this test, nothing would register memory that the CPU may not touch.
. "$top_srcdir/tests/rdma/inside.sh"
[ -e /dev/udmabuf ] || skip_all "this kernel has no /dev/udmabuf"
timeout 60 "$top_builddir/tests/rdma/gpudirect" refused || exit
insmod "$1" || exit
timeout 100 "$top_builddir/tests/rdma/gpudirect" direct || exit
[ "$(dmesg | grep -cE 'WARNING:|BUG:|Oops')" -eq 0 ] || dmesg | tail -40
