/* cluster.h - the cluster: hosts, ranks, meshes, settings */
#ifndef DTN_CLUSTER_CLUSTER_H
#define DTN_CLUSTER_CLUSTER_H

#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>

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

#endif
