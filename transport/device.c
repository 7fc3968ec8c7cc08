/* device.c - RDMA devices: which port, GID and partition to use, and why
 *
 * The cluster file can name the devices and ports of each rank, such as `hca =
 * mlx5_0:1+mlx5_1:1`, a GID index and a partition key.  Otherwise the first
 * active port with an address is taken and, on RoCE, the first GID that a
 * router would forward.  On a port of a lab machine:
 *
 *     0  v1  fe80::1          link-local
 *     1  v2  fe80::1          link-local
 *     2  v1  10.1.0.7
 *     3  v2  10.1.0.7         <- this one
 *
 * The choice and its reason are always logged.  What the file names and the
 * machine lacks is an error that lists what there is.
 */
#include "base/compiler.h"
#include "base/error.h"
#include "base/words.h"
#include "transport/device.h"
#include "transport/gid.h"
#include "dtensor.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PORT_ACTIVE = 4, PKEY_FULL = 0x8000, PKEY_DEFAULT = 0xffff };

/* ------------------------------------------------------------- words --- */

const char *dtn_port_state_name(int state)
{
    static const char *const names[] = {
        "NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "DEFER"
    };

    return state >= 0 && state < (int)DTN_COUNT(names) ? names[state] : "?";
}

const char *dtn_port_physical_name(int physical)
{
    static const char *const names[] = {
        "NoChange", "Sleep", "Polling", "Disabled", "Training", "LinkUp",
        "Recovery", "PhyTest"
    };

    return physical >= 0 && physical < (int)DTN_COUNT(names)
        ? names[physical] : "?";
}

int dtn_rate_mbps(unsigned speed, unsigned width)
{
    static const struct { unsigned code; int mbps; } speeds[] = {
        { 1, 2500 }, { 2, 5000 }, { 4, 10000 }, { 8, 10000 }, { 16, 14000 },
        { 32, 25000 }, { 64, 50000 }, { 128, 100000 }, { 256, 200000 }
    };
    static const struct { unsigned code; int lanes; } widths[] = {
        { 1, 1 }, { 2, 4 }, { 4, 8 }, { 8, 12 }, { 16, 2 }
    };
    int mbps = 0, lanes = 0;

    for (size_t i = 0; i < DTN_COUNT(speeds); i++)
        if (speeds[i].code == speed)
            mbps = speeds[i].mbps;
    for (size_t i = 0; i < DTN_COUNT(widths); i++)
        if (widths[i].code == width)
            lanes = widths[i].lanes;
    return mbps * lanes;
}

char *dtn_rate_text(int mbps, char *buf, size_t size)
{
    if (mbps <= 0)
        snprintf(buf, size, "-");
    else
        snprintf(buf, size, mbps % 1000 ? "%.1f Gb/s" : "%.0f Gb/s",
                 mbps / 1e3);
    return buf;
}

/* "mlx5_0, mlx5_1, ..." */
static char *device_names(const struct dtn_devices *devices, char *buf,
                          size_t size)
{
    size_t used = 0;

    buf[0] = '\0';
    for (int i = 0; i < devices->ndevices && used + 5 < size; i++)
        used += (size_t)snprintf(buf + used, size - used, "%s%s",
                                 i ? ", " : "", devices->device[i].name);
    if (used >= size)
        memcpy(buf + size - 4, "...", 4);
    return buf;
}

/* What to do about a port in that state. */
static char *port_remedy(const struct dtn_port *port, char *buf, size_t size)
{
    if (port->state == 2 || port->state == 3)
        snprintf(buf, size, "no subnet manager has set it up: is opensm "
                 "running? see ibstat");
    else if (port->ethernet && port->netdev[0])
        snprintf(buf, size, "is the cable in, and the interface up? ip link "
                 "set dev %s up", port->netdev);
    else
        snprintf(buf, size, "is the cable in, and the interface up? see rdma "
                 "link");
    return buf;
}

/* ----------------------------------------------------------- devices --- */

static bool port_active(const struct dtn_port *port)
{
    return port->state == PORT_ACTIVE;
}

/* Can it be reached at all? */
static bool port_addressed(const struct dtn_port *port)
{
    return port->ethernet ? port->ngids > 0 : port->lid > 0;
}

