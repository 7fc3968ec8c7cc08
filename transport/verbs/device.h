/* device.h - an open RDMA device: its port, GID, partition and limits */
#ifndef DTN_TRANSPORT_VERBS_DEVICE_H
#define DTN_TRANSPORT_VERBS_DEVICE_H

#include "transport/verbs/events.h"
#include "dtensor.h"

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_open_args;
struct dtn_verbs;
struct dtn_verbs_end;

enum {
    DTN_VERBS_PIECES = 14,      /* of a source: 256 bytes of a mlx5 queue     */
    DTN_VERBS_ROCE_HEADERS = 96 /* bytes the kernel keeps of an Ethernet MTU  */
};

struct dtn_verbs_device {
    struct ibv_context *context;  /* owned                                    */
    char name[IBV_SYSFS_NAME_MAX]; /* "mlx5_0"                                */
    int port;                     /* from 1                                   */
    bool ethernet;                /* RoCE: addressed by GID; else by LID      */
    uint16_t lid;                 /* address of the port on InfiniBand        */
    uint16_t pkey_index;          /* row of the partition table               */
    int gid_index;                /* row of the GID table; -1: LID only       */
    union ibv_gid gid;            /* what stands in that row                  */
    enum ibv_mtu mtu;             /* active                                   */
    int rate_mbps;                /* of the port, in Mb/s; 0: not known       */
    int max_inline;               /* bytes; learnt from the first queue pair  */
    int max_pieces;               /* of one write's source                    */
    int max_cqe;                  /* entries of a completion queue            */
    int max_qp;                   /* queue pairs, of all its users            */
    bool one_packet;              /* repeats longer requests wrongly          */
    struct dtn_verbs_events events; /* what it said of itself                 */
};

/* Open the device and port `name`, and the GID and partition that args and the
 * cluster file name, or the best there are, and log the choice.
 * Errors: ENODEV, ENOMEM, ESYS
 */
int dtn_verbs_device_open(const struct dtn_open_args *args, const char *name,
                          struct dtn_verbs_device *device,
                          struct dtensor_error *err);
void dtn_verbs_device_close(struct dtn_verbs_device *device);

/* "fe80::1" or "10.1.2.3" of a GID. */
char *dtn_verbs_gid_text(const union ibv_gid *gid, char *buf, size_t size);

/* What peers must know of the device. */
void dtn_verbs_device_end(const struct dtn_verbs_device *device,
                          struct dtn_verbs_end *end);

/* The MTU between a device and a peer's end: the smallest of both ports' and
 * the cluster file's.
 */
enum ibv_mtu dtn_verbs_path_mtu(const struct dtn_verbs *verbs,
                                const struct dtn_verbs_device *device,
                                const struct dtn_verbs_end *end);

#endif
