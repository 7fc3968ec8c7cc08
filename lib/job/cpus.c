/* cpus.c - the CPUs that a rank runs on: [nodes] cpus
 *
 * With `cpus = 0-3 | 4-7` the thread of local rank 0 that opens the context is
 * bound to CPUs 0-3, and so are the threads that it starts later.  Only CPUs
 * that the launcher allows are used: for 4-7, if Slurm allows 6-9, the rank has
 * 6 and 7.  If none is allowed, the rank fails with an error that shows both
 * sets.  Closing the context restores the previous CPUs of the thread.
 *
 * `numa` means the CPUs near the rank's device, as hwloc reports them.  Without
 * a device it means those of a NUMA node: local rank i of n has node
 * i * nodes / n.
 */
#include "cluster/world.h"
#include "config.h"
#include "base/error.h"
#include "base/log.h"
#include "cluster/cluster.h"
#include "job/cpus.h"
#include "job/ctx.h"
#include "job/wire.h"
#include "dtensor.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_HWLOC
#include <hwloc.h>
#endif

enum { CPUS_MAX = DTN_CPU_SETS * CPU_SETSIZE };

/* The set of a list "0-3,8" that dtn_cpus_parse() has made. */
static void cpus_of_list(const char *list, cpu_set_t set[DTN_CPU_SETS])
{
    char *end;

    CPU_ZERO_S(DTN_CPU_BYTES, set);
    for (const char *p = list; *p; p = *end == ',' ? end + 1 : end) {
        long first = strtol(p, &end, 10), last = first;

        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        for (long cpu = first; cpu <= last && cpu < CPUS_MAX; cpu++)
            CPU_SET_S((size_t)cpu, DTN_CPU_BYTES, set);
    }
}

/* The set as "0-3,8"; cut if it does not fit. */
static char *cpus_text(const cpu_set_t set[DTN_CPU_SETS], char *buf,
                       size_t size)
{
    size_t used = 0;

    buf[0] = '\0';
    for (size_t cpu = 0, last; cpu < CPUS_MAX; cpu++) {
        if (!CPU_ISSET_S(cpu, DTN_CPU_BYTES, set) || used + 24 > size)
            continue;
        for (last = cpu; CPU_ISSET_S(last + 1, DTN_CPU_BYTES, set);)
            last++;
        used += (size_t)snprintf(buf + used, size - used,
                                 last > cpu ? "%s%zu-%zu" : "%s%zu",
                                 used ? "," : "", cpu, last);
        cpu = last;
    }
    return buf;
}

#ifdef HAVE_HWLOC
/* The hwloc object next to the device "mlx5_0:1+mlx5_1:1", the first one, or
 * NULL.
 */
static hwloc_const_cpuset_t cpus_of_device(hwloc_topology_t topology,
                                           const char *device)
{
    size_t n = strcspn(device, ":+");
    hwloc_obj_t obj = NULL;

    while ((obj = hwloc_get_next_osdev(topology, obj)))
        if (obj->name && strlen(obj->name) == n
            && strncmp(obj->name, device, n) == 0)
            return hwloc_get_non_io_ancestor_obj(topology, obj)->cpuset;
    return NULL;
}

static int cpus_near(const struct dtensor_ctx *ctx,
                     cpu_set_t set[DTN_CPU_SETS], struct dtensor_error *err)
{
    const char *device = dtn_world_device(&ctx->world);
    hwloc_const_cpuset_t found = NULL;
    hwloc_topology_t topology;
    int nodes, node;

    if (hwloc_topology_init(&topology) != 0)
        return dtn_fail_nomem(err, "cpus", sizeof topology);
    if (device)
        hwloc_topology_set_io_types_filter(topology,
                                           HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    if (hwloc_topology_load(topology) == 0) {
        nodes = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE);
        node = ctx->world.local_rank * nodes
               / dtn_world_nodes(&ctx->world)->nranks;
        found = device ? cpus_of_device(topology, device) : nodes > 0
              ? hwloc_get_obj_by_type(topology, HWLOC_OBJ_NUMANODE,
                                      (unsigned)node)->cpuset : NULL;
    }
    CPU_ZERO_S(DTN_CPU_BYTES, set);
    for (unsigned cpu = 0; found && cpu < CPUS_MAX; cpu++)
        if (hwloc_bitmap_isset(found, cpu))
            CPU_SET_S(cpu, DTN_CPU_BYTES, set);
    hwloc_topology_destroy(topology);
    if (!found)
        return dtn_fail(err, DTENSOR_ENODEV, "cpus: numa, but hwloc knows no "
                        "CPUs next to %s on %s (give lists, see lstopo)",
                        device ? device : "any memory", ctx->world.host_name);
    return 0;
}
#else
static int cpus_near(const struct dtensor_ctx *ctx,
                     cpu_set_t set[DTN_CPU_SETS], struct dtensor_error *err)
{
    return dtn_fail(err, DTENSOR_ECONF, "cpus: numa is not in this build, which "
                    "is without hwloc (give lists, such as 0-7 | 8-15)");
}
#endif

