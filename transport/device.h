/* device.h - the RDMA devices of this machine, as plain facts
 *
 * verbs/look.c asks libibverbs for the facts.  device.c chooses port, GID and
 * partition and says why: pure functions of the facts.  Nothing here needs the
 * headers of libibverbs: a build without it has the same functions and finds no
 * devices.
 */
#ifndef DTN_DEVICE_H
#define DTN_DEVICE_H

#include "transport/gid.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DTN_DEVICE_NAME 64
#define DTN_MAX_GIDS 256          /* rows of a GID table that are looked at   */
#define DTN_MAX_PKEYS 128         /* rows of a partition table, likewise      */

/* A port; the numbers are those of the InfiniBand specification. */
struct dtn_port {
    char device[DTN_DEVICE_NAME]; /* "mlx5_0"                                 */
    char netdev[16];              /* interface of its first GID, or ""        */
    int port;                     /* number, from 1                           */
    int nports;                   /* of the device                            */
    int state;                    /* 4 is active                              */
    int physical;                 /* 5 is LinkUp                              */
    bool ethernet;                /* RoCE                                     */
    int lid;                      /* address on InfiniBand; 0: none           */
    bool needs_gid;               /* and a GID, as several devices have that  */
                                  /* LID: a virtual function                  */
    int mtu, max_mtu;             /* bytes of payload; mtu is the active one  */
    int rate_mbps;                /* all lanes, in Mb/s; 0: not known         */
    int max_qp;                   /* queue pairs of the device                */
    int ngids;                    /* rows in `gid`                            */
    int gid_rows;                 /* rows of the device's table, empty or not */
    struct dtn_gid gid[DTN_MAX_GIDS]; /* the rows that are not empty          */
    int npkeys;                   /* rows in `pkey`                           */
    uint16_t pkey[DTN_MAX_PKEYS]; /* partitions; 0x8000: full member          */
};

/* All devices of this machine and the ports of those that could be opened. */
struct dtn_devices {
    bool built;                   /* with libibverbs                          */
    int ndevices;                 /* of `device`                              */
    struct dtn_device_name {
        char name[DTN_DEVICE_NAME]; /* "mlx5_0"                               */
        int error;                /* errno of opening it, or 0;               */
                                  /* EPROTONOSUPPORT: iWARP, EFA or the like  */
    } *device;                    /* [ndevices] owned                         */
    int nports;                   /* of `port`                                */
    struct dtn_port *port;        /* [nports] owned                           */
};

/* Look at every device.  Owns: dtn_devices_fini().   Errors: ESYS, ENOMEM */
int dtn_devices_look(struct dtn_devices *devices, struct dtensor_error *err);
void dtn_devices_fini(struct dtn_devices *devices);

/* The cluster file names the devices of a rank like "mlx5_0:1+mlx5_1:1", or not
 * at all (NULL): then there is one, which is to be found.  How many there are,
 * and the name of number k, NULL if it is to be found.
 */
int dtn_rails_count(const char *devices);
const char *dtn_rails_name(const char *devices, int k,
                           char name[DTN_DEVICE_NAME]);

/* What the cluster file asks for, of one device. */
struct dtn_device_want {
    const char *device;           /* "mlx5_0" or "mlx5_0:1"; NULL: any        */
    int gid_index;                /* row; -1: the best                        */
    int pkey;                     /* partition; 0, -1: the default            */
};

struct dtn_device_choice {
    const struct dtn_port *port;  /* the port to use                          */
    const struct dtn_gid *gid;    /* NULL: addressed by LID alone             */
    int pkey_index;               /* row of the partition                     */
    bool doubtful;                /* `why_gid` is worth a warning             */
    char why_port[64];            /* "by the cluster file"                    */
    char why_gid[96];             /* "RoCE v2 with a routable address"        */
};

/* The port, GID and partition to use.  Pointers lead into `devices`.
 * Errors: ENODEV  in words: what is there, and what to do
 */
int dtn_device_choose(const struct dtn_devices *devices,
                      const struct dtn_device_want *want,
                      struct dtn_device_choice *choice,
                      struct dtensor_error *err);

/* For reports: the port that `want` names, usable or not, or NULL. */
const struct dtn_port *dtn_device_meant(const struct dtn_devices *devices,
                                        const struct dtn_device_want *want);

const char *dtn_port_state_name(int state);            /* "ACTIVE"            */
const char *dtn_port_physical_name(int physical);      /* "LinkUp"            */

/* Mb/s of a port from the codes of active_speed and active_width, 0 if they
 * mean nothing known: 32 and 2 are 25 Gb/s on 4 lanes, 100000.
 */
int dtn_rate_mbps(unsigned speed, unsigned width);

/* "100 Gb/s" and "2.5 Gb/s"; "-" for 0. */
char *dtn_rate_text(int mbps, char *buf, size_t size);

#endif
