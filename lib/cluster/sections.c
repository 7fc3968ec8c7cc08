/* sections.c - the sections and keys of a cluster file, as tables
 *
 * A row describes a scalar: its name, its type and range, and its place in the
 * section's struct.  Loops over these rows read the file, list the known keys
 * in a message and write the canonical text.  So a new key such as
 * `[transport] mtu` is one new row.
 */
#include "cluster/sections.h"
#include "base/compiler.h"
#include "cluster/cluster.h"
#include "cluster/file.h"
#include "dtensor.h"

#include <limits.h>
#include <stdbool.h>
#include <string.h>

#define KIB ((int64_t)1 << 10)
#define MIB ((int64_t)1 << 20)
#define TIB ((int64_t)1 << 40)
#define MS INT64_C(1000000)
#define WEEK (7 * 24 * 60 * 60 * 1000 * MS)

static const struct dtn_word switch_words[] = {
    { "yes", 1 }, { "no", 0 }, { NULL, 0 }
};

static const struct dtn_word auth_words[] = {
    { "auto", DTN_AUTH_AUTO }, { "none", DTN_AUTH_NONE },
    { "key", DTN_AUTH_KEY }, { "munge", DTN_AUTH_MUNGE }, { NULL, 0 }
};

static const struct dtn_word intra_words[] = {
    { "shm", DTN_WIRE_SHM }, { "tcp", DTN_WIRE_TCP }, { "rc", DTN_WIRE_RC },
    { NULL, 0 }
};

static const struct dtn_word inter_words[] = {
    { "rc", DTN_WIRE_RC }, { "tcp", DTN_WIRE_TCP }, { "auto", DTN_WIRE_AUTO },
    { NULL, 0 }
};

static const struct dtn_word mtu_words[] = {
    { "256", 256 }, { "512", 512 }, { "1024", 1024 }, { "2048", 2048 },
    { "4096", 4096 }, { NULL, 0 }
};

static const struct dtn_word flush_words[] = {
    { "auto", DTN_FLUSH_AUTO }, { "always", DTN_FLUSH_ALWAYS },
    { "never", DTN_FLUSH_NEVER }, { NULL, 0 }
};

static const struct dtn_word direct_words[] = {
    { "auto", DTN_DIRECT_AUTO }, { "required", DTN_DIRECT_REQUIRED },
    { NULL, 0 }
};

static const struct dtn_word memory_words[] = {
    { "host", DTENSOR_HOST }, { "cuda", DTENSOR_CUDA }, { NULL, 0 }
};

static const struct dtn_word planner_words[] = {
    { "auto", DTENSOR_ROUTE_AUTO }, { "direct", DTENSOR_ROUTE_DIRECT },
    { "merged", DTENSOR_ROUTE_MERGED }, { "min-cost", DTENSOR_ROUTE_MIN_COST },
    { "greedy", DTENSOR_ROUTE_GREEDY }, { NULL, 0 }
};

static const struct dtn_word tracker_words[] = {
    { "global", DTENSOR_TRACKER_GLOBAL }, { "offset", DTENSOR_TRACKER_OFFSET },
    { "megatron", DTENSOR_TRACKER_MEGATRON },
    { "local", DTENSOR_TRACKER_LOCAL }, { NULL, 0 }
};

static const struct dtn_word compat_words[] = {
    { "none", 0 }, { "pytorch", 1 }, { NULL, 0 }
};

static const struct dtn_word fill_words[] = {
    { "sequential", DTENSOR_FILL_SEQUENTIAL }, { "cuda", DTENSOR_FILL_CUDA },
    { NULL, 0 }
};

const struct dtn_word dtn_algorithm_words[] = {
    { "direct", DTN_ALG_DIRECT }, { "ring", DTN_ALG_RING },
    { "tree", DTN_ALG_TREE }, { "twotree", DTN_ALG_TWOTREE },
    { "doubling", DTN_ALG_DOUBLING }, { "halving", DTN_ALG_HALVING },
    { "bruck", DTN_ALG_BRUCK }, { "pairwise", DTN_ALG_PAIRWISE },
    { "hierarchical", DTN_ALG_HIERARCHICAL }, { "rails", DTN_ALG_RAILS },
    { "device", DTN_ALG_DEVICE }, { "stream", DTN_ALG_STREAM }, { NULL, 0 }
};

