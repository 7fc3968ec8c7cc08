/* look.c - the RDMA devices of this machine, asked of libibverbs
 *
 * Every device is opened, queried and closed again, which takes about one
 * millisecond each.  device.c chooses from these facts, and the chosen device
 * is opened once more.  A device that this user may not open stays in the list
 * with the reason.
 */
#include "config.h"
#include "base/error.h"
#include "transport/device.h"
#include "transport/memlock.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void dtn_devices_fini(struct dtn_devices *devices)
{
    free(devices->device);
    free(devices->port);
    memset(devices, 0, sizeof *devices);
}

#ifdef HAVE_VERBS

#include <errno.h>
#include <infiniband/verbs.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>

static int look_mtu_bytes(enum ibv_mtu mtu)
{
    return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128 << mtu : 0;
}

static void look_gids(struct ibv_context *context, struct dtn_port *port)
{
    struct ibv_gid_entry entry;

    for (int i = 0; i < port->gid_rows && port->ngids < DTN_MAX_GIDS; i++) {
        struct dtn_gid *gid = &port->gid[port->ngids];

        if (ibv_query_gid_ex(context, (uint32_t)port->port, (uint32_t)i,
                             &entry, 0) != 0)
            continue;             /* empty, or of another container           */
        memcpy(gid->raw, entry.gid.raw, sizeof gid->raw);
        gid->index = (uint16_t)i;
        gid->type = entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? DTN_GID_V2
                  : entry.gid_type == IBV_GID_TYPE_ROCE_V1 ? DTN_GID_V1
                  : DTN_GID_IB;
        if (dtn_gid_worth(gid, port->ethernet) == DTN_GID_NONE)
            continue;
        if (!port->netdev[0] && entry.ndev_ifindex) {
            char name[IF_NAMESIZE] = "";

            if_indextoname(entry.ndev_ifindex, name);
            snprintf(port->netdev, sizeof port->netdev, "%.15s", name);
        }
        port->ngids++;
    }
}

static void look_pkeys(struct ibv_context *context, int rows,
                       struct dtn_port *port)
{
    __be16 key;

    for (int i = 0; i < rows && port->npkeys < DTN_MAX_PKEYS; i++) {
        if (ibv_query_pkey(context, (uint8_t)port->port, i, &key) != 0)
            key = 0;
        port->pkey[port->npkeys++] = be16toh(key);
    }
}

static void look_port(struct ibv_context *context, struct dtn_port *port)
{
    struct ibv_port_attr attr;

    if (ibv_query_port(context, (uint8_t)port->port, &attr) != 0)
        return;                   /* its state stays 0: not usable            */
    port->state = (int)attr.state;
    port->physical = attr.phys_state;
    port->ethernet = attr.link_layer == IBV_LINK_LAYER_ETHERNET;
    port->lid = attr.lid;
    port->needs_gid = (attr.flags & IBV_QPF_GRH_REQUIRED) != 0;
    port->mtu = look_mtu_bytes(attr.active_mtu);
    port->max_mtu = look_mtu_bytes(attr.max_mtu);
    port->rate_mbps = dtn_rate_mbps(attr.active_speed, attr.active_width);
    port->gid_rows = attr.gid_tbl_len;
    look_gids(context, port);
    look_pkeys(context, attr.pkey_tbl_len, port);
}

/* Append the ports of an open device. */
static int look_ports(struct ibv_context *context, const char *name,
                      struct dtn_devices *devices)
{
    struct ibv_device_attr attr;
    struct dtn_port *port;

    if (ibv_query_device(context, &attr) != 0)
        return errno ? errno : EIO;
    port = realloc(devices->port, (size_t)(devices->nports
                   + attr.phys_port_cnt) * sizeof *port);
    if (!port)
        return ENOMEM;
    devices->port = port;
    for (int p = 1; p <= attr.phys_port_cnt; p++) {
        port = &devices->port[devices->nports++];
        memset(port, 0, sizeof *port);
        snprintf(port->device, sizeof port->device, "%s", name);
        port->port = p;
        port->nports = attr.phys_port_cnt;
        port->max_qp = attr.max_qp;
        look_port(context, port);
    }
    return 0;
}

/* 0, or the errno of what failed.  Devices of other transports have no
 * reliable connections that ranks can join by themselves.
 */
static int look_device(struct ibv_device *device, struct dtn_devices *devices)
{
    struct ibv_context *context;
    int failed;

    if (device->transport_type != IBV_TRANSPORT_IB)
        return EPROTONOSUPPORT;
    errno = 0;
    context = ibv_open_device(device);
    if (!context)
        return errno ? errno : EIO;
    failed = look_ports(context, ibv_get_device_name(device), devices);
    ibv_close_device(context);
    return failed;
}

int dtn_devices_look(struct dtn_devices *devices, struct dtensor_error *err)
{
    struct dtn_devices found = { .built = true };
    struct ibv_device **list = ibv_get_device_list(&found.ndevices);

    if (!list && errno == ENOSYS)
        found.ndevices = 0;       /* the kernel has no RDMA at all            */
    else if (!list)
        return dtn_fail_sys(err, errno, "verbs: no list of RDMA devices: %m "
                            "(is the module ib_uverbs loaded?)");
    found.device = calloc((size_t)found.ndevices + 1, sizeof *found.device);
    for (int i = 0; found.device && i < found.ndevices; i++) {
        snprintf(found.device[i].name, sizeof found.device[i].name, "%s",
                 ibv_get_device_name(list[i]));
        found.device[i].error = look_device(list[i], &found);
    }
    if (list)
        ibv_free_device_list(list);
    if (!found.device)
        return dtn_fail_nomem(err, "verbs", sizeof *found.device);
    *devices = found;
    return 0;
}

#else

int dtn_devices_look(struct dtn_devices *devices, struct dtensor_error *err)
{
    (void)err;
    memset(devices, 0, sizeof *devices);
    return 0;
}

uint64_t dtn_memlock_need(int nranks, int nrails)
{
    (void)nranks;
    (void)nrails;
    return 0;
}
#endif
