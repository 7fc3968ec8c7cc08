/* devices.c - dtensor_devices_show(): the RDMA devices of this machine
 *
 *     rxe0:1  ACTIVE  LinkUp  RoCE  100 Gb/s  mtu 1024 of 4096  eth0 ...
 *         GID 0  v1  fe80::1  RoCE v1
 *         GID 1  v2  10.0.0.1  routable  <- and this
 *
 * The same function as in a job chooses the GID that rc would use.
 */
#include "transport/device.h"
#include "transport/memlock.h"
#include "dtensor.h"

#include <stdbool.h>
#include <string.h>

static const char *devices_worth(const struct dtn_gid *gid, bool ethernet)
{
    static const char *const words[] = {
        [DTN_GID_NONE] = "empty", [DTN_GID_OLD] = "RoCE v1",
        [DTN_GID_LINK_LOCAL] = "link-local", [DTN_GID_ROUTABLE] = "routable"
    };

    return words[dtn_gid_worth(gid, ethernet)];
}

static void devices_port(const struct dtn_port *port,
                         const struct dtn_device_choice *choice, FILE *out)
{
    char text[64];

    fprintf(out, "%s:%d  %s  %s  %s  %s  mtu %d of %d", port->device,
            port->port, dtn_port_state_name(port->state),
            dtn_port_physical_name(port->physical),
            port->ethernet ? "RoCE" : "IB",
            dtn_rate_text(port->rate_mbps, text, sizeof text), port->mtu,
            port->max_mtu);
    if (port->lid)
        fprintf(out, "  lid %d", port->lid);
    fprintf(out, "%s%s  %d queue pairs%s\n", port->netdev[0] ? "  " : "",
            port->netdev, port->max_qp,
            port == choice->port ? "  <- rc uses this" : "");
    for (int i = 0; i < port->ngids; i++)
        fprintf(out, "    GID %d  %s  %s  %s%s\n", port->gid[i].index,
                dtn_gid_type_name(port->gid[i].type),
                dtn_gid_text(port->gid[i].raw, text, sizeof text),
                devices_worth(&port->gid[i], port->ethernet),
                &port->gid[i] == choice->gid ? "  <- and this" : "");
}

int dtensor_devices_show(FILE *stream, struct dtensor_error *err)
{
    const struct dtn_device_want any = { .gid_index = -1, .pkey = -1 };
    struct dtn_device_choice choice = { .port = NULL };
    struct dtensor_error why = { 0 };
    struct dtn_devices devices;
    char text[32];
    int rc = dtn_devices_look(&devices, err);

    if (rc != 0)
        return rc;
    dtn_device_choose(&devices, &any, &choice, &why);
    for (int i = 0; i < devices.nports; i++)
        devices_port(&devices.port[i], &choice, stream);
    if (!choice.port)
        fprintf(stream, "%s\n", why.text);
    fprintf(stream, "memory that may be locked: %s\n",
            dtn_memlock_text(dtn_memlock_bytes(), text, sizeof text));
    dtn_devices_fini(&devices);
    return 0;
}
