/* plans.c - schedules already made, by call
 *
 * The first allreduce of 1000 floats over a group makes a plan; the next
 * thousand find it by its call: one hash, one comparison.  At most 256 plans,
 * and at most [redistribute] max_scratch bytes of scratch among them, are
 * kept; the least recently used goes first.
 */
#include "coll/plans.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdlib.h>
#include <string.h>

enum { PLANS_MAX = 256, PLANS_BUCKETS = 512 };

/* What makes two calls the same. */
struct plan_key {
    const int *ranks;             /* of the group: it lives with its mesh      */
    size_t count;
    int coll, root, dtype, redop;
};

struct plan_entry {
    struct plan_key key;
    struct dtn_cached_plan cached;
    uint64_t used;                /* clock of the last use                     */
    struct plan_entry *next;      /* in its bucket                             */
};

struct dtn_plans {
    uint64_t clock;
    int n;
    size_t scratch_bytes;
    struct plan_entry *last;      /* found last: most calls repeat             */
    struct plan_entry *bucket[PLANS_BUCKETS];
};

static void plan_key_init(struct plan_key *key, const struct dtn_group *group,
                          const struct dtn_call *call)
{
    memset(key, 0, sizeof *key);  /* padding takes part in the comparison      */
    key->ranks = group->ranks;
    key->count = call->count;
    key->coll = call->coll;
    key->root = call->root;
    key->dtype = call->dtype;
    key->redop = call->redop;
}

static struct plan_entry **plans_bucket(struct dtn_plans *plans,
                                        const struct plan_key *key)
{
    return &plans->bucket[XXH3_64bits(key, sizeof *key) % PLANS_BUCKETS];
}

static struct plan_entry *plans_find(struct dtn_plans *plans,
                                     const struct plan_key *key)
{
    struct plan_entry *entry = plans->last;

    if (entry && memcmp(&entry->key, key, sizeof *key) == 0)
        return entry;
    for (entry = *plans_bucket(plans, key); entry; entry = entry->next)
        if (memcmp(&entry->key, key, sizeof *key) == 0)
            return entry;
    return NULL;
}

static size_t entry_scratch(const struct plan_entry *entry)
{
    return dtn_plan_sched(entry->cached.plan)->bytes[DTN_TMP];
}

static void plans_remove(struct dtn_plans *plans, struct plan_entry *entry)
{
    struct plan_entry **link = plans_bucket(plans, &entry->key);

    while (*link != entry)
        link = &(*link)->next;
    *link = entry->next;
    if (plans->last == entry)
        plans->last = NULL;
    plans->n--;
    plans->scratch_bytes -= entry_scratch(entry);
    dtn_plan_destroy(entry->cached.plan);
    free(entry);
}

static struct plan_entry *plans_oldest(const struct dtn_plans *plans)
{
    struct plan_entry *oldest = NULL, *entry;

    for (int b = 0; b < PLANS_BUCKETS; b++)
        for (entry = plans->bucket[b]; entry; entry = entry->next)
            if (!oldest || entry->used < oldest->used)
                oldest = entry;
    return oldest;
}

static void plans_shrink(struct dtn_plans *plans, size_t max_scratch)
{
    while (plans->n > 0
           && (plans->n >= PLANS_MAX || plans->scratch_bytes > max_scratch))
        plans_remove(plans, plans_oldest(plans));
}

/* Make the schedule and the plan of a call. */
static int entry_make(const struct dtn_group *group,
                      const struct dtn_call *call, struct plan_entry *entry,
                      struct dtensor_error *err)
{
    struct dtensor_ctx *ctx = group->ctx;
    int *hosts = calloc((size_t)call->n, sizeof *hosts);
    struct dtn_call placed = *call;
    enum dtn_reach reach;
    struct dtn_sched sched;
    int rc;

    if (!hosts)
        return dtn_fail_nomem(err, dtn_coll_name(call->coll),
                              (size_t)call->n * sizeof *hosts);
    placed.hosts = hosts;
    reach = dtn_group_reach(group, hosts);
    rc = dtn_choose(call, reach, ctx->cluster->tuning)->emit(&placed, &sched,
                                                             err);
    free(hosts);
    if (rc != 0)
        return rc;
    rc = dtn_plan_create(group, &sched, &entry->cached.plan, err);
    if (rc != 0) {
        dtn_sched_fini(&sched);
        return rc;
    }
    snprintf(entry->cached.text, sizeof entry->cached.text, "%s %s %d rank%s",
             dtn_plan_sched(entry->cached.plan)->name,
             reach == DTN_REACH_MAP ? "shm" : dtn_group_wire(group), call->n,
             call->n == 1 ? "" : "s");
    entry->cached.fingerprint = dtn_fingerprint((int)call->coll, call->dtype,
        call->redop, XXH32(&call->count, sizeof call->count, group->hash
                           ^ (uint32_t)call->root * 0x9e3779b9u));
    return 0;
}

