/* whoami.h - what the methods of whoami.c share; for this room only
 *
 * whoami.c        the table, dtensor-run, hosts in the file, single
 * whoami_slurm.c  the Slurm step
 * whoami_spread.c all tasks of a step against the cluster
 * whoami_claim.c  the rank of a process that was refused
 */
#ifndef DTN_WHOAMI_H
#define DTN_WHOAMI_H

#include "cluster/cluster.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>

struct dtn_host;
struct dtn_world;

#define DTN_MAX_RANKS (DTN_MAX_HOSTS * DTN_MAX_LOCAL)

/* One search for this process's place. */
struct dtn_whoami_search {
    const char *path;             /* of the cluster file; NULL: none          */
    struct dtensor_cluster *cluster;  /* the file's; without one NULL until   */
                                  /* the method that applies has made it      */
    char here[DTN_HOST_MAX];      /* this host: DTN_HOST, or gethostname()    */
    bool here_given;              /* by DTN_HOST                              */
    char note[160];               /* why the last method did not apply        */
};

/* The result of a method.  It may also be a negative enum dtensor_errcode: this
 * launcher started the process, but wrongly, and no other method is tried.
 */
enum dtn_whoami_found { DTN_FOUND_NOT, DTN_FOUND };

/* Try a method.  FOUND: it has filled in the rank, size, job and launcher of
 * `world` and set search->cluster.  FOUND_NOT: search->note has the reason.
 */
typedef int dtn_whoami_method_f(struct dtn_whoami_search *search,
                                struct dtn_world *world,
                                struct dtensor_error *err);

dtn_whoami_method_f dtn_whoami_slurm;

/* Take the rank, the size, the job and a cluster for the addresses of the other
 * ranks from the variables of the launcher, even if something is wrong.  False:
 * the environment does not have them.
 */
bool dtn_claim_slurm(struct dtn_whoami_search *search, struct dtn_world *world);
bool dtn_claim_run(struct dtn_whoami_search *search, struct dtn_world *world);

/* This host's name, and the file if there is one. */
int dtn_whoami_search_init(struct dtn_whoami_search *search, const char *path,
                           struct dtensor_error *err);

/* Compare the whole Slurm step with the cluster; `what` is its name in
 * messages.  If they differ, every task of the step returns ECONF with the same
 * text.
 */
int dtn_slurm_step_check(const struct dtensor_cluster *c, const char *what,
                         struct dtensor_error *err);

/* The srun options that start the cluster's ranks.  With `nodes` they include
 * the option that names the nodes.  Returns `buf`.
 */
char *dtn_srun_options(const struct dtensor_cluster *c, bool nodes, char *buf,
                       size_t size);

/* The host with this node name, or NULL.  A single host "localhost" matches any
 * name.
 */
const struct dtn_host *dtn_slurm_host(const struct dtensor_cluster *c,
                                      const char *name);

#endif
