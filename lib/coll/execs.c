/* execs.c - the cached executables of a context, by call
 *
 * The first allreduce of 1000 floats over a group makes an executable.  The
 * next thousand find it in an LRU cache, which keeps at most [redistribute]
 * max_scratch bytes of scratch.  If a call has a count for each rank, the
 * counts are part of the key: they are hashed, and stored after the entry for
 * the comparison.
 */
#include "coll/execs.h"
#include "base/error.h"
#include "base/lru.h"
#include "boot/boot.h"
#include "cluster/cluster.h"
#include "coll/choose.h"
#include "coll/exec.h"
#include "coll/exec/exec.h"
#include "coll/record.h"
#include "coll/repeat.h"
#include "coll/state.h"
#include "job/ctx.h"
#include "job/group.h"
#include "job/last_plan.h"
#include "sched/call.h"
#include "sched/emitters.h"
#include "sched/fingerprint.h"
#include "sched/model.h"
#include "sched/sched.h"
#include "dtensor.h"

#include <stdbool.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdlib.h>
#include <string.h>

/* The key: two calls with the same key and lists are the same. */
struct exec_key {
    const struct dtn_ranks *ranks;     /* ranks of the group, which live with */
                                  /* its mesh                                 */
    size_t count;
    uint64_t lists;               /* hash of the counts or edges; 0: none     */
    int coll, root, dtype, redop, divisor;
    int how;                      /* 1: ordered; 2: on devices, since meshes  */
                                  /* of different memory may share `ranks`    */
};
_Static_assert(sizeof(struct exec_key) == sizeof(void *) + sizeof(size_t)
               + sizeof(uint64_t) + 6 * sizeof(int),
               "padding would take part in the comparison");

/* A key and its call, whose lists are compared. */
struct exec_query {
    struct exec_key key;
    const struct dtn_call *call;
};

struct exec_entry {
    struct dtn_cached_exec cached;
    struct exec_key key;
    unsigned char lists[];        /* lists of the call                        */
};

/* ---------------------------------------------------------------- lists --- */

/* The number of lists of a call. */
enum { LISTS = 3 };
struct call_list {
    const void *mem;
    size_t bytes;
};

static void call_lists(const struct dtn_call *call,
                       struct call_list list[LISTS])
{
    size_t bytes = (size_t)call->n * sizeof *call->counts;

    list[0] = (struct call_list){ call->counts, call->counts ? bytes : 0 };
    list[1] = (struct call_list){ call->recv_counts,
                                  call->recv_counts ? bytes : 0 };
    list[2] = (struct call_list){ call->edges, (size_t)call->nedges
                                               * sizeof *call->edges };
}

static size_t lists_bytes(const struct dtn_call *call)
{
    struct call_list list[LISTS];

    call_lists(call, list);
    return list[0].bytes + list[1].bytes + list[2].bytes;
}

static uint64_t lists_hash(const struct dtn_call *call)
{
    struct call_list list[LISTS];
    uint64_t hash = 0;

    call_lists(call, list);
    for (int i = 0; i < LISTS; i++)
        if (list[i].bytes > 0)
            hash = XXH3_64bits_withSeed(list[i].mem, list[i].bytes, hash + 1);
    return hash;
}

static void lists_copy(const struct dtn_call *call, unsigned char *to)
{
    struct call_list list[LISTS];

    call_lists(call, list);
    for (int i = 0; i < LISTS; to += list[i++].bytes)
        if (list[i].bytes > 0)
            memcpy(to, list[i].mem, list[i].bytes);
}

static bool lists_equal(const struct dtn_call *call, const unsigned char *have)
{
    struct call_list list[LISTS];

    call_lists(call, list);
    for (int i = 0; i < LISTS; have += list[i++].bytes)
        if (list[i].bytes > 0 && memcmp(have, list[i].mem, list[i].bytes) != 0)
            return false;
    return true;
}

/* -------------------------------------------------------------- entries --- */

static struct exec_query exec_query(const struct dtn_group *group,
                                    const struct dtn_call *call)
{
    return (struct exec_query){ .call = call, .key = {
        .ranks = group->ranks, .count = call->count,
        .lists = call->counts || call->edges ? lists_hash(call) : 0,
        .coll = call->coll, .root = call->root, .dtype = call->dtype,
        .redop = call->redop, .divisor = call->divisor,
        .how = call->ordered + 2 * call->on_device } };
}

static uint64_t entry_hash(const void *key)
{
    const struct exec_query *query = key;

    return XXH3_64bits(&query->key, sizeof query->key);
}

static bool entry_is(const struct dtn_lru_entry *lru_entry, const void *key)
{
    const struct exec_entry *entry = (const struct exec_entry *)lru_entry;
    const struct exec_query *query = key;

    return memcmp(&entry->key, &query->key, sizeof entry->key) == 0
        && (entry->key.lists == 0 || lists_equal(query->call, entry->lists));
}

static void entry_destroy(struct dtn_lru_entry *lru_entry)
{
    struct exec_entry *entry = (struct exec_entry *)lru_entry;
    struct dtensor_ctx *ctx = entry->cached.exec->group.ctx;

    dtn_repeats_forget(dtn_coll_of(ctx), &entry->cached);
    dtn_last_plan_keep(&ctx->last_plan, entry->cached.text);
    dtn_exec_destroy(entry->cached.exec);
    free(entry);
}

static const struct dtn_lru_kind execs_kind = { entry_hash, entry_is,
                                                entry_destroy };

