/* gpu_pci.c - a GPU and an RDMA card on the PCI bus
 *
 * /sys/bus/pci/devices/0000:1a:00.0 is a link to a folder whose path has every
 * bridge from the CPU down to the device:
 *
 *     /sys/devices/pci0000:17/0000:17:01.0/0000:18:00.0/0000:1a:00.0
 *
 * Where the paths of two devices part is the bridge that both are under.
 */
#include "fabric/gpu.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *dtn_pci_path_name(enum dtn_pci_path path)
{
    static const char *const names[] = { "unknown", "PIX", "PXB", "PHB",
                                         "NODE", "SYS" };

    return names[path];
}

/* The folder of a device with all its bridges.  False: there is none. */
static bool folder_of(const char *root, const char *before, const char *name,
                      const char *after, char folder[PATH_MAX])
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s%s%s%s", root, before, name, after);
    return realpath(path, folder) != NULL;
}

/* The first line of a file, without its end.  False: it cannot be read. */
static bool file_line(const char *folder, const char *name, char *line,
                      int size)
{
    char path[PATH_MAX + 64];
    FILE *file;
    bool good;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "re");
    if (!file)
        return false;
    good = fgets(line, size, file) != NULL;
    fclose(file);
    line[good ? strcspn(line, "\n") : 0] = '\0';
    return good;
}

/* Its NUMA node, -1: unknown. */
static int pci_node(const char *folder)
{
    char line[32];

    return file_line(folder, "numa_node", line, sizeof line) ? atoi(line) : -1;
}

/* Bytes that two paths have in common, up to a slash. */
static size_t pci_common(const char *one, const char *other)
{
    size_t same = 0;

    for (size_t i = 0; one[i] && one[i] == other[i]; i++)
        if (one[i] == '/')
            same = i;
    return same;
}

/* How many devices are named in the rest of a path. */
static int pci_levels(const char *path)
{
    int n = 0;

    for (; *path; path++)
        n += *path == '/';
    return n;
}

static enum dtn_pci_path pci_path(const char *gpu, const char *nic)
{
    size_t same = pci_common(gpu, nic);
    const char *above = gpu + same;
    int node = pci_node(gpu), other = pci_node(nic);

    while (above > gpu && above[-1] != '/')
        above--;
    if (strncmp(above, "pci", 3) == 0)          /* pci0000:17, of a CPU       */
        return DTN_PCI_PHB;
    if (strchr(above, ':') && strchr(above, ':') < gpu + same)
        return pci_levels(gpu + same) <= 2 && pci_levels(nic + same) <= 2
            ? DTN_PCI_PIX : DTN_PCI_PXB;
    return node >= 0 && other >= 0 && node != other ? DTN_PCI_SYS
                                                    : DTN_PCI_NODE;
}

/* ----------------------------------------------------------------- cards -- */

static bool nic_folder(const char *root, const char *nic,
                       char folder[PATH_MAX])
{
    return folder_of(root, "/sys/class/infiniband/", nic, "/device", folder);
}

static enum dtn_pci_path nic_path(const char *root, const char *gpu,
                                  const char *nic)
{
    char folder[PATH_MAX];

    return nic_folder(root, nic, folder) ? pci_path(gpu, folder)
                                         : DTN_PCI_UNKNOWN;
}

/* Look for a card that is nearer than the rank's own. */
static void nic_nearer(const char *root, const char *gpu,
                       struct dtn_gpu_report *report)
{
    char path[PATH_MAX];
    struct dirent *entry;
    DIR *dir;

    snprintf(path, sizeof path, "%s/sys/class/infiniband", root);
    dir = opendir(path);
    report->nearer_path = report->path;
    while (dir && (entry = readdir(dir)) != NULL) {
        enum dtn_pci_path way = entry->d_name[0] == '.' ? DTN_PCI_UNKNOWN
            : nic_path(root, gpu, entry->d_name);

        if (way == DTN_PCI_UNKNOWN || (int)way >= report->nearer_path)
            continue;
        report->nearer_path = (int)way;
        snprintf(report->nearer, sizeof report->nearer, "%.63s",
                 entry->d_name);
    }
    if (dir)
        closedir(dir);
}

