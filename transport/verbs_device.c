/* verbs_device.c - which device, port and GID, and why
 *
 * The cluster file may name a device and port for each rank, `hca =
 * mlx5_0:1`, and a GID index.  What it does not name is found: the first
 * device with an active port, and on RoCE the first GID that a router would
 * carry.  A port of a lab machine shows
 *
 *     0  RoCE v1  fe80::1          link-local
 *     1  RoCE v2  fe80::1          link-local
 *     2  RoCE v1  ::ffff:10.1.0.7
 *     3  RoCE v2  ::ffff:10.1.0.7  <- this one
 *
 * GID 0 is never taken in silence: the choice and its reason are logged.
 */
#include "transport/verbs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

char *verbs_gid_text(const union ibv_gid *gid, char *buf, size_t size)
{
    static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };
    bool is_v4 = memcmp(gid->raw, mapped, sizeof mapped) == 0;

    if (!inet_ntop(is_v4 ? AF_INET : AF_INET6, gid->raw + (is_v4 ? 12 : 0),
                   buf, (socklen_t)size))
        snprintf(buf, size, "?");
    return buf;
}

/* -------------------------------------------------------------- GIDs --- */

/* How good a GID is; 0: of no use. */
enum gid_worth { GID_NONE, GID_V1, GID_LINK_LOCAL, GID_ROUTABLE };

static enum gid_worth gid_worth(const struct ibv_gid_entry *entry)
{
    static const unsigned char zero[16];

    if (memcmp(entry->gid.raw, zero, sizeof zero) == 0)
        return GID_NONE;
    if (entry->gid_type != IBV_GID_TYPE_ROCE_V2)
        return GID_V1;
    if (entry->gid.raw[0] == 0xfe && (entry->gid.raw[1] & 0xc0) == 0x80)
        return GID_LINK_LOCAL;
    return GID_ROUTABLE;
}

/* The best GID of a RoCE port, by worth and then by index. */
static enum gid_worth gid_find(struct verbs_device *device, int entries)
{
    enum gid_worth best = GID_NONE, worth;
    struct ibv_gid_entry entry;

    for (int i = 0; i < entries; i++) {
        if (ibv_query_gid_ex(device->context, (uint32_t)device->port,
                             (uint32_t)i, &entry, 0) != 0)
            continue;             /* an empty row, or one of another container */
        worth = gid_worth(&entry);
        if (worth > best) {
            best = worth;
            device->gid_index = i;
            device->gid = entry.gid;
        }
    }
    return best;
}

static int gid_choose(struct verbs_device *device, int want, int entries,
                      const struct dtn_log *log, struct dtensor_error *err)
{
    static const char *const reasons[] = {
        [GID_V1] = "RoCE v1 only: both ends must share a subnet",
        [GID_LINK_LOCAL] = "RoCE v2 but link-local: no router will carry it",
        [GID_ROUTABLE] = "RoCE v2 with a routable address"
    };
    enum gid_worth worth;
    char text[64];

    if (want >= 0) {
        if (ibv_query_gid(device->context, (uint8_t)device->port, want,
                          &device->gid) != 0)
            return dtn_fail(err, DTENSOR_ENODEV, "verbs: %s:%d has no GID %d; "
                            "expected 0 to %d (see ibv_devinfo -v)",
                            device->name, device->port, want, entries - 1);
        device->gid_index = want;
        dtn_log(log, DTN_LOG_INFO, "verbs: GID %d of %s, %s: by the cluster "
                "file", want, device->name,
                verbs_gid_text(&device->gid, text, sizeof text));
        return 0;
    }
    worth = gid_find(device, entries);
    if (worth == GID_NONE)
        return dtn_fail(err, DTENSOR_ENODEV, "verbs: %s:%d has no GID at all "
                        "(give its network interface an address)",
                        device->name, device->port);
    dtn_log(log, worth == GID_ROUTABLE ? DTN_LOG_INFO : DTN_LOG_WARN,
            "verbs: GID %d of %s, %s: %s", device->gid_index, device->name,
            verbs_gid_text(&device->gid, text, sizeof text), reasons[worth]);
    return 0;
}

