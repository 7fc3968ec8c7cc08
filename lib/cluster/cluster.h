/* cluster.h - L0: the cluster file, and who this process is in it
 *
 * reader.c  lines from a file, counted and checked, for libinih
 * file.c    sections and keys: form first, then values (dtensor_cluster_read);
 *           file.h lists what it is made of
 * hostlist.c  "node[001-064]" and Slurm's "2(x3),1"
 * builtin.c   the clusters made without a file
 * canonical.c the parsed meaning as text, and its digest
 * show.c    dtensor_cluster_show()
 * destroy.c dtensor_cluster_destroy()
 * whoami.c, whoami_*.c  rank, world size and host of this process
 */
#ifndef DTN_CLUSTER_H
#define DTN_CLUSTER_H

#include "base/base.h"

#define DTN_HOST_MAX 256          /* bytes of a host name or address, with NUL */
#define DTN_MAX_HOSTS 65536
#define DTN_MAX_LOCAL 1024        /* ranks on one host                         */
#define DTN_MAX_RAILS 8           /* RDMA devices of one rank                  */

/* One host.  Rank order is file order: section, then list, then local rank. */
struct dtn_host {
    char *name;
    char *address;                /* name or IP for the bootstrap              */
    int first_rank;
    int nranks;
    int nodes;                    /* index of its [nodes] section              */
};

/* What a [nodes "N"] section says of each of its hosts. */
struct dtn_nodes {
    char name[DTENSOR_NAME_MAX + 1];
    int nranks;
    char **hca;                   /* [nranks] "mlx5_0:1+mlx5_1:1", or NULL     */
    int nrails;                   /* devices of each rank; 1 without hca       */
    int gid_index;                /* -1: not given                             */
    char **cpus;                  /* [nranks] "0-15", or NULL                  */
    bool cpus_numa;               /* cpus = numa                               */
};

enum dtn_wire {
    DTN_WIRE_SHM, DTN_WIRE_TCP, DTN_WIRE_RC,
    DTN_WIRE_AUTO                 /* rc if all ranks can, else tcp; a context  */
                                  /* that is open has one of the two           */
};

/* A number of bytes, or a percentage of the memory of the host. */
struct dtn_share {
    uint64_t bytes;               /* 0: `percent` counts                       */
    int percent;                  /* 1 to 100                                  */
};

/* [transport] */
struct dtn_transport_conf {
    enum dtn_wire intra_node;     /* shm, tcp or rc; default shm               */
    enum dtn_wire inter_node;     /* rc, tcp or auto; default tcp              */
    int port;                     /* default 17800                             */
    int mtu;                      /* verbs attributes; -1: not given           */
    int traffic_class;
    int service_level;
    int pkey;                     /* partition key, 0x8001                     */
    int qp_per_peer;
    int retry_count;
    int rnr_retry;
    int timeout;                  /* -1: by dead_after, see verbs_words.c      */
    int64_t connect_timeout_ns;   /* default 60s                               */
    int64_t op_timeout_ns;        /* default 10min: one collective's wait      */
    int64_t heartbeat_ns;         /* default 1s                                */
    int64_t dead_after_ns;        /* default 10s                               */
    uint64_t register_limit_bytes;    /* default 64G                           */
    struct dtn_share arena;       /* default 100%                              */
};

/* [mesh "M"] */
struct dtn_mesh_def {
    char name[DTENSOR_NAME_MAX + 1];
    int ndim;
    char dim_name[DTENSOR_MAX_DIMS][DTENSOR_NAME_MAX + 1];
    int size[DTENSOR_MAX_DIMS];
    int nranks;
    int *ranks;                   /* [nranks] world ranks, row-major           */
};