/* --------------------------------------------------------- bridges, BAR1 -- */

enum { PCI_EXTENDED = 0x100, PCI_CONFIG = 4096, PCI_CAP_ACS = 0x0d,
       PCI_ACS_CONTROL = 6, PCI_ACS_REDIRECT = 0x0c };

/* Access control of one bridge, from its configuration space. */
static enum dtn_pci_acs bridge_acs(const char *folder)
{
    unsigned char config[PCI_CONFIG];
    char path[PATH_MAX + 64];
    size_t n = 0, at = PCI_EXTENDED;
    FILE *file;

    snprintf(path, sizeof path, "%s/config", folder);
    file = fopen(path, "re");
    if (file) {
        n = fread(config, 1, sizeof config, file);
        fclose(file);
    }
    if (n < PCI_CONFIG)
        return DTN_ACS_UNKNOWN;
    while (at >= PCI_EXTENDED && at + 8 <= n) {
        if ((config[at] | config[at + 1] << 8) == PCI_CAP_ACS)
            return config[at + PCI_ACS_CONTROL] & PCI_ACS_REDIRECT
                ? DTN_ACS_REDIRECTS : DTN_ACS_CLEAR;
        at = (size_t)(config[at + 3] << 4 | config[at + 2] >> 4);
    }
    return DTN_ACS_CLEAR;
}

/* Look at every bridge above a device. */
static void bridges_look(const char *device, struct dtn_gpu_report *report)
{
    char folder[PATH_MAX], *slash;

    snprintf(folder, sizeof folder, "%s", device);
    while ((slash = strrchr(folder, '/')) != NULL) {
        enum dtn_pci_acs acs;

        *slash = '\0';
        slash = strrchr(folder, '/');
        if (!slash || strncmp(slash + 1, "pci", 3) == 0
            || !strchr(slash + 1, ':'))
            return;
        acs = bridge_acs(folder);
        if (report->acs == DTN_ACS_REDIRECTS
            || (acs == DTN_ACS_CLEAR && report->acs == DTN_ACS_UNKNOWN))
            acs = (enum dtn_pci_acs)report->acs;
        if (acs == DTN_ACS_REDIRECTS && !report->bridge[0])
            snprintf(report->bridge, sizeof report->bridge, "%.15s",
                     slash + 1);
        report->acs = acs;
    }
}

/* "0x... 0x... 0x...", first and last address and flags, for each of its
 * regions; the second one is BAR1.
 */
static uint64_t bar1_bytes(const char *folder)
{
    char path[PATH_MAX + 64];
    unsigned long long first, last = 0;
    uint64_t bytes = 0;
    FILE *file;

    snprintf(path, sizeof path, "%s/resource", folder);
    file = fopen(path, "re");
    if (!file)
        return 0;
    if (fscanf(file, "%*s %*s %*s %llx %llx", &first, &last) == 2
        && last > first)
        bytes = last - first + 1;
    fclose(file);
    return bytes;
}

void dtn_gpu_pci(const char *root, struct dtn_gpu_report *report)
{
    char gpu[PATH_MAX], nic[PATH_MAX], line[64];

    if (!folder_of(root, "/sys/bus/pci/devices/", report->bus, "", gpu))
        return;
    report->bar1 = bar1_bytes(gpu);
    if (file_line(gpu, "iommu_group/type", line, sizeof line))
        report->iommu = strncmp(line, "DMA", 3) == 0;
    report->acs = DTN_ACS_CLEAR;
    bridges_look(gpu, report);
    report->path = DTN_PCI_UNKNOWN;
    if (!report->nic[0] || !nic_folder(root, report->nic, nic))
        return;
    bridges_look(nic, report);
    report->path = (int)pci_path(gpu, nic);
    nic_nearer(root, gpu, report);
}