int dtn_call_plan(const struct dtn_group *group, const struct dtn_call *call,
                  struct dtn_plan **planp, uint32_t *fingerprintp,
                  struct dtensor_error *err)
{
    struct plan_entry entry;
    int rc = entry_make(group, call, &entry, err);

    if (rc != 0)
        return rc;
    *planp = entry.cached.plan;
    *fingerprintp = entry.cached.fingerprint;
    return 0;
}

static int plans_add(struct dtn_plans *plans, const struct dtn_group *group,
                     const struct dtn_call *call, const struct plan_key *key,
                     struct plan_entry **entryp, struct dtensor_error *err)
{
    struct plan_entry *entry = calloc(1, sizeof *entry);
    struct plan_entry **bucket = plans_bucket(plans, key);
    int rc;

    if (!entry)
        return dtn_fail_nomem(err, dtn_coll_name(call->coll), sizeof *entry);
    plans_shrink(plans,
                 group->ctx->cluster->redistribute.max_scratch_bytes);
    rc = entry_make(group, call, entry, err);
    if (rc != 0) {
        free(entry);
        return rc;
    }
    entry->key = *key;
    entry->next = *bucket;
    *bucket = entry;
    plans->n++;
    plans->scratch_bytes += entry_scratch(entry);
    *entryp = entry;
    return 0;
}

int dtn_plans_get(const struct dtn_group *group, const struct dtn_call *call,
                  const struct dtn_cached_plan **cachedp,
                  struct dtensor_error *err)
{
    struct dtensor_ctx *ctx = group->ctx;
    struct plan_entry *entry;
    struct plan_key key;
    int rc;

    if (!ctx->plans) {
        ctx->plans = calloc(1, sizeof *ctx->plans);
        if (!ctx->plans)
            return dtn_fail_nomem(err, "plans", sizeof *ctx->plans);
    }
    plan_key_init(&key, group, call);
    entry = plans_find(ctx->plans, &key);
    if (!entry) {
        rc = plans_add(ctx->plans, group, call, &key, &entry, err);
        if (rc != 0)
            return rc;
    }
    entry->used = ++ctx->plans->clock;
    ctx->plans->last = entry;
    *cachedp = &entry->cached;
    return 0;
}

void dtn_plans_destroy(struct dtn_plans *plans)
{
    if (!plans)
        return;
    for (int b = 0; b < PLANS_BUCKETS; b++)
        while (plans->bucket[b])
            plans_remove(plans, plans->bucket[b]);
    free(plans);
}

bool dtn_group_mapped(const struct dtn_group *group, bool mapped[])
{
    const struct dtensor_ctx *ctx = group->ctx;
    bool shm = ctx->cluster->transport.intra_node == DTN_WIRE_SHM, all = true;
    int host = dtn_ctx_host(ctx, ctx->self.rank), peer;

    for (int p = 0; p < group->n; p++) {
        peer = group->ranks[p];
        bool maps = peer == ctx->self.rank
                 || (shm && dtn_ctx_host(ctx, peer) == host);

        if (mapped)
            mapped[p] = maps;
        all &= maps;
    }
    return all;
}

enum dtn_reach dtn_group_reach(const struct dtn_group *group, int hosts[])
{
    const struct dtensor_ctx *ctx = group->ctx;
    bool same = true, shared = false;

    for (int p = 0; p < group->n; p++) {
        hosts[p] = dtn_ctx_host(ctx, group->ranks[p]);
        same = same && hosts[p] == hosts[0];
        for (int q = 0; q < p && !shared; q++)
            shared = hosts[p] == hosts[q];
    }
    if (ctx->cluster->transport.intra_node != DTN_WIRE_SHM)
        return group->n == 1 ? DTN_REACH_MAP : DTN_REACH_PUT;
    return same ? DTN_REACH_MAP : shared ? DTN_REACH_HOST : DTN_REACH_PUT;
}

/* All ranks open the same transports, and so agree on it. */
size_t dtn_group_row_bytes(const struct dtn_group *group)
{
    const struct dtensor_ctx *ctx = group->ctx;
    size_t bytes = DTN_ROW_BYTES;

    for (int t = 0; t < ctx->ntransports; t++)
        if (ctx->transports[t]->row_bytes > bytes)
            bytes = ctx->transports[t]->row_bytes;
    return bytes;
}

const char *dtn_group_wire(const struct dtn_group *group)
{
    const struct dtensor_ctx *ctx = group->ctx;
    const char *name = "", *other;

    for (int p = 0; p < group->n; p++) {
        if (group->ranks[p] == ctx->self.rank)
            continue;
        other = ctx->peers[group->ranks[p]].tp->ops->name;
        if (*name && strcmp(name, other) != 0)
            return "shm+net";
        name = other;
    }
    return name;
}
