/* device.c - open the chosen device, and log the choice
 *
 * device.c chooses, and gives the reason.  The log of a rank on a lab machine:
 *
 *     verbs: device mlx5_0 port 1, RoCE, 100 Gb/s, MTU 4096: by the cluster
 *     file
 *     verbs: GID 3 of mlx5_0, 10.1.0.7: a routable address
 *
 * From here on the device's asynchronous events, such as a port that went down,
 * are read without waiting for them (verbs/events.c).
 */
#include "base/error.h"
#include "base/log.h"
#include "transport/device.h"
#include "transport/transport.h"
#include "transport/verbs/verbs.h"
#include "transport/verbs/device.h"
#include "transport/verbs/meet.h"
#include "dtensor.h"

#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Soft-RoCE (rxe of Linux) has no vendor number and a bug in Linux 6.1:
 * req_retry() of rxe_req.c.  It repeats a request after packets were lost.  If
 * the last acknowledgement of that request arrives just then, it sends an empty
 * write with a packet number of its own, and the peer refuses what follows.
 * Requests of one packet are not affected.  tests/rdma/bare.c shows the bug
 * without this library.
 */
#define DEVICE_RXE_VENDOR 0xffffff

char *dtn_verbs_gid_text(const union ibv_gid *gid, char *buf, size_t size)
{
    return dtn_gid_text(gid->raw, buf, size);
}

static enum ibv_mtu device_mtu(int bytes)
{
    enum ibv_mtu mtu = IBV_MTU_256;

    while (mtu < IBV_MTU_4096 && 128 << (mtu + 1) <= bytes)
        mtu++;
    return mtu;
}

static struct ibv_context *device_context(const char *name)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *context = NULL;

    for (int i = 0; list && list[i]; i++)
        if (strcmp(ibv_get_device_name(list[i]), name) == 0)
            context = ibv_open_device(list[i]);
    if (list)
        ibv_free_device_list(list);
    return context;
}

static void device_log(const struct dtn_device_choice *choice,
                       struct dtn_log *log)
{
    const struct dtn_port *port = choice->port;
    char text[64];

    dtn_log(log, DTN_LOG_INFO, "verbs: device %s port %d, %s, %s, MTU %d: %s",
            port->device, port->port, port->ethernet ? "RoCE" : "InfiniBand",
            dtn_rate_text(port->rate_mbps, text, sizeof text), port->mtu,
            choice->why_port);
    if (choice->gid)
        dtn_log(log, choice->doubtful ? DTN_LOG_WARN : DTN_LOG_INFO,
                "verbs: GID %d of %s, %s: %s", choice->gid->index,
                port->device,
                dtn_gid_text(choice->gid->raw, text, sizeof text),
                choice->why_gid);
    if (choice->pkey_index > 0)
        dtn_log(log, DTN_LOG_INFO, "verbs: partition 0x%04x of %s, index %d",
                port->pkey[choice->pkey_index], port->device,
                choice->pkey_index);
}

static int device_take(const struct dtn_device_choice *choice,
                       struct dtn_verbs_device *device,
                       struct dtensor_error *err)
{
    const struct dtn_port *port = choice->port;
    struct ibv_device_attr attr;
    int flags;

    memset(device, 0, sizeof *device);
    snprintf(device->name, sizeof device->name, "%s", port->device);
    device->port = port->port;
    device->ethernet = port->ethernet;
    device->lid = (uint16_t)port->lid;
    device->mtu = device_mtu(port->mtu);
    device->gid_index = -1;
    device->pkey_index = (uint16_t)choice->pkey_index;
    device->max_qp = port->max_qp;
    device->rate_mbps = port->rate_mbps;
    if (choice->gid) {
        device->gid_index = choice->gid->index;
        memcpy(device->gid.raw, choice->gid->raw, sizeof device->gid.raw);
    }
    device->context = device_context(device->name);
    if (!device->context || ibv_query_device(device->context, &attr) != 0)
        return dtn_fail_sys(err, errno, "verbs: cannot open %s: %m (see rdma "
                            "link)", device->name);
    device->max_cqe = attr.max_cqe;
    device->max_pieces = attr.max_sge < DTN_VERBS_PIECES ? attr.max_sge
                       : DTN_VERBS_PIECES;
    device->one_packet = attr.vendor_id == DEVICE_RXE_VENDOR;
    flags = fcntl(device->context->async_fd, F_GETFL);
    if (flags < 0 || fcntl(device->context->async_fd, F_SETFL,
                           flags | O_NONBLOCK) < 0)
        return dtn_fail_sys(err, errno, "verbs: messages of %s: %m",
                            device->name);
    return 0;
}

int dtn_verbs_device_open(const struct dtn_open_args *args, const char *name,
                          struct dtn_verbs_device *device,
                          struct dtensor_error *err)
{
    struct dtn_device_want want = {
        .device = name, .gid_index = args->gid_index, .pkey = args->conf->pkey
    };
    struct dtn_device_choice choice;
    struct dtn_devices devices;
    int rc = dtn_devices_look(&devices, err);

    memset(device, 0, sizeof *device);
    if (rc != 0)
        return rc;
    rc = dtn_device_choose(&devices, &want, &choice, err);
    if (rc == 0)
        rc = device_take(&choice, device, err);
    if (rc == 0)
        device_log(&choice, args->log);
    else
        dtn_verbs_device_close(device);
    dtn_devices_fini(&devices);
    return rc;
}

void dtn_verbs_device_close(struct dtn_verbs_device *device)
{
    if (device->context)
        ibv_close_device(device->context);
    device->context = NULL;
}

void dtn_verbs_device_end(const struct dtn_verbs_device *device,
                          struct dtn_verbs_end *end)
{
    memset(end, 0, sizeof *end);
    end->gid = device->gid;
    end->rate_mbps = (uint32_t)device->rate_mbps;
    end->lid = device->lid;
    end->mtu = (uint8_t)device->mtu;
    end->ethernet = device->ethernet;
    memcpy(end->device, device->name, sizeof end->device);
}

enum ibv_mtu dtn_verbs_path_mtu(const struct dtn_verbs *verbs,
                                const struct dtn_verbs_device *device,
                                const struct dtn_verbs_end *end)
{
    enum ibv_mtu mtu = device->mtu, want = IBV_MTU_4096;

    for (int bytes = 2048; bytes >= 256; bytes /= 2)
        if (verbs->args.conf->mtu > 0 && verbs->args.conf->mtu <= bytes)
            want--;
    if (end->mtu < (unsigned)mtu)
        mtu = (enum ibv_mtu)end->mtu;
    return want < mtu ? want : mtu;
}
