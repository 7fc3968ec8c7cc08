/* fabric.h - reports of ranks on the RDMA fabric; private to lib/fabric
 *
 * report.c   the report of one rank
 * mine.c     those of this rank, by the cluster file
 * fabric.c  gathers the reports
 * judge.c   finds differences and errors
 * table.c   prints them
 */
#ifndef DTN_FABRIC_H
#define DTN_FABRIC_H

#include "transport/device.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct dtn_device_want;

#define DTN_FABRIC_GIDS 16        /* rows of a GID table that travel          */

/* A rank's report on one of its rails, as it travels in a blob. */
struct dtn_fabric_report {
    char device[DTN_DEVICE_NAME]; /* "" : none                                */
    int32_t built;                /* with libibverbs                          */
    int32_t ndevices;             /* RDMA devices that the rank sees          */
    /* The values of libibverbs; ethernet is 1 for RoCE; mtu is in bytes. */
    int32_t port, state, physical, ethernet, lid, mtu, rate_mbps;
    int32_t code;                 /* 0: rc would open on it                   */
    int32_t doubtful;             /* ... with a warning                       */
    int32_t gid_index;            /* of the GID it would use, -1: by LID      */
    int32_t ngids;               /* of which DTN_FABRIC_GIDS at most are here */
    uint64_t memlock, need;       /* bytes                                    */
    struct dtn_gid gid[DTN_FABRIC_GIDS]; /* the first rows of the GID table   */
    char why[500];                /* the choice, or what is in its way        */
};

/* The values of most ranks, among those with a device. */
struct dtn_fabric_majority {
    int ndevices;                 /* ranks that count                         */
    int ethernet, mtu, rate_mbps; /* as in struct dtn_fabric_report           */
};

/* Findings about a rank, one bit each. */
enum dtn_fabric_mark {
    DTN_FABRIC_DEVICE = 1,        /* no device, port or GID that rc can use   */
    DTN_FABRIC_LINK = 2,          /* another network than most                */
    DTN_FABRIC_MEMLOCK = 4,       /* too little memory may be locked          */
    DTN_FABRIC_UNFIT = 7,         /* any of these                             */
    DTN_FABRIC_STATE = 8,         /* the port is not active                   */
    DTN_FABRIC_GID = 16,          /* a doubtful one                           */
    DTN_FABRIC_MTU = 32,
    DTN_FABRIC_RATE = 64
};

/* Reports are in the order of ranks, then of rails. */
void dtn_fabric_majority(const struct dtn_fabric_report report[], int n,
                         struct dtn_fabric_majority *usual);
unsigned dtn_fabric_marks(const struct dtn_fabric_report *report,
                          const struct dtn_fabric_majority *usual);

/* Fill in the report of this rank on one device.  The job's numbers of ranks
 * and rails determine the memory that must be locked.  Errors: ESYS, ENOMEM
 */
int dtn_fabric_report_make(const struct dtn_device_want *want, int nranks,
                           int nrails, struct dtn_fabric_report *report,
                           struct dtensor_error *err);

/* Make the report of this rank.  If it fails, the report contains the error, so
 * that the other ranks do not wait.
 */
void dtn_fabric_mine(const struct dtensor_ctx *ctx, int rail,
                     struct dtn_fabric_report *report);

/* How many rails each rank has. */
int dtn_fabric_rails(const struct dtensor_cluster *cluster);

/* How many ranks have an unfit rail. */
int dtn_fabric_unfit(const struct dtensor_cluster *cluster,
                     const struct dtn_fabric_report report[],
                     const struct dtn_fabric_majority *usual);

/* Does any pair of ranks use rc? */
bool dtn_fabric_wanted(const struct dtensor_cluster *cluster);

/* Write the table of all ranks and rails; returns how many ranks are unfit. */
int dtn_fabric_table_write(const struct dtensor_cluster *cluster,
                           const struct dtn_fabric_report report[], FILE *out);

#endif