/* Parts of rows.  The code of the section reads OTHER. */
#define INT(s, f, lo, hi) .type = DTN_VALUE_INT, .offset = offsetof(s, f), \
                          .min = (lo), .max = (hi)
#define HEX(s, f, lo, hi) .type = DTN_VALUE_HEX, .offset = offsetof(s, f), \
                          .min = (lo), .max = (hi)
#define SIZE(s, f, lo, hi) .type = DTN_VALUE_SIZE_BYTES, \
                           .offset = offsetof(s, f), .min = (lo), .max = (hi)
#define SHARE(s, f, lo, hi) .type = DTN_VALUE_SHARE, .offset = offsetof(s, f), \
                            .min = (lo), .max = (hi)
#define TIME(s, f, lo, hi) .type = DTN_VALUE_TIME_NS, \
                           .offset = offsetof(s, f), .min = (lo), .max = (hi)
#define WORD(s, f, w) .type = DTN_VALUE_WORD, .offset = offsetof(s, f), \
                      .words = (w)
#define U64(s, f) .type = DTN_VALUE_U64, .offset = offsetof(s, f)
#define NAME(s, f) .type = DTN_VALUE_NAME, .offset = offsetof(s, f)
#define OTHER .type = DTN_VALUE_OTHER

#define S struct dtn_cluster_section
static const struct dtn_key cluster_keys[] = {
    { "version", INT(S, version, 0, INT_MAX), .required = "version = 1" },
    { "name", NAME(S, name) },
    { "world_size", INT(S, world_size, 1, DTN_MAX_WORLD) },
    { "auth", WORD(S, auth, auth_words) },
    { "repro", WORD(S, repro, switch_words) },
    { .name = NULL }
};
#undef S

#define S struct dtn_nodes
static const struct dtn_key nodes_keys[] = {
    { "hosts", OTHER,
      .required = "hosts = a list such as node[001-064]" },
    { "addresses", OTHER },
    { "ranks", INT(S, nranks, 1, DTN_MAX_LOCAL) },
    { "gpus", OTHER },
    { "hca", OTHER },
    { "gid_index", INT(S, gid_index, 0, 255) },
    { "cpus", OTHER },
    { .name = NULL }
};
#undef S

#define S struct dtn_transport_conf
static const struct dtn_key transport_keys[] = {
    { "intra_node", WORD(S, intra_node, intra_words) },
    { "inter_node", WORD(S, inter_node, inter_words) },
    { "port", INT(S, port, 1024, 65535) },
    { "mtu", WORD(S, mtu, mtu_words) },
    { "traffic_class", INT(S, traffic_class, 0, 255) },
    { "service_level", INT(S, service_level, 0, 15) },
    { "pkey", HEX(S, pkey, 1, 0xffff) },
    { "qp_per_peer", INT(S, qp_per_peer, 1, 64) },
    { "retry_count", INT(S, retry_count, 0, 7) },
    { "rnr_retry", INT(S, rnr_retry, 0, 7) },
    { "timeout", INT(S, timeout, 0, 31) },
    { "gpu_flush", WORD(S, gpu_flush, flush_words) },
    { "connect_timeout", TIME(S, connect_timeout_ns, MS, WEEK) },
    { "op_timeout", TIME(S, op_timeout_ns, MS, WEEK) },
    { "stall_after", TIME(S, stall_after_ns, MS, WEEK) },
    { "heartbeat", TIME(S, heartbeat_ns, 10 * MS, WEEK) },
    { "dead_after", TIME(S, dead_after_ns, 20 * MS, WEEK) },
    { "register_limit", SIZE(S, register_limit_bytes, 0, 64 * TIB) },
    { "arena", SHARE(S, arena, 16 * MIB, 64 * TIB) },
    { .name = NULL }
};
#undef S

#define S struct dtn_mesh_def
static const struct dtn_key mesh_keys[] = {
    { "dims", OTHER }, { "ranks", OTHER }, { "parent", OTHER },
    { "select", OTHER }, { "memory", WORD(S, memory, memory_words) },
    { .name = NULL }
};
#undef S

