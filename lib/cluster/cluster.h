/* cluster.h - the cluster: hosts, ranks, meshes, settings */
#ifndef DTN_CLUSTER_CLUSTER_H
#define DTN_CLUSTER_CLUSTER_H

#include "base/ranks.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>

#define DTN_HOST_MAX 256         /* bytes of a host name or address, with NUL */
#define DTN_MAX_HOSTS (1 << 20)   /* as many as ranks: DTN_MAX_WORLD          */
#define DTN_MAX_LOCAL 1024        /* ranks on one host                        */
#define DTN_MAX_RAILS 8           /* RDMA devices of one rank                 */
#define DTN_MAX_GPUS 1024         /* GPUs of one host                         */

/* One host.  Rank order is file order: section, then list, then local rank. */
struct dtn_host {
    char *name;                   /* of the host, as in the file              */
    char *address;                /* name or IP for the bootstrap; it may be  */
                                  /* `name` itself                            */
    int first_rank;               /* lowest rank on the host                  */
    int nranks;                   /* ranks on the host                        */
    int nodes;                    /* index of its [nodes] section             */
};

/* "host" or "cuda", as in the file. */
const char *dtn_memory_name(enum dtensor_memory memory);

/* A [nodes "N"] section: the same for each of its hosts. */
struct dtn_nodes {
    char name[DTENSOR_NAME_MAX + 1]; /* in the section's title                */
    int nranks;                   /* ranks on each of the hosts               */
    char **hca;                   /* [nranks] "mlx5_0:1+mlx5_1:1", or NULL    */
    int nrails;                   /* devices of each rank; 1 without hca      */
    int gid_index;                /* -1: not given                            */
    char **cpus;                  /* [nranks] "0-15", or NULL                 */
    bool cpus_numa;               /* cpus = numa                              */
    int *gpus;                    /* [ngpus] devices, for local ranks in turn */
    int ngpus;                    /* 0: all of the host; -1: none             */
};

enum dtn_wire {
    DTN_WIRE_SHM, DTN_WIRE_TCP, DTN_WIRE_RC,
    DTN_WIRE_AUTO                 /* rc if all ranks have it, else tcp; not   */
                                  /* in an open context                       */
};

/* [cluster] auth: how ranks of different hosts know each other. */
enum dtn_auth {
    DTN_AUTH_AUTO,                /* by key if there is one, else by munge    */
    DTN_AUTH_NONE,                /* not at all                               */
    DTN_AUTH_KEY,                 /* by the key in DTN_KEY                    */
    DTN_AUTH_MUNGE                /* by credentials of munged                 */
};

/* Does a card read GPU memory back before a signal behind its writes counts? */
enum dtn_flush {
    DTN_FLUSH_AUTO,               /* if the GPU does not keep the order       */
    DTN_FLUSH_ALWAYS, DTN_FLUSH_NEVER
};

/* [device] direct: may buffers of a device be staged in host memory? */
enum dtn_direct {
    DTN_DIRECT_AUTO,              /* where they cannot be reached in place    */
    DTN_DIRECT_REQUIRED           /* never: that is an error                  */
};

/* A number of bytes, or a percentage of the memory of the host. */
struct dtn_share {
    uint64_t bytes;               /* 0: `percent` counts                      */
    int percent;                  /* 1 to 100                                 */
};

/* [transport] */
struct dtn_transport_conf {
    enum dtn_wire intra_node;     /* shm, tcp or rc; default shm              */
    enum dtn_wire inter_node;     /* rc, tcp or auto; default tcp             */
    int port;                     /* -1: follows from the name of the job     */
    int mtu;                      /* bytes; -1: not given                     */
    int traffic_class;            /* GRH traffic class; -1: not given         */
    int service_level;            /* InfiniBand SL; -1: not given             */
    int pkey;                     /* partition key; -1: not given             */
    int qp_per_peer;              /* queue pairs per peer; -1: not given      */
    int retry_count;              /* retries of a lost packet                 */
    int rnr_retry;                /* retries if RNR; -1: not given            */
    int timeout;                  /* verbs code; -1: from dead_after          */
    enum dtn_flush gpu_flush;     /* default auto                             */
    int64_t connect_timeout_ns;   /* default 60s                              */
    int64_t op_timeout_ns;        /* of one collective; default 10min         */
    int64_t stall_after_ns;       /* a longer wait is logged; default 5s      */
    int64_t heartbeat_ns;         /* default 100ms                            */
    int64_t dead_after_ns;        /* default 10s                              */
    uint64_t register_limit_bytes;    /* default 64G                          */
    struct dtn_share arena;       /* default 100%                             */
};

/* [mesh "M"] */
struct dtn_mesh_def {
    char name[DTENSOR_NAME_MAX + 1]; /* in the section's title                */
    int ndim;                     /* dimensions                               */
    char dim_name[DTENSOR_MAX_DIMS][DTENSOR_NAME_MAX + 1]; /* of each         */
    int size[DTENSOR_MAX_DIMS];   /* ranks along each dimension               */
    struct dtn_ranks ranks;       /* world ranks, row-major                   */
    int memory;                   /* enum dtensor_memory, of its tensors      */
};

