/* keys.c - the keys of registered memory on several rails
 *
 * Registered memory has a key on each rail, but a name has room for one.  So
 * each rank has a table with a row of keys for each region, and each peer has a
 * copy of it in its lane.  The key word of a name is
 *
 *     row + 1 (32 bits) | key on rail 0 (32 bits)
 *
 * and a row is, for example, 0x1a07, 0x2b11: the keys on rail 0 and on rail 1.
 * Rows change when memory is registered, a few times in a job.  They are
 * written to a peer in front of the next signal, so they arrive before a name
 * that this signal carries.  If a peer learns a name in another way, the row
 * may not be there.  Then the first key of the row is not the key of the name,
 * and all bytes go by rail 0.
 */
#include "base/error.h"
#include "cluster/cluster.h"
#include "transport/arena.h"
#include "transport/arena_size.h"
#include "transport/verbs/verbs.h"
#include "transport/verbs/fail.h"
#include "transport/verbs/keys.h"
#include "transport/verbs/memory.h"
#include "transport/verbs/peer.h"
#include "transport/verbs/rail.h"
#include "dtensor.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static size_t keys_bytes(const struct dtn_verbs_keys *keys)
{
    return (size_t)DTN_VERBS_REGIONS * (size_t)keys->nrails *
           sizeof keys->key[0];
}

int dtn_verbs_keys_init(struct dtn_verbs_memory *memory,
                        struct dtensor_error *err)
{
    struct dtn_verbs_keys *keys = &memory->keys;

    keys->nrails = memory->nrails;
    if (keys->nrails == 1)
        return 0;
    keys->written = calloc(DTN_VERBS_REGIONS, sizeof keys->written[0]);
    keys->taken = calloc(DTN_VERBS_REGIONS, sizeof keys->taken[0]);
    keys->key = dtn_arena_alloc(memory->arena, keys_bytes(keys));
    if (!keys->key)
        return dtn_arena_fail(memory->arena, "verbs", keys_bytes(keys), err);
    if (!keys->written || !keys->taken)
        return dtn_fail_nomem(err, "verbs", DTN_VERBS_REGIONS);
    memset(keys->key, 0, keys_bytes(keys));
    keys->mr = ibv_reg_mr(memory->rails[0].pd, keys->key, keys_bytes(keys),
                          IBV_ACCESS_LOCAL_WRITE);
    return keys->mr ? 0 : dtn_verbs_fail_register(&memory->rails[0].device,
                                                  keys_bytes(keys), errno, err);
}

void dtn_verbs_keys_fini(struct dtn_verbs_memory *memory)
{
    struct dtn_verbs_keys *keys = &memory->keys;

    if (keys->mr)
        ibv_dereg_mr(keys->mr);
    dtn_arena_free(memory->arena, keys->key);
    free(keys->written);
    free(keys->taken);
    memset(keys, 0, sizeof *keys);
}

int dtn_verbs_keys_take(struct dtn_verbs_keys *keys, struct ibv_mr *const mr[])
{
    int row = 0;

    while (keys->key && row < DTN_VERBS_REGIONS && keys->taken[row])
        row++;
    if (!keys->key || row == DTN_VERBS_REGIONS)
        return -1;
    for (int k = 0; k < keys->nrails; k++)
        keys->key[row * keys->nrails + k] = mr[k]->rkey;
    keys->taken[row] = true;
    keys->written[row] = ++keys->version;
    return row;
}

void dtn_verbs_keys_drop(struct dtn_verbs_keys *keys, int row)
{
    if (row >= 0)
        keys->taken[row] = false;
}

uint64_t dtn_verbs_keys_name(const struct dtn_verbs_region *region)
{
    return (uint64_t)(region->row + 1) << 32 | region->mr[0]->rkey;
}

int dtn_verbs_keys_find(const struct dtn_verbs *verbs,
                        const struct dtn_verbs_peer *peer, uint64_t name,
                        uint32_t key[DTN_MAX_RAILS])
{
    uint64_t row = name >> 32;
    const _Atomic uint32_t *told;

    key[0] = (uint32_t)name;
    if (verbs->nrails == 1 || row == 0 || row > DTN_VERBS_REGIONS)
        return 1;
    told = &peer->lane->keys[(row - 1) * (uint64_t)verbs->nrails];
    if (atomic_load_explicit(&told[0], memory_order_acquire) != key[0])
        return 1;
    for (int k = 1; k < verbs->nrails; k++)
        key[k] = atomic_load_explicit(&told[k], memory_order_relaxed);
    return verbs->nrails;
}