#define S struct dtn_seed_conf
static const struct dtn_key seed_keys[] = {
    { "base", U64(S, base), .required = "base = a whole number" },
    { "mesh", OTHER },
    { "distinct", OTHER },
    { "stride", U64(S, stride) },
    { "tracker", WORD(S, tracker, tracker_words) },
    { "compat", WORD(S, pytorch, compat_words) },
    { "fill", WORD(S, fill, fill_words) },
    { "sms", INT(S, sms, 1, 1 << 20) },
    { "threads_per_sm", INT(S, threads_per_sm, 256, 1 << 20) },
    { .name = NULL }
};
#undef S

/* The first keys are in the order of enum dtn_tuned. */
#define S struct dtn_costs_conf
static const struct dtn_key tuning_keys[] = {
    { "allreduce", OTHER }, { "allgather", OTHER }, { "reduce_scatter", OTHER },
    { "all_to_all", OTHER }, { "broadcast", OTHER }, { "reduce", OTHER },
    { "intra_latency_ns", INT(S, intra_latency_ns, 0, 1000000000) },
    { "inter_latency_ns", INT(S, inter_latency_ns, 0, 1000000000) },
    { "intra_message_ns", INT(S, intra_message_ns, 0, 1000000000) },
    { "inter_message_ns", INT(S, inter_message_ns, 0, 1000000000) },
    { "intra_bandwidth", SIZE(S, intra_bandwidth, 0, TIB) },
    { "inter_bandwidth", SIZE(S, inter_bandwidth, 0, TIB) },
    { "fold_bandwidth", SIZE(S, fold_bandwidth, 0, TIB) },
    { "copy_bandwidth", SIZE(S, copy_bandwidth, 0, TIB) },
    { "cache_size", SIZE(S, cache_bytes, 0, TIB) },
    { "uncached_percent", INT(S, uncached_percent, 0, 10000) },
    { "congestion_percent", INT(S, congestion_percent, 0, 1000) },
    { .name = NULL }
};
#undef S

#define S struct dtn_redistribute_conf
static const struct dtn_key redistribute_keys[] = {
    { "max_scratch", SIZE(S, max_scratch_bytes, 0, TIB) },
    { "pipeline", SIZE(S, pipeline_bytes, 4 * KIB, TIB) },
    { "planner", WORD(S, planner, planner_words) },
    { .name = NULL }
};
#undef S

#define S struct dtn_device_conf
static const struct dtn_key device_keys[] = {
    { "direct", WORD(S, direct, direct_words) },
    { .name = NULL }
};
#undef S

/* All other keys are patterns. */
static const struct dtn_key plan_keys[] = {
    { "mesh", OTHER }, { "dim", OTHER }, { .name = NULL }
};

const struct dtn_section_kind dtn_section_kinds[DTN_NKINDS] = {
    [DTN_KIND_CLUSTER] = { "cluster", .keys = cluster_keys },
    [DTN_KIND_NODES] = { "nodes", .named = true, .keys = nodes_keys },
    [DTN_KIND_TRANSPORT] = { "transport", .keys = transport_keys },
    [DTN_KIND_MESH] = { "mesh", .named = true, .keys = mesh_keys },
    [DTN_KIND_SEED] = { "seed", .keys = seed_keys },
    [DTN_KIND_TUNING] = { "tuning", .keys = tuning_keys },
    [DTN_KIND_REDISTRIBUTE] = { "redistribute", .keys = redistribute_keys },
    [DTN_KIND_DEVICE] = { "device", .keys = device_keys },
    [DTN_KIND_PLAN] = { "plan", .named = true, .open = true,
                        .keys = plan_keys }
};

const struct dtn_section_kind *dtn_section_kind_find(const char *name)
{
    for (size_t i = 0; i < DTN_COUNT(dtn_section_kinds); i++)
        if (strcmp(dtn_section_kinds[i].name, name) == 0)
            return &dtn_section_kinds[i];
    return NULL;
}

const struct dtn_key *dtn_key_find(const struct dtn_section_kind *kind,
                                   const char *name)
{
    for (const struct dtn_key *key = kind->keys; key->name; key++)
        if (strcmp(key->name, name) == 0)
            return key;
    return NULL;
}

const char *dtn_memory_name(enum dtensor_memory memory)
{
    return dtn_word_text(memory_words, (int)memory);
}

const char *dtn_word_text(const struct dtn_word words[], int number)
{
    for (; words->text; words++)
        if (words->number == number)
            return words->text;
    return NULL;
}