/* [seed] */
struct dtn_seed_conf {
    bool given;                   /* the file has this section                */
    uint64_t base;                /* seed where the index is 0                */
    uint64_t stride;              /* default 1                                */
    int mesh;                     /* index of the mesh, -1: none              */
    int ndistinct;                /* entries of `distinct`                    */
    int distinct[DTENSOR_MAX_DIMS];   /* dimensions of that mesh              */
    int tracker;                  /* enum dtensor_tracker; default global     */
    int fill;                     /* enum dtensor_fill; default sequential    */
    int pytorch;                  /* compat = pytorch                         */
    int sms;                      /* default 132                              */
    int threads_per_sm;           /* default 2048                             */
};

/* [tuning]: an entry is the algorithm for messages from from_bytes up to the
 * next entry.
 */
enum dtn_tuned { DTN_TUNED_ALLREDUCE, DTN_TUNED_ALLGATHER,
                 DTN_TUNED_REDUCE_SCATTER, DTN_TUNED_ALL_TO_ALL,
                 DTN_TUNED_BROADCAST, DTN_TUNED_REDUCE, DTN_NTUNED };
enum dtn_algorithm { DTN_ALG_AUTO, DTN_ALG_DIRECT, DTN_ALG_RING, DTN_ALG_TREE,
                     DTN_ALG_HIERARCHICAL, DTN_ALG_TWOTREE, DTN_ALG_DOUBLING,
                     DTN_ALG_HALVING, DTN_ALG_BRUCK, DTN_ALG_PAIRWISE,
                     DTN_ALG_DEVICE, DTN_ALG_STREAM, DTN_ALG_RAILS };
struct dtn_tuning {
    int n;                        /* 0: built in                              */
    /* Ranges of sizes, by ascending from_bytes. */
    struct { uint64_t from_bytes; enum dtn_algorithm algorithm; } entry[16];
};

/* [tuning]: costs of messages and rates of links; 0: the built-in value. */
struct dtn_costs_conf {
    int intra_latency_ns;         /* of a hop between ranks of one host       */
    int inter_latency_ns;         /* of a hop between hosts                   */
    int intra_message_ns;         /* CPU time of a message inside a host      */
    int inter_message_ns;         /* CPU time of a message between hosts      */
    uint64_t intra_bandwidth;     /* bytes a second of one rank               */
    uint64_t inter_bandwidth;     /* bytes a second of one host or device     */
    uint64_t fold_bandwidth;      /* bytes of terms a second of one rank      */
    uint64_t copy_bandwidth;      /* bytes a second of one rank               */
    uint64_t cache_bytes;         /* of a call; larger buffers cost more      */
    int uncached_percent;         /* cost of a byte beyond it, relative to    */
                                  /* one below it, inside a host              */
    int congestion_percent;       /* extra cost of a byte between hosts, for  */
                                  /* each doubling of the senders to one      */
};

/* [redistribute] */
struct dtn_redistribute_conf {
    uint64_t max_scratch_bytes;   /* default 256M                             */
    uint64_t pipeline_bytes;      /* default 4M                               */
    enum dtensor_route planner;   /* default auto                             */
};

/* [plan "P"]: styles of the modules of a model. */
struct dtn_plan_def {
    char name[DTENSOR_NAME_MAX + 1]; /* in the section's title                */
    int mesh;                     /* index of the mesh; -1: the program's     */
    int dim;                      /* of that mesh                             */
    int n;                        /* entries of `style`                       */
    struct dtensor_style *style;  /* [n] patterns and styles, by pattern      */
    int *line;                    /* [n] of the file, of each                 */
    char *text;                   /* what `style` points to                   */
};

/* [device] */
struct dtn_device_conf {
    enum dtn_direct direct;       /* default auto                             */
};

struct dtensor_cluster {
    char *path;                   /* for messages; "built-in" without a file  */
    char name[DTENSOR_NAME_MAX + 1]; /* of [cluster]                          */
    enum dtn_auth auth;           /* between hosts; default auto              */
    bool repro;                   /* fold in rank order, the default of       */
                                  /* dtensor_set_repro()                      */
    int world_size;               /* ranks                                    */
    int nhosts;                   /* hosts                                    */
    struct dtn_host *hosts;       /* [nhosts] in the order of the ranks       */
    char *names;                  /* what hosts point to; NULL: each name is  */
                                  /* allocated by itself                      */
    int nnodes;                   /* [nodes] sections                         */
    struct dtn_nodes *nodes;      /* [nnodes]                                 */
    struct dtn_transport_conf transport; /* [transport]                       */
    int nmeshes;                  /* at least one, "world" among them         */
    struct dtn_mesh_def *meshes;  /* [nmeshes]                                */
    struct dtn_seed_conf seed;    /* [seed]                                   */
    /* Ranges of [tuning], one list for each collective. */
    struct dtn_tuning tuning[DTN_NTUNED];
    struct dtn_costs_conf costs;  /* costs of [tuning]                        */
    struct dtn_redistribute_conf redistribute; /* [redistribute]              */
    struct dtn_device_conf device; /* [device]                                */
    int nplans;                   /* [plan] sections                          */
    struct dtn_plan_def *plans;   /* [nplans] by name                         */
};

#endif
