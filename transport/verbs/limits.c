/* limits.c - what the machine allows
 *
 * Three limits end most first attempts: the memory that may be locked, the
 * queue pairs of the device, and the MTU of the network.  They are checked when
 * the transport opens.  So a job fails in its first second, with a number and a
 * remedy, and not in its third hour with "Cannot allocate memory".
 *
 * Before the first tensor a rank locks a bounce buffer of 1 MiB, 20 KiB for
 * datagrams, and 134 KiB for the lane of each peer, of which a ring has two.
 * Memory that two devices know counts twice.
 */
#include "base/compiler.h"
#include "base/error.h"
#include "base/log.h"
#include "cluster/cluster.h"
#include "transport/arena.h"
#include "transport/memlock.h"
#include "transport/transport.h"
#include "transport/verbs/verbs.h"
#include "transport/verbs/device.h"
#include "transport/verbs/lane.h"
#include "transport/verbs/limits.h"
#include "transport/verbs/put.h"
#include "transport/verbs/words.h"
#include "dtensor.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdlib.h>

enum {
    DATAGRAM_BYTES = 20 << 10     /* locked by verbs/meet.c, in whole pages   */
};

uint64_t dtn_memlock_need(int nranks, int nrails)
{
    uint64_t peers = nranks < 3 ? (uint64_t)nranks - 1 : 2;
    uint64_t lane = dtn_verbs_lane_bytes(nrails);
    uint64_t keys = lane - sizeof(struct dtn_verbs_lane);

    return peers * lane * (uint64_t)nrails + keys + DTN_VERBS_STAGE_BYTES
         + DATAGRAM_BYTES;
}

static int limits_memlock(const struct dtn_verbs *verbs,
                          struct dtensor_error *err)
{
    const struct dtn_open_args *args = &verbs->args;
    uint64_t have = dtn_memlock_bytes(), rails = (uint64_t)verbs->nrails;
    uint64_t need = dtn_memlock_need(args->nranks, verbs->nrails);
    char have_text[32], need_text[32], arena_text[32];

    dtn_memlock_text(have, have_text, sizeof have_text);
    dtn_memlock_text(need, need_text, sizeof need_text);
    dtn_memlock_text(rails * args->arena->backing.size, arena_text,
                     sizeof arena_text);
    if (have < need)
        return dtn_fail(err, DTENSOR_ENOMEM, "verbs: %s of memory may be "
                        "locked, %s uses %s for %d ranks before any tensor "
                        "(%s)", have_text, verbs->rail[0].device.name,
                        need_text, args->nranks, dtn_memlock_remedy());
    if (have < need + rails * args->arena->backing.size)
        dtn_log(args->log, DTN_LOG_WARN, "verbs: %s of memory may be locked, "
                "and tensors may take %s: large ones will fail (%s)",
                have_text, arena_text, dtn_memlock_remedy());
    else
        dtn_log(args->log, DTN_LOG_DEBUG, "verbs: memory that may be locked: %s, "
                "of which %s are needed to begin with", have_text, need_text);
    return 0;
}

int dtn_verbs_limits_more(const struct dtn_verbs *verbs, size_t size,
                          struct dtensor_error *err)
{
    uint64_t have = dtn_memlock_bytes(), rails = (uint64_t)verbs->nrails;
    uint64_t used = dtn_memlock_need(verbs->args.nranks, verbs->nrails)
                  + rails * verbs->memory.bytes;
    char have_text[32], used_text[32], size_text[32];

    if (used <= have && size <= (have - used) / rails)
        return 0;
    return dtn_fail(err, DTENSOR_ENOMEM, "verbs: %s more cannot be locked for "
                    "%s: this process may lock %s, of which %s are (%s)",
                    dtn_memlock_text(rails * size, size_text,
                                     sizeof size_text),
                    verbs->rail[0].device.name,
                    dtn_memlock_text(have, have_text, sizeof have_text),
                    dtn_memlock_text(used, used_text, sizeof used_text),
                    dtn_memlock_remedy());
}

/* The MTU of a queue pair is the smallest of the file's and both ports'. */
static void limits_mtu(const struct dtn_open_args *args,
                       const struct dtn_verbs_device *device)
{
    int active = 128 << device->mtu, want = args->conf->mtu;

    if (want <= active)
        return;
    if (device->ethernet)
        dtn_log(args->log, DTN_LOG_WARN,
                "verbs: [transport] mtu = %d, but %s "
                "port %d has %d: that is used (an Ethernet MTU of %d or more "
                "on every host and switch is needed for %d)",
                want, device->name, device->port, active,
                want + DTN_VERBS_ROCE_HEADERS, want);
    else
        dtn_log(args->log, DTN_LOG_WARN, "verbs: [transport] mtu = %d, but %s "
                "port %d has %d: that is used (the subnet manager sets it)",
                want, device->name, device->port, active);
}

static void limits_queues(const struct dtn_open_args *args,
                          const struct dtn_verbs_device *device)
{
    if (args->nranks > device->max_qp)
        dtn_log(args->log, DTN_LOG_WARN, "verbs: %s has %d queue pairs, fewer "
                "than %d ranks: algorithms that talk to all of them will fail "
                "(see [tuning])", device->name, device->max_qp, args->nranks);
}

static void limits_fork(const struct dtn_open_args *args)
{
    static const char *const words[] = {
        [IBV_FORK_DISABLED] = "a child made by fork() takes pages away from "
            "the device (start children before dtensor_init, or set "
            "RDMAV_FORK_SAFE=1)",
        [IBV_FORK_ENABLED] = "pages the device knows are kept from children "
            "made by fork()",
        [IBV_FORK_UNNEEDED] = "the kernel copies what the device knows for a "
            "child made by fork()"
    };
    enum ibv_fork_status status = ibv_is_fork_initialized();

    if ((size_t)status < DTN_COUNT(words))
        dtn_log(args->log, status == IBV_FORK_DISABLED ? DTN_LOG_INFO
                : DTN_LOG_DEBUG, "verbs: fork: %s", words[status]);
}

static void limits_retry(const struct dtn_open_args *args)
{
    const struct dtn_transport_conf *conf = args->conf;
    char text[80];

    if (conf->timeout == 0 || conf->retry_count == 7)
        dtn_log(args->log, DTN_LOG_WARN, "verbs: [transport] %s: some devices "
                "try for ever, and a dead peer is not noticed (expected "
                "timeout = 16, retry_count = 6)", conf->timeout == 0
                ? "timeout = 0" : "retry_count = 7");
    else
        dtn_log(args->log, DTN_LOG_DEBUG, "verbs: a silent peer is given up "
                "after at least %s", dtn_verbs_give_up_text(conf, text,
                                                            sizeof text));
}

int dtn_verbs_limits_check(const struct dtn_verbs *verbs,
                           struct dtensor_error *err)
{
    const struct dtn_open_args *args = &verbs->args;
    int rc = limits_memlock(verbs, err);

    if (rc != 0)
        return rc;
    for (int k = 0; k < verbs->nrails; k++) {
        limits_mtu(args, &verbs->rail[k].device);
        limits_queues(args, &verbs->rail[k].device);
    }
    limits_retry(args);
    limits_fork(args);
    return 0;
}
