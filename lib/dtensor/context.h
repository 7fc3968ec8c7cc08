/* dtensor/context.h - joining a job, and the machines it runs on
 *
 * Every rank calls dtensor_init() and gets a context: its membership of the
 * job.  It says which rank this is and where, owns the meshes, and gives memory
 * that peers can access without a copy.  The hosts and ranks are defined in a
 * cluster file, the same for all; tools can read one, and query the network
 * cards, without starting anything.
 */
#ifndef DTENSOR_CONTEXT_H
#define DTENSOR_CONTEXT_H

#include "types.h"

#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------ context --- */

/* One rank's membership of one job. */
struct dtensor_ctx;

/* Join the job.  `path` names the cluster file; NULL means the file named by
 * DTN_CLUSTER, or with none a built-in cluster: the ranks dtensor-run or the
 * Slurm step started, or this process alone.  See dtensor(7).
 *
 * Collective: yes - every rank of the world.   Blocks: until all have joined,
 *         at most [transport] connect_timeout (60 s).
 * Owns:   *ctxp is the caller's, for dtensor_fini().
 * Errors: every rank returns the error of the first rank that fails:
 *         ECONF      the file, or the environment: says which and what to do
 *         ETIME      ranks are missing: says which
 *         EMISMATCH  a rank has another file, world or version: names the key
 *         EPEER      a rank died while joining
 *         ENODEV     no transport reaches a peer
 *         ENOMEM, ESYS
 * Semantics: MPI_Init, of ranks that srun or dtensor-run started.
 */
int dtensor_init(const char *path, struct dtensor_ctx **ctxp,
                 struct dtensor_error *err);

/* Leave the job.  Peers may still be working: their memory is not touched.
 * Started calls end, and dtensor_wait() for them returns EINVAL.
 *
 * Objects made with the context may be destroyed before dtensor_fini() or after
 * it, in any order: tensors, plans, batches, requests, persistent calls,
 * reductions, registrations, memory of dtensor_alloc().  Until the last of them
 * is destroyed, context, meshes and elements can be read, and calls that need
 * peers or new memory return EINVAL.  Then everything is freed.  So the program
 * must destroy every object, or memory is lost.
 *
 * NULL is a no-op, here and for all functions that destroy.  A pointer to a
 * destroyed object must not be used: destroying it twice is not detected.
 *
 * The first rank of a host passes on the heartbeats and losses of others.  It
 * stays until the ranks of its host, and of hosts that hear through it, have
 * left too; all other ranks wait for nobody.  After a loss in a job of several
 * hosts, a rank stays while a leader that it would hear of is silent, so that
 * ranks behind that one learn here who is named.
 *
 * Collective: no.   Blocks: the first rank of a host, until those ranks have
 *         left or are lost, or a failure is known; at most op_timeout.  After
 *         a loss: four heartbeats, and while a leader is silent dead_after.
 * Semantics: MPI_Finalize, which may wait for all.
 */
void dtensor_fini(struct dtensor_ctx *ctx);

/* Should this rank print *failure?  1 or 0.  When several ranks get the same
 * error, one of them prints it.
 *
 *   if (rc != 0 && dtensor_should_report(ctx, &err))
 *       fprintf(stderr, "%s\n", err.text);
 *
 * Call it before dtensor_fini().  The result is 1
 *   - after a call that failed on several ranks, a mismatch included: on the
 *     lowest of the ranks that failed within half a second of the first; if
 *     some of them have EABORT, because another one failed, on none of these
 *   - after an EINVAL or ESYS of this rank alone: unless a lower rank asked
 *     this for the same code, and left within half a second
 *   - after any other error of this rank alone
 *   - after an error that all return for one rank, as of a file: on that rank
 *   - after dtensor_fini(), while objects of the context are left: on all ranks
 *   - with `ctx` NULL, after dtensor_init() failed: on the rank that differs or
 *     failed and on rank 0, or on every rank if rank 0 is missing; for a wrong
 *     cluster file on the first rank of each host.
 * If in doubt, two ranks print rather than none.
 *
 * Collective: no; nothing is sent before dtensor_fini().   Blocks: at most half
 *         a second, to hear whether lower ranks failed too.
 * Semantics: its own.
 */
int dtensor_should_report(struct dtensor_ctx *ctx,
                          const struct dtensor_error *failure);

/* The number of this rank, and of ranks.   Semantics: MPI_Comm_rank,
 * MPI_Comm_size of the world and of the ranks that share a host.
 */
int dtensor_rank(const struct dtensor_ctx *ctx);          /* 0..world_size-1 */
int dtensor_world_size(const struct dtensor_ctx *ctx);    /* 1 or more       */
int dtensor_local_rank(const struct dtensor_ctx *ctx);    /* on this host    */
int dtensor_local_size(const struct dtensor_ctx *ctx);    /* on this host    */