/* The CPUs of [nodes] cpus for this rank. */
static int cpus_wanted(const struct dtensor_ctx *ctx,
                       cpu_set_t set[DTN_CPU_SETS], struct dtensor_error *err)
{
    const struct dtn_nodes *nodes = dtn_world_nodes(&ctx->world);

    if (!nodes->cpus)
        return cpus_near(ctx, set, err);
    cpus_of_list(nodes->cpus[ctx->world.local_rank], set);
    return 0;
}

int dtn_cpus_bind(struct dtensor_ctx *ctx, struct dtensor_error *err)
{
    const struct dtn_nodes *nodes = dtn_world_nodes(&ctx->world);
    cpu_set_t want[DTN_CPU_SETS], both[DTN_CPU_SETS];
    cpu_set_t *const before = ctx->cpus.before;
    char want_text[200], have_text[200];
    bool all;
    int rc;

    if (!nodes->cpus && !nodes->cpus_numa)
        return 0;
    rc = cpus_wanted(ctx, want, err);
    if (rc != 0)
        return rc;
    CPU_ZERO_S(DTN_CPU_BYTES, before);
    if (sched_getaffinity(0, DTN_CPU_BYTES, before) != 0)
        return dtn_fail_sys(err, errno, "cpus: cannot get allowed CPUs: %m");
    CPU_AND_S(DTN_CPU_BYTES, both, want, before);
    cpus_text(want, want_text, sizeof want_text);
    cpus_text(before, have_text, sizeof have_text);
    if (CPU_COUNT_S(DTN_CPU_BYTES, both) == 0)
        return dtn_fail(err, DTENSOR_ECONF,
                        "cpus: rank %d on %s is to run on "
                        "%s, but may only on %s (change cpus, or what the "
                        "launcher allows, with Slurm by --cpu-bind)",
                        ctx->world.rank, ctx->world.host_name, want_text,
                        have_text);
    if (sched_setaffinity(0, DTN_CPU_BYTES, both) != 0)
        return dtn_fail_sys(err, errno,
                            "cpus: cannot bind rank %d on %s to %s: "
                            "%m",
                            ctx->world.rank, ctx->world.host_name, want_text);
    ctx->cpus.bound = true;
    all = CPU_EQUAL_S(DTN_CPU_BYTES, both, want);
    dtn_log(&ctx->log, all ? DTN_LOG_INFO : DTN_LOG_WARN,
            "cpus: bound to %s%s%s", cpus_text(both, have_text,
                                               sizeof have_text),
            all ? "" : ", all that the launcher allows of ",
            all ? "" : want_text);
    return 0;
}

void dtn_cpus_unbind(struct dtensor_ctx *ctx)
{
    if (ctx->cpus.bound)
        sched_setaffinity(0, DTN_CPU_BYTES, ctx->cpus.before);
    ctx->cpus.bound = false;
}

cpu_set_t dtn_cpus_folded(void)
{
    cpu_set_t set[DTN_CPU_SETS];

    CPU_ZERO_S(DTN_CPU_BYTES, set);
    sched_getaffinity(0, DTN_CPU_BYTES, set);
    for (int i = 1; i < DTN_CPU_SETS; i++)
        CPU_OR(&set[0], &set[0], &set[i]);
    return set[0];
}