int dtn_rails_count(const char *devices)
{
    int n = 1;

    for (; devices && *devices; devices++)
        n += *devices == '+';
    return n;
}

const char *dtn_rails_name(const char *devices, int k,
                           char name[DTN_DEVICE_NAME])
{
    if (!devices)
        return NULL;
    for (; k > 0; k--)
        devices += strcspn(devices, "+") + 1;
    snprintf(name, DTN_DEVICE_NAME, "%.*s", (int)strcspn(devices, "+"),
             devices);
    return name;
}

/* Split "mlx5_0:1" into name and port; the port is 0 if it is not there. */
static int want_split(const char *want, char name[DTN_DEVICE_NAME])
{
    const char *colon = strchr(want, ':');

    snprintf(name, DTN_DEVICE_NAME, "%.*s",
             colon ? (int)(colon - want) : (int)strlen(want), want);
    return colon ? atoi(colon + 1) : 0;
}

static int device_unknown(const struct dtn_devices *devices, const char *name,
                          struct dtensor_error *err)
{
    const char *known[65] = { NULL }, *near;
    char names[160], hint[DTN_DEVICE_NAME + 24] = "";

    for (int i = 0; i < devices->ndevices && i < 64; i++)
        known[i] = devices->device[i].name;
    near = dtn_nearest(name, known);
    if (near)
        snprintf(hint, sizeof hint, "; did you mean %s?", near);
    return dtn_fail(err, DTENSOR_ENODEV, "verbs: no RDMA device %s here%s (the "
                    "cluster file's hca names it; here: %s)", name, hint,
                    device_names(devices, names, sizeof names));
}

/* Does this errno say that the process lacks something, not the device? */
static bool errno_of_process(int sys_errno)
{
    return sys_errno == ENOMEM || sys_errno == EMFILE || sys_errno == ENFILE;
}

static int device_unopened(const struct dtn_device_name *device,
                           struct dtensor_error *err)
{
    if (device->error == EPROTONOSUPPORT)
        return dtn_fail(err, DTENSOR_ENODEV, "verbs: %s has neither InfiniBand "
                        "nor RoCE (name another device in hca, or set "
                        "[transport] inter_node = tcp, or auto)", device->name);
    return dtn_fail_sys(err, device->error, "verbs: cannot open %s: %m (%s)",
                        device->name, errno_of_process(device->error)
                        ? "see ulimit -n, ulimit -v and free -h"
                        : "may this user read and write /dev/infiniband/"
                          "uverbs*? a container needs them passed in");
}

/* The first device, of those up to that of `port`, for which the process lacked
 * memory or descriptors.  A rank that takes the next one instead may be on
 * another network than its peers.
 */
static const struct dtn_device_name *
device_unseen(const struct dtn_devices *devices, const struct dtn_port *port)
{
    for (int i = 0; i < devices->ndevices; i++) {
        if (errno_of_process(devices->device[i].error))
            return &devices->device[i];
        if (port && strcmp(devices->device[i].name, port->device) == 0)
            break;
    }
    return NULL;
}

/* Word why no port of the device, which is there, can be used. */
static int device_unfit(const struct dtn_devices *devices, const char *name,
                        int number, struct dtensor_error *err)
{
    const struct dtn_port *port = NULL;
    char remedy[96];
    int nports = 0;

    for (int i = 0; i < devices->ndevices; i++)
        if (strcmp(devices->device[i].name, name) == 0
            && devices->device[i].error)
            return device_unopened(&devices->device[i], err);
    for (int i = devices->nports - 1; i >= 0; i--) {
        if (strcmp(devices->port[i].device, name) != 0)
            continue;
        nports = devices->port[i].nports;
        if (number == 0 || devices->port[i].port == number)
            port = &devices->port[i];
    }
    if (!port)
        return dtn_fail(err, DTENSOR_ENODEV, "verbs: no port %s:%d here, %s "
                        "has %d (the cluster file's hca names it; see rdma "
                        "link)", name, number, name, nports);
    if (!port_active(port))
        return dtn_fail(err, DTENSOR_ENODEV, "verbs: %s:%d is %s, its link %s "
                        "(%s)", name, port->port,
                        dtn_port_state_name(port->state),
                        dtn_port_physical_name(port->physical),
                        port_remedy(port, remedy, sizeof remedy));
    return dtn_fail(err, DTENSOR_ENODEV, port->ethernet
                    ? "verbs: %s:%d has no GID at all (give its network "
                      "interface an address)"
                    : "verbs: %s:%d has no LID (is a subnet manager running? "
                      "see ibstat)", name, port->port);
}