/* The name of this rank's host in the cluster; the name of the cluster, or
 * "local"; how the rank was found, such as "dtensor-run" or "Slurm step 12.0".
 *
 * Owns:   the context, until dtensor_fini().
 */
const char *dtensor_host(const struct dtensor_ctx *ctx);
const char *dtensor_cluster_name(const struct dtensor_ctx *ctx);
const char *dtensor_launcher(const struct dtensor_ctx *ctx);

/* A description of the last collective or redistribute, such as
 * "allreduce direct shm 2 ranks"; "" before the first one.  If its buffers were
 * on a GPU, also whether peers reached them in place, or why not.
 *
 * Owns:   the context, until the next one.
 */
const char *dtensor_last_plan(const struct dtensor_ctx *ctx);

/* Total bytes that this rank's CPU has copied between the caller's memory and
 * a peer: packed, unpacked, or staged in memory that peers or the device can
 * access.  0 means zero copy.  The transfer itself does not count (a load or
 * store through shared memory, a write to a socket), nor does the part of a
 * result that comes from the rank itself.
 */
uint64_t dtensor_copied_bytes(const struct dtensor_ctx *ctx);

/* Allocate `size` bytes of zeroed memory, 64-byte aligned, that peers can
 * access without a copy.  Collectives work on any memory; on this they are
 * faster.
 *
 * Collective: no.   Blocks: no.
 * Owns:   *memp is the caller's, for dtensor_free().
 * Errors: ENOMEM  not enough memory: says how much there is
 * Semantics: MPI_Alloc_mem, ncclMemAlloc.
 *
 * free: NULL is a no-op.  A pointer that is not from dtensor_alloc(), or was
 * freed before, is ignored with a line in the log.
 */
int dtensor_alloc(struct dtensor_ctx *ctx, size_t size, void **memp,
                  struct dtensor_error *err);
void dtensor_free(struct dtensor_ctx *ctx, void *mem);

/* Let the transports use `size` bytes of the caller's own memory in place.
 * Over rc the memory is locked, and the network card reads and writes it
 * directly.  Over tcp nothing is ever staged, and over shm memory that is not
 * from dtensor_alloc() is staged or read by cross-memory attach, so there it
 * has no effect.  A registration takes 16 us or more, so it pays for memory
 * that many calls use.  Each rank may register other memory than its peers, in
 * total at most [transport] register_limit bytes.
 *
 * Collective: no.   Blocks: no.
 * Owns:   the memory stays the caller's, and must stay mapped until
 *         dtensor_unregister() of the same address, which the program
 *         must call, or dtensor_fini().
 * Errors: EINVAL  not memory, from dtensor_alloc(), or registered in part
 *                 already
 *         ENOMEM  above register_limit, or more than may be locked: gives both
 *                 numbers
 *         ESYS    the device refused
 * Semantics: ncclCommRegister.
 */
int dtensor_register(struct dtensor_ctx *ctx, void *mem, size_t size,
                     struct dtensor_error *err);
void dtensor_unregister(struct dtensor_ctx *ctx, void *mem);
                                               /* no-op on other memory      */

/* A context that can plan but not communicate: that of rank 0 of the cluster in
 * the file `path` or, if `path` is NULL, of a cluster of `nranks` ranks with
 * `per_host` (0: all) on each host.  Meshes, specs and plans are made and
 * queried as usual.  Tensors have no elements, dtensor_local_bytes() is 0, and
 * operators, redistributes, modules and tapes compute and send nothing: only
 * placements follow, and counters (dtensor_debug_begin()) say what all ranks
 * would move.  Calls on memory fail with EINVAL, among them collectives and
 * those that need elements.
 *
 * Collective: no.   Blocks: no.
 * Owns:   *ctxp is the caller's, for dtensor_fini().
 * Errors: ECONF, ESYS  the file;  EINVAL  the numbers;  ENOMEM
 * Semantics: its own.
 */
int dtensor_init_offline(const char *path, int nranks, int per_host,
                         struct dtensor_ctx **ctxp, struct dtensor_error *err);

/* ------------------------------------------------------- cluster files --- */

/* A checked cluster file, for tools: nothing is started. */
struct dtensor_cluster;

/* Called once for each finding, `text` a full line without newline such as
 * "pair.ini:6: error: unknown key ...".
 */
typedef void dtensor_report_f(const char *text, void *arg);

