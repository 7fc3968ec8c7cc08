/* member.c - a simulated rank that joins and gathers, without a context */
#include "tests/sim/member.h"
#include "boot/boot.h"
#include "boot/table.h"
#include "cluster/cluster.h"
#include "transport/transport.h"
#include "tests/sim/job.h"

#include <string.h>
#include <unistd.h>

int sim_member_open(struct sim_member *member, const char *identity,
                    struct dtensor_error *err)
{
    int rc;

    memset(member, 0, sizeof *member);
    dtn_log_init(&member->log);
    rc = dtn_whoami(sim_job.path, &member->log, &member->world, err);
    return rc != 0 ? rc
         : dtn_boot_open(&(struct dtn_boot_args){ .world = &member->world,
                             .identity = identity, .log = &member->log },
                         &member->boot, err);
}

void sim_member_close(struct sim_member *member)
{
    dtn_boot_close(member->boot);
    dtensor_cluster_destroy(member->world.cluster);
}

int sim_member_gather(struct sim_member *member, bool *right,
                      struct dtensor_error *err)
{
    const int rank = member->world.rank;
    const int first = rank / sim_job.per_host * sim_job.per_host;
    const uint16_t port = dtn_boot_late_open(member->boot);
    struct dtn_blob mine = {
        .size = sizeof rank + (port > 0 ? sizeof port : 0), .fd = -1
    };
    struct dtn_table *all = NULL;
    int rc, fd, it;

    memcpy(mine.bytes, &rank, sizeof rank);
    memcpy(mine.bytes + sizeof rank, &port, sizeof port);
    rc = dtn_boot_beat_open(member->boot, &mine.fd, err);
    if (rc == 0)
        rc = dtn_boot_allgather(member->boot, &mine, &all, err);
    *right = rc == 0;
    for (int r = 0; r < sim_job.n && rc == 0; r++) {
        dtn_table_copy(all, r, &it, sizeof it);
        *right = *right && it == r;
    }
    if (rc == 0)
        dtn_boot_late_ports(member->boot, all, sizeof rank);
    fd = rc == 0 ? dtn_table_take_fd(all, first) : -1;
    dtn_table_free(all);
    if (rc == 0)
        rc = dtn_boot_beat_start(member->boot, fd, err);
    if (fd >= 0)
        close(fd);
    return rc;
}

int sim_member_meet(struct sim_member *member, struct dtensor_error *err)
{
    const struct dtn_blob mine = { .fd = -1 };
    struct dtn_table *all = NULL;
    int rc = dtn_boot_allgather(member->boot, &mine, &all, err);

    dtn_table_free(all);
    return rc;
}