/* [seed] */
struct dtn_seed_conf {
    bool given;
    uint64_t base;
    uint64_t stride;              /* default 1                                 */
    int mesh;                     /* index of the mesh, -1: none               */
    int ndistinct;
    int distinct[DTENSOR_MAX_DIMS];   /* dimensions of that mesh              */
    int tracker;                  /* enum dtensor_tracker; default global      */
    int fill;                     /* enum dtensor_fill; default sequential     */
    int pytorch;                  /* compat = pytorch                          */
    int sms;                      /* default 132                               */
    int threads_per_sm;           /* default 2048                              */
};

/* [tuning]: for messages of `from`.. up to the next entry, use `algorithm`. */
enum dtn_tuned { DTN_TUNED_ALLREDUCE, DTN_TUNED_ALLGATHER,
                 DTN_TUNED_REDUCE_SCATTER, DTN_TUNED_ALL_TO_ALL,
                 DTN_TUNED_BROADCAST, DTN_TUNED_REDUCE, DTN_NTUNED };
enum dtn_algorithm { DTN_ALG_AUTO, DTN_ALG_DIRECT, DTN_ALG_RING, DTN_ALG_TREE,
                     DTN_ALG_HIERARCHICAL, DTN_ALG_TWOTREE, DTN_ALG_DOUBLING,
                     DTN_ALG_HALVING, DTN_ALG_BRUCK, DTN_ALG_PAIRWISE };
struct dtn_tuning {
    int n;                        /* 0: built in                               */
    struct { uint64_t from_bytes; enum dtn_algorithm algorithm; } entry[16];
};

/* [tuning], too: what messages cost and what links carry; 0: built in. */
struct dtn_costs_conf {
    int intra_latency_ns;         /* of a hop between ranks of one host        */
    int inter_latency_ns;         /* of a hop between hosts                    */
    int intra_message_ns;         /* to hand over one more message             */
    int inter_message_ns;
    uint64_t intra_bandwidth;     /* bytes a second of one rank                */
    uint64_t inter_bandwidth;     /* bytes a second of one host or device      */
    uint64_t fold_bandwidth;      /* bytes of terms a second of one rank       */
    uint64_t copy_bandwidth;      /* bytes a second of one rank                */
    uint64_t cache_bytes;         /* of a call; what is beyond it costs more:  */
    int uncached_percent;         /* of these three rates within a host        */
    int congestion_percent;       /* more for a byte between hosts, for each   */
                                  /* doubling of the senders to one            */
};

/* [redistribute] */
struct dtn_redistribute_conf {
    uint64_t max_scratch_bytes;   /* default 256M                              */
    uint64_t pipeline_bytes;      /* default 4M                                */
    enum dtensor_route planner;   /* default auto                              */
};

struct dtensor_cluster {
    char *path;                   /* for messages; "built-in" without a file   */
    char name[DTENSOR_NAME_MAX + 1];
    bool repro;                   /* fold in the order of the ranks, which     */
                                  /* dtensor_set_repro() may change            */
    int world_size;
    int nhosts;
    struct dtn_host *hosts;
    int nnodes;
    struct dtn_nodes *nodes;
    struct dtn_transport_conf transport;
    int nmeshes;                  /* at least one, "world" among them          */
    struct dtn_mesh_def *meshes;
    struct dtn_seed_conf seed;
    struct dtn_tuning tuning[DTN_NTUNED];
    struct dtn_costs_conf costs;
    struct dtn_redistribute_conf redistribute;
};

/* ------------------------------------------------------------ builtin.c --- */

/* The cluster of `nranks` ranks on this host, named `host`. */
int dtn_cluster_local(const char *host, int nranks,
                      struct dtensor_cluster **clusterp,
                      struct dtensor_error *err);

/* The cluster of `nranks` ranks, `per_host` on each host, the last may have
 * fewer; 0: all on one.
 */
int dtn_cluster_regular(int nranks, int per_host,
                        struct dtensor_cluster **clusterp,
                        struct dtensor_error *err);

/* The cluster of the Slurm step this process is in, from SLURM_STEP_NODELIST
 * and SLURM_STEP_TASKS_PER_NODE.
 */