/* Read and check a cluster file.  Every finding goes to `report` (may be
 * NULL); the first is also in *err.  With a `report`, `hosts = @step` outside a
 * Slurm step is a warning only, and the cluster then has no ranks.
 *
 * Collective: no.   Blocks: no.
 * Owns:   *clusterp is the caller's, for dtensor_cluster_destroy().
 * Errors: ECONF  the file is wrong;  ESYS  it cannot be read;  ENOMEM
 * Semantics: its own; dtensor-cluster(5) has the grammar.
 */
int dtensor_cluster_read(const char *path, dtensor_report_f *report, void *arg,
                         struct dtensor_cluster **clusterp,
                         struct dtensor_error *err);

/* What to show of a cluster. */
enum dtensor_show {
    DTENSOR_SHOW_SUMMARY,      /* one line: ranks, nodes, meshes              */
    DTENSOR_SHOW_RANKS,        /* rank, host, local rank, gpu, hca            */
    DTENSOR_SHOW_HOSTS,        /* host, address, ranks                        */
    DTENSOR_SHOW_MESH,         /* every mesh: dimensions, rank -> coordinate  */
    DTENSOR_SHOW_SEEDS,        /* rank -> seed                                */
    DTENSOR_SHOW_DIGEST,       /* canonical text and digest ranks compare     */
    DTENSOR_SHOW_PLAN,         /* plans: patterns, styles, layouts            */
    DTENSOR_NSHOWS
};

/* Write that view to `stream`; with rank >= 0 only that rank's part.
 *
 * Collective: no.   Blocks: no.   Semantics: its own.
 * Errors: EINVAL  no such rank, or nothing to show: says why
 */
int dtensor_cluster_show(const struct dtensor_cluster *cluster,
                         enum dtensor_show what, int rank, FILE *stream,
                         struct dtensor_error *err);

/* What the file says of the whole, and of one rank.
 *
 * Owns:   the texts belong to the cluster.
 */
struct dtensor_cluster_info {
    const char *name;          /* of [cluster]                                */
    int nranks;                /* in all; 0: those of a Slurm step            */
    int nhosts;                /* number of hosts                             */
    const char *intra_node;    /* transport inside a host: "shm", "tcp", "rc" */
    const char *inter_node;    /* and between hosts: "tcp", "rc", "auto"      */
    const char *auth;          /* between hosts: "auto", "key", "munge" or    */
                               /* "none"                                      */
};
void dtensor_cluster_info(const struct dtensor_cluster *cluster,
                          struct dtensor_cluster_info *info);

struct dtensor_cluster_rank {
    const char *host;          /* name of its host                            */
    const char *address;       /* of the host                                 */
    int local;                 /* number among the ranks of the host          */
    int gpu;                   /* its GPU; -1: the file names none            */
    const char *hca;           /* "mlx5_0:1+mlx5_1:1"; NULL: none is named    */
    const char *cpus;          /* "0-15" or "numa"; NULL: none are named      */
};

/* The same of rank `rank`.
 *
 * Collective: no.   Blocks: no.   Semantics: its own.
 * Owns:   the texts belong to the cluster.
 * Errors: EINVAL  no such rank
 */
int dtensor_cluster_rank(const struct dtensor_cluster *cluster, int rank,
                         struct dtensor_cluster_rank *info,
                         struct dtensor_error *err);

void dtensor_cluster_destroy(struct dtensor_cluster *cluster);
                                               /* NULL is a no-op            */

/* ------------------------------------------------------------- devices --- */

/* Write the RDMA devices of this machine to `stream`: ports, state, rate, MTU,
 * GIDs, and how much memory may be locked.  If there are none it writes that;
 * this is not an error.
 *
 * Collective: no.   Blocks: no.   Semantics: ibv_devinfo.
 * Errors: ESYS, ENOMEM
 */
int dtensor_devices_show(FILE *stream, struct dtensor_error *err);

/* The same for every rank of a job, and which device each would use and why.
 * Rank 0 writes one table to its `stream`.  It marks ranks that cannot use rc
 * or that differ from most, with a line for each mark.  If the machine has an
 * NVIDIA driver, it adds lines on the GPU of each rank.  RDMA need not work:
 * the ranks connect as in dtensor_init(), with the same `path`, and disconnect
 * again.  *unfitp, the same on all ranks, is the number of ranks that cannot
 * use rc although the file asks for it; 0 if the file does not ask for rc.
 *
 * Collective: yes - every rank of the world.   Blocks: as dtensor_init().
 * Errors: ECONF, ETIME, EMISMATCH, EPEER, ENOMEM, ESYS  as when joining
 * Semantics: its own.
 */
int dtensor_fabric_show(const char *path, FILE *stream, int *unfitp,
                        struct dtensor_error *err);

#ifdef __cplusplus
}
#endif
#endif
