/* bind.c - the CPUs of each rank (--bind)
 *
 * hwloc divides the CPUs that this process may use, so that ranks share as few
 * cores and caches as can be.  Two ranks on four cores with two threads each
 * get two cores each, also where the threads of one core are CPUs 0 and 4.
 */
#include "config.h"

#include "tools/run/run.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>

#ifdef HAVE_HWLOC
#include <hwloc.h>
#include <hwloc/glibc-sched.h>

/* The machine, without CPUs that this process may not use. */
static bool bind_load(hwloc_topology_t topology)
{
    hwloc_bitmap_t usable = hwloc_bitmap_alloc();
    const bool good = usable && hwloc_topology_load(topology) == 0
        && hwloc_get_cpubind(topology, usable, HWLOC_CPUBIND_PROCESS) == 0
        && hwloc_topology_restrict(topology, usable, 0) == 0;

    hwloc_bitmap_free(usable);
    return good;
}

static bool bind_divide(hwloc_topology_t topology, int nranks,
                        struct run_cpus cpus[])
{
    hwloc_bitmap_t *sets = calloc((size_t)nranks, sizeof *sets);
    hwloc_obj_t root = hwloc_get_root_obj(topology);
    bool good = sets && hwloc_distrib(topology, &root, 1, sets,
                                      (unsigned)nranks, INT_MAX, 0) == 0;

    for (int r = 0; sets && r < nranks; r++) {
        good = good && sets[r] && hwloc_cpuset_to_glibc_sched_affinity(
            topology, sets[r], cpus[r].set, sizeof cpus[r].set) == 0;
        hwloc_bitmap_free(sets[r]);
    }
    free(sets);
    return good;
}

bool run_bind_divide(int nranks, struct run_cpus cpus[])
{
    hwloc_topology_t topology;
    bool good;

    if (hwloc_topology_init(&topology) != 0)
        return false;
    good = bind_load(topology) && bind_divide(topology, nranks, cpus);
    hwloc_topology_destroy(topology);
    return good;
}
#else
bool run_bind_divide(int nranks, struct run_cpus cpus[])
{
    errno = ENOSYS;
    return false;
}
#endif