/* Word why no port of any device can be used. */
static int device_none(const struct dtn_devices *devices,
                       struct dtensor_error *err)
{
    char list[200] = "";
    size_t used = 0;

    if (!devices->built)
        return dtn_fail(err, DTENSOR_ENODEV, "verbs: this build has no verbs "
                        "(%s; configure with libibverbs, or set [transport] "
                        "inter_node = tcp, or auto)", dtensor_build());
    if (devices->ndevices == 0)
        return dtn_fail(err, DTENSOR_ENODEV, "verbs: this machine has no RDMA "
                        "device (is its driver loaded? see rdma link; or set "
                        "[transport] inter_node = tcp, or auto)");
    if (devices->nports == 0 || devices->ndevices == 1)
        return device_unfit(devices, devices->device[0].name, 0, err);
    for (int i = 0; i < devices->nports && used + 40 < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s:%d %s",
                                 i ? ", " : "", devices->port[i].device,
                                 devices->port[i].port,
                                 port_active(&devices->port[i]) ? "no address"
                                 : dtn_port_state_name(devices->port[i].state));
    return dtn_fail(err, DTENSOR_ENODEV, "verbs: no RDMA port here can be "
                    "used: %s (see rdma link; or set [transport] inter_node = "
                    "tcp, or auto)", list);
}

static int port_choose(const struct dtn_devices *devices, const char *want,
                       struct dtn_device_choice *choice,
                       struct dtensor_error *err)
{
    char name[DTN_DEVICE_NAME] = "";
    int number = want ? want_split(want, name) : 0;
    const struct dtn_device_name *unseen;
    bool known = false;

    for (int i = 0; i < devices->nports && !choice->port; i++) {
        const struct dtn_port *port = &devices->port[i];

        if (want && strcmp(port->device, name) != 0)
            continue;
        if ((number == 0 || port->port == number) && port_active(port)
            && port_addressed(port))
            choice->port = port;
    }
    snprintf(choice->why_port, sizeof choice->why_port, "%s",
             want ? "by the cluster file" : "the first active one");
    unseen = want ? NULL : device_unseen(devices, choice->port);
    if (unseen)
        return device_unopened(unseen, err);
    if (choice->port)
        return 0;
    if (!want || devices->ndevices == 0)
        return device_none(devices, err);
    for (int i = 0; i < devices->ndevices; i++)
        known |= strcmp(devices->device[i].name, name) == 0;
    return known ? device_unfit(devices, name, number, err)
                 : device_unknown(devices, name, err);
}

/* -------------------------------------------------------------- GIDs --- */

/* "0 v1 fe80::1, 1 v2 fe80::1": the rows that are not empty. */
static char *gid_list(const struct dtn_port *port, char *buf, size_t size)
{
    char text[64];
    size_t used = 0;
    int i;

    snprintf(buf, size, "none");
    for (i = 0; i < port->ngids && used + 60 < size; i++)
        used += (size_t)snprintf(buf + used, size - used, "%s%d %s %s",
                                 i ? ", " : "", port->gid[i].index,
                                 dtn_gid_type_name(port->gid[i].type),
                                 dtn_gid_text(port->gid[i].raw, text,
                                              sizeof text));
    if (i < port->ngids)
        snprintf(buf + used, size - used, ", ...");
    return buf;
}

/* The row that the cluster file names. */
static int gid_named(int want, struct dtn_device_choice *choice,
                     struct dtensor_error *err)
{
    const struct dtn_port *port = choice->port;
    char list[240];

    for (int i = 0; i < port->ngids; i++)
        if (port->gid[i].index == want)
            choice->gid = &port->gid[i];
    if (choice->gid)
        return 0;
    if (want >= port->gid_rows)
        return dtn_fail(err, DTENSOR_ENODEV, "verbs: %s:%d has no GID %d, only "
                        "0 to %d (leave gid_index out and the best is taken; "
                        "there are %s)", port->device, port->port, want,
                        port->gid_rows - 1,
                        gid_list(port, list, sizeof list));
    return dtn_fail(err, DTENSOR_ENODEV, "verbs: GID %d of %s:%d is empty "
                    "(leave gid_index out and the best is taken; there are "
                    "%s)", want, port->device, port->port,
                    gid_list(port, list, sizeof list));
}