uint64_t dtn_call_fingerprint(const struct dtn_group *group,
                              const struct dtn_call *call)
{
    const uint64_t known[] = {
        group->hash, call->count, (uint64_t)call->root, (uint64_t)call->divisor,
        call->made ? call->made->hash : 0, call->ordered,
        call->counts && !dtn_call_private(call) ? lists_hash(call) : 0,
        call->counts ? 1 + dtn_call_private(call) : 0
    };

    if (call->coll == DTN_COLL_PAIRS)
        return dtn_fingerprint(call->coll, (enum dtensor_dtype)0,
                               (enum dtensor_redop)0, 0);
    return dtn_fingerprint(call->coll, call->dtype, call->redop,
                           XXH3_64bits(known, sizeof known));
}

int dtn_execs_make(const struct dtn_group *group, const struct dtn_call *call,
                   struct dtn_cached_exec *made, struct dtensor_error *err)
{
    const struct dtn_model *model;
    struct dtn_choice pick;
    struct dtn_sched sched;
    struct dtn_call_record said;
    char why[64];
    int rc = dtn_model_of(group, &model, err);

    if (rc != 0)
        return rc;
    dtn_choose(call, model, &pick);
    rc = dtn_emitter_emit(pick.emitter, call, model, &sched, err);
    if (rc != 0)
        return rc;
    made->fingerprint = dtn_call_fingerprint(group, call);
    said = dtn_call_record_of(group, call, made->fingerprint);
    rc = dtn_exec_create(group, &sched, &made->exec, err);
    if (rc != 0) {
        dtn_sched_fini(&sched);
        return rc;
    }
    snprintf(made->text, sizeof made->text,
             "%s %s %d rank%s (%s)", dtn_exec_sched(made->exec)->name,
             model->reach == DTN_REACH_MAP ? "shm" : dtn_group_wire(group),
             call->n, call->n == 1 ? "" : "s",
             dtn_choice_text(&pick, why, sizeof why));
    if (pick.emitter->algorithm == DTN_ALG_DIRECT
        && pick.emitter->needs == DTN_REACH_MAP && model->ranks_per_cpu <= 1
        && dtn_window_suits(call))
        rc = dtn_exec_set_window(made->exec, call, err);
    if (rc != 0) {
        dtn_exec_destroy(made->exec);
        return rc;
    }
    dtn_exec_set_record(made->exec, &said, pick.ns);
    return 0;
}

int dtn_call_exec(const struct dtn_group *group, const struct dtn_call *call,
                  struct dtn_exec **execp, uint64_t *fingerprintp,
                  struct dtensor_error *err)
{
    struct dtn_cached_exec made;
    int rc = dtn_execs_make(group, call, &made, err);

    if (rc != 0)
        return rc;
    *execp = made.exec;
    *fingerprintp = made.fingerprint ^ call->plan;
    if (call->text)
        dtn_exec_set_text(made.exec, *fingerprintp, call->text);
    return 0;
}

static struct exec_entry *execs_find(const struct dtn_group *group,
                                     const struct exec_query *query)
{
    return (struct exec_entry *)dtn_lru_find(&dtn_coll_of(group->ctx)->execs,
                                             &execs_kind, query);
}

static int execs_add(const struct dtn_group *group,
                     const struct exec_query *query,
                     struct exec_entry **entryp, struct dtensor_error *err)
{
    size_t size = sizeof(struct exec_entry) + lists_bytes(query->call);
    struct exec_entry *entry = calloc(1, size);
    int rc;

    if (!entry)
        return dtn_fail_nomem(err, dtn_coll_name(query->call->coll), size);
    rc = dtn_execs_make(group, query->call, &entry->cached, err);
    if (rc != 0) {
        free(entry);
        return rc;
    }
    entry->key = query->key;
    lists_copy(query->call, entry->lists);
    entry->cached.entry.bytes =
        dtn_sched_scratch(dtn_exec_sched(entry->cached.exec));
    dtn_lru_add(&dtn_coll_of(group->ctx)->execs, &execs_kind, query,
                &entry->cached.entry,
                group->ctx->world.cluster->redistribute.max_scratch_bytes);
    *entryp = entry;
    return 0;
}

int dtn_execs_get(const struct dtn_group *group, const struct dtn_call *call,
                  struct dtn_cached_exec **cachedp, struct dtensor_error *err)
{
    const struct exec_query query = exec_query(group, call);
    struct exec_entry *entry = execs_find(group, &query);
    int rc = entry ? 0 : execs_add(group, &query, &entry, err);

    if (rc == 0)
        *cachedp = &entry->cached;
    return rc;
}

/* A reduction made at run time may have been destroyed since. */
struct dtn_cached_exec *dtn_execs_again(const struct dtn_group *group,
                                        const struct dtn_call *call,
                                        const void *in, const void *out)
{
    struct exec_query query;
    struct exec_entry *entry;
    const size_t *bytes;

    if ((unsigned)call->redop >= DTENSOR_NREDOPS)
        return NULL;
    query = exec_query(group, call);
    entry = execs_find(group, &query);
    if (!entry)
        return NULL;
    bytes = dtn_exec_sched(entry->cached.exec)->bytes;
    if ((bytes[DTN_IN] && !in) || (bytes[DTN_OUT] && !out)
        || !dtn_call_fits(call, in, out, bytes))
        return NULL;
    return &entry->cached;
}

void dtn_execs_clear(struct dtn_lru *execs)
{
    dtn_lru_clear(execs, &execs_kind);
}
