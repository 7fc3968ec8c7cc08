/* memlock.c - how much memory this process may lock
 *
 * Memory that is registered with an RDMA device is locked.  The kernel counts
 * it against RLIMIT_MEMLOCK of the process, by default 8 MiB on most systems
 * and 64 KiB on old ones.  Beyond it registration fails with ENOMEM and no
 * reason, so the limit is checked first.  It does not apply to a process with
 * CAP_IPC_LOCK in the user namespace of the whole machine; root in a container
 * may lack that.
 */
#include "base/units.h"
#include "transport/memlock.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define CAP_IPC_LOCK_BIT 14

/* Is this the user namespace of the whole machine? */
static bool memlock_whole_machine(void)
{
    unsigned long inside = 1, outside = 1, count = 0;
    FILE *file = fopen("/proc/self/uid_map", "re");

    if (!file)
        return true;              /* a kernel without user namespaces         */
    if (fscanf(file, "%lu %lu %lu", &inside, &outside, &count) != 3)
        count = 0;
    fclose(file);
    return inside == 0 && outside == 0 && count >= UINT32_MAX;
}

static bool memlock_exempt(void)
{
    FILE *file = fopen("/proc/self/status", "re");
    uint64_t caps = 0;
    char line[128];

    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "CapEff: %" SCNx64, &caps) == 1)
            break;
    if (file)
        fclose(file);
    return (caps >> CAP_IPC_LOCK_BIT & 1) && memlock_whole_machine();
}

uint64_t dtn_memlock_bytes(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0
        || limit.rlim_cur == RLIM_INFINITY || memlock_exempt())
        return DTN_MEMLOCK_UNLIMITED;
    return limit.rlim_cur;
}

char *dtn_memlock_text(uint64_t bytes, char *buf, size_t size)
{
    if (bytes == DTN_MEMLOCK_UNLIMITED)
        snprintf(buf, size, "unlimited");
    else
        dtn_format_size(bytes, buf, size);
    return buf;
}

const char *dtn_memlock_remedy(void)
{
    return getenv("SLURM_JOB_ID")
        ? "set ulimit -l unlimited; under Slurm also LimitMEMLOCK=infinity for "
          "slurmd and PropagateResourceLimitsExcept=MEMLOCK in slurm.conf"
        : "set ulimit -l unlimited, for good in /etc/security/limits.conf";
}