static int gid_choose(int want, struct dtn_device_choice *choice,
                      struct dtensor_error *err)
{
    static const char *const reasons[] = {
        [DTN_GID_NONE] = "empty",
        [DTN_GID_OLD] = "RoCE v1 only: both ends must share a subnet",
        [DTN_GID_LINK_LOCAL] = "link-local: no router will carry it",
        [DTN_GID_ROUTABLE] = "a routable address"
    };
    const struct dtn_port *port = choice->port;
    enum dtn_gid_worth worth;
    int rc;

    if (!port->ethernet && want < 0 && (!port->needs_gid || port->ngids == 0))
        return 0;                 /* addressed by LID                         */
    if (want < 0)
        choice->gid = dtn_gid_best(port->gid, port->ngids, port->ethernet);
    rc = want < 0 ? 0 : gid_named(want, choice, err);
    if (rc != 0)
        return rc;
    worth = dtn_gid_worth(choice->gid, port->ethernet);
    choice->doubtful = port->ethernet && worth != DTN_GID_ROUTABLE;
    snprintf(choice->why_gid, sizeof choice->why_gid, "%s%s",
             want < 0 ? "" : "by the cluster file, ", reasons[worth]);
    return 0;
}

/* -------------------------------------------------------- partitions --- */

/* Two limited members of a partition cannot talk to each other.  So only keys
 * with the top bit, which means full membership, are usable.
 */
static int pkey_index(const struct dtn_port *port, int want)
{
    int first = -1;

    for (int i = port->npkeys - 1; i >= 0; i--) {
        int key = port->pkey[i];

        if (!(key & PKEY_FULL) || key == PKEY_FULL)
            continue;
        if (want > 0 ? (want | PKEY_FULL) == key : key == PKEY_DEFAULT)
            return i;
        first = i;
    }
    return want > 0 ? -1 : port->npkeys ? first : 0;
}

static int pkey_choose(int want, struct dtn_device_choice *choice,
                       struct dtensor_error *err)
{
    const struct dtn_port *port = choice->port;
    char list[120] = "none";
    size_t used = 0;

    choice->pkey_index = pkey_index(port, want);
    if (choice->pkey_index >= 0)
        return 0;
    for (int i = 0; i < port->npkeys && used + 12 < sizeof list; i++)
        if (port->pkey[i] & ~PKEY_FULL)
            used += (size_t)snprintf(list + used, sizeof list - used,
                                     "%s0x%04x", used ? ", " : "",
                                     port->pkey[i]);
    if (want > 0)
        return dtn_fail(err, DTENSOR_ENODEV, "verbs: %s:%d is no full member "
                        "of partition 0x%04x, its keys are %s (see [transport] "
                        "pkey, and the partitions of the subnet manager)",
                        port->device, port->port, want, list);
    return dtn_fail(err, DTENSOR_ENODEV, "verbs: %s:%d is a full member of no "
                    "partition, its keys are %s (limited members cannot talk "
                    "to each other: see the partitions of the subnet manager)",
                    port->device, port->port, list);
}

int dtn_device_choose(const struct dtn_devices *devices,
                      const struct dtn_device_want *want,
                      struct dtn_device_choice *choice,
                      struct dtensor_error *err)
{
    struct dtn_device_choice made = { .port = NULL };
    int rc = port_choose(devices, want->device, &made, err);

    if (rc == 0)
        rc = gid_choose(want->gid_index, &made, err);
    if (rc == 0)
        rc = pkey_choose(want->pkey, &made, err);
    if (rc == 0)
        *choice = made;
    return rc;
}

const struct dtn_port *dtn_device_meant(const struct dtn_devices *devices,
                                        const struct dtn_device_want *want)
{
    char name[DTN_DEVICE_NAME] = "";
    int number = want->device ? want_split(want->device, name) : 0;

    for (int i = 0; i < devices->nports; i++)
        if ((!want->device || strcmp(devices->port[i].device, name) == 0)
            && (number == 0 || devices->port[i].port == number))
            return &devices->port[i];
    return NULL;
}