int dtn_cluster_slurm_step(struct dtensor_cluster **clusterp,
                           struct dtensor_error *err);

/* Defaults of a [transport] section. */
void dtn_transport_defaults(struct dtn_transport_conf *conf);

/* -------------------------------------------------------------- seed.c --- */

/* Defaults of a [seed] section. */
void dtn_seed_defaults(struct dtn_seed_conf *seed);

/* The seed of a rank: base + stride * index modulo 2^64, where index numbers
 * its coordinates in the distinct dims, the first listed fastest.  Outside the
 * mesh it is base.  Meaningful when cluster->seed.given.
 */
uint64_t dtn_seed_of(const struct dtensor_cluster *cluster, int rank);

/* The seeds of all ranks, seed[world_size]. */
void dtn_seeds_of(const struct dtensor_cluster *cluster, uint64_t seed[]);

/* "pp,tp": the dims whose coordinates have their own seeds.  Returns `buf`. */
char *dtn_seed_dims(const struct dtensor_cluster *cluster, char *buf,
                    size_t size);

/* ---------------------------------------------------------- canonical.c --- */

/* The parsed meaning, one "[section] key = value\n" line for each key, keys
 * that were not given at their defaults; hosts, addresses and so on expanded.
 * Two files that mean the same give the same text.  The caller frees it.
 */
int dtn_cluster_canonical(const struct dtensor_cluster *cluster, char **textp,
                          struct dtensor_error *err);

/* xxh64 of that text. */
uint64_t dtn_digest(const char *text);

/* Word the first line in which two canonical texts differ, such as
 * `[transport] port is 17800 there, 17801 here`, into buf.  "there" is `other`.
 */
char *dtn_canonical_diff(const char *mine, const char *other, char *buf,
                         size_t size);

/* ----------------------------------------------------------- hostlist.c --- */

/* Expand "n[01-03,07]-ib,x" strictly: see dtensor-cluster(5).  On failure *why
 * is the end of a sentence: `range "2-1" in "n[2-1]" runs backwards; expected
 * 1-2`.  Owns: *namesp is the caller's, for dtn_hostlist_free().
 */
int dtn_hostlist_expand(const char *text, char ***namesp, int *np, char *why,
                        size_t why_size);
void dtn_hostlist_free(char **names, int n);

/* The other way, for messages: {n1,n2,n3,x} is "n[1-3],x"; cut with "..." .
 * Returns `buf`, which has room for at least 4 bytes.
 */
char *dtn_hostlist_format(char *const names[], int n, char *buf, size_t size);

/* Expand "2(x3),1" to 2 2 2 1; *countsp is the caller's, for free(). */
int dtn_counts_expand(const char *text, int **countsp, int *np, char *why,
                      size_t why_size);

/* ------------------------------------------------------------- whoami.c --- */

/* This process in its job. */
struct dtn_self {
    int rank;
    int world_size;
    int local_rank;
    char host[DTN_HOST_MAX];      /* as the cluster names it                   */
    char job[80];                 /* tells this job from others on the host    */
    char launcher[80];            /* how it was found, for people              */
};

/* Find the cluster and this process in it.  `path` as in dtensor_init().  The
 * methods are a table, tried in order: dtensor-run, Slurm step, the hosts in
 * the file, single; each passes with a note, logged at debug level, and all
 * notes are in the error when none applies.
 */
int dtn_whoami(const char *path, struct dtn_log *log,
               struct dtensor_cluster **clusterp, struct dtn_self *self,
               struct dtensor_error *err);

/* The rank of a process that dtn_whoami() has refused, and a cluster through
 * which it can send its error to the other ranks.
 *
 * Errors: ECONF, these are not known; or all other ranks refuse by themselves
 */
int dtn_whoami_claim(const char *path, struct dtensor_cluster **clusterp,
                     struct dtn_self *self);

#endif