/* ------------------------------------------------------------- devices --- */

/* Take this port if it is active. */
static bool port_take(struct verbs_device *device, int port, int *entries)
{
    struct ibv_port_attr attr;

    if (ibv_query_port(device->context, (uint8_t)port, &attr) != 0
        || attr.state != IBV_PORT_ACTIVE)
        return false;
    device->port = port;
    device->ethernet = attr.link_layer == IBV_LINK_LAYER_ETHERNET;
    device->lid = attr.lid;
    device->mtu = attr.active_mtu;
    *entries = attr.gid_tbl_len;
    return true;
}

/* The wanted port of this device (0: any) when it is active. */
static bool device_take(struct verbs_device *device, struct ibv_device *dev,
                        int port, int *entries)
{
    struct ibv_device_attr attr;

    device->context = ibv_open_device(dev);
    if (!device->context)
        return false;
    snprintf(device->name, sizeof device->name, "%s", ibv_get_device_name(dev));
    if (ibv_query_device(device->context, &attr) == 0) {
        device->max_cqe = attr.max_cqe;
        for (int p = 1; p <= attr.phys_port_cnt; p++)
            if ((port == 0 || p == port) && port_take(device, p, entries))
                return true;
    }
    ibv_close_device(device->context);
    device->context = NULL;
    return false;
}

/* Split "mlx5_0:1" into name and port, 0 when there is none. */
static int device_port(const char *want, char *name, size_t size)
{
    const char *colon = strchr(want, ':');

    snprintf(name, size, "%.*s",
             colon ? (int)(colon - want) : (int)strlen(want), want);
    return colon ? atoi(colon + 1) : 0;
}

static int device_find(const char *want, struct verbs_device *device,
                       int *entries, struct dtensor_error *err)
{
    char name[IBV_SYSFS_NAME_MAX] = "";
    int n = 0, port = want ? device_port(want, name, sizeof name) : 0;
    struct ibv_device **list = ibv_get_device_list(&n);
    bool taken = false;

    if (!list)
        return dtn_fail_sys(err, errno, "verbs: no list of RDMA devices: %m "
                            "(is the module ib_uverbs loaded?)");
    for (int i = 0; i < n && !taken; i++)
        if (!want || strcmp(ibv_get_device_name(list[i]), name) == 0)
            taken = device_take(device, list[i], port, entries);
    ibv_free_device_list(list);
    if (taken)
        return 0;
    if (want)
        return dtn_fail(err, DTENSOR_ENODEV, "verbs: no active port %s among "
                        "the %d RDMA devices here (see ibv_devinfo; the "
                        "cluster file's hca names it)", want, n);
    return dtn_fail(err, DTENSOR_ENODEV, "verbs: none of the %d RDMA devices "
                    "here has an active port (see ibv_devinfo; or set "
                    "[transport] inter_node = tcp)", n);
}

int verbs_device_open(const char *want, int gid_index,
                      const struct dtn_log *log, struct verbs_device *device,
                      struct dtensor_error *err)
{
    int entries = 0, rc;

    memset(device, 0, sizeof *device);
    device->gid_index = -1;
    rc = device_find(want, device, &entries, err);
    if (rc != 0)
        return rc;
    dtn_log(log, DTN_LOG_INFO, "verbs: device %s port %d, %s: %s",
            device->name, device->port, device->ethernet ? "RoCE" : "IB",
            want ? "by the cluster file" : "the first active one");
    if (device->ethernet || gid_index >= 0)
        rc = gid_choose(device, gid_index, entries, log, err);
    if (rc != 0)
        verbs_device_close(device);
    return rc;
}

void verbs_device_close(struct verbs_device *device)
{
    if (device->context)
        ibv_close_device(device->context);
    device->context = NULL;
}
