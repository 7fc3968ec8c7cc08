/* cgroup.h - what the control groups of this process allow */
#ifndef DTN_TRANSPORT_CGROUP_H
#define DTN_TRANSPORT_CGROUP_H

#include <stdint.h>

enum dtn_cgroup {
    DTN_CGROUP_MEMORY,            /* all memory                               */
    DTN_CGROUP_HUGE               /* pages of 2 MiB that are set aside        */
};

/* The limit in bytes; UINT64_MAX: none. */
uint64_t dtn_cgroup_bytes(enum dtn_cgroup what);

/* The same by the list of groups in the file `proc` and the tree at `mount`;
 * above they are "/proc/self/cgroup" and "/sys/fs/cgroup".
 */
uint64_t dtn_cgroup_bytes_at(enum dtn_cgroup what, const char *proc,
                             const char *mount);

#endif
