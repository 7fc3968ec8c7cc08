/* rdma.c - is there an RDMA device for tests to run over? */
#include "config.h"
#include "tests/support/rdma.h"

#include <stddef.h>

#ifdef HAVE_VERBS
#include <infiniband/verbs.h>
#endif

const char *rdma_absent(void)
{
#ifdef HAVE_VERBS
    int n = 0;
    struct ibv_device **list = ibv_get_device_list(&n);

    if (list)
        ibv_free_device_list(list);
    return n > 0 ? NULL : "no RDMA device here: see make check-rdma";
#else
    return "this build is without verbs";
#endif
}
