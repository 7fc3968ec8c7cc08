/* test_gpu.c - what dtensor-conf --fabric says of GPUs
 *
 * The bus and the kernel modules are those of a folder that looks like /sys and
 * /proc; the driver is the stand-in.
 *
 * Without this test, a machine where GPUs and RDMA cards do not go together
 * would be slow or fail with an error number, and no line would say why.
 */
#include "cluster/cluster.h"
#include "fabric/gpu.h"
#include "dtensor.h"
#include "tests/support/standin.h"
#include "tests/support/tap.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUS "/sys/devices/pci0000:17/0000:17:01.0/0000:18:00.0"
#define GPU BUS "/0000:19:00.0/0000:1a:00.0"

static char root[] = "/tmp/dtn-gpu-XXXXXX";

/* --------------------------------------------------------- a false machine */

/* Make the folder of a file, and write the file. */
static void put(const char *name, const void *bytes, size_t size)
{
    char path[PATH_MAX];
    FILE *file;

    snprintf(path, sizeof path, "%s%s", root, name);
    for (char *p = path + sizeof root; (p = strchr(p, '/')) != NULL; p++) {
        *p = '\0';
        mkdir(path, 0755);
        *p = '/';
    }
    file = fopen(path, "w");
    if (!file || fwrite(bytes, 1, size, file) != size) {
        perror(path);
        exit(1);
    }
    fclose(file);
}

static void put_text(const char *name, const char *text)
{
    put(name, text, strlen(text));
}

static void put_link(const char *name, const char *to)
{
    char path[PATH_MAX], target[PATH_MAX];

    snprintf(path, sizeof path, "%s%s", root, name);
    snprintf(target, sizeof target, "%s%s", root, to);
    unlink(path);
    if (symlink(target, path) < 0)
        perror(path);
}

/* A card, and a link to it as /sys/class/infiniband has it. */
static void put_card(const char *name, const char *folder, const char *node)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/numa_node", folder);
    put_text(path, node);
    snprintf(path, sizeof path, "/sys/class/infiniband/%s/ports", name);
    put_text(path, "");
    snprintf(path, sizeof path, "/sys/class/infiniband/%s/device", name);
    put_link(path, folder);
}

/* Configuration space of a bridge, with these bits of its ACS control. */
static void put_bridge(const char *folder, unsigned char control)
{
    unsigned char config[4096] = { 0 };
    char path[PATH_MAX];

    config[0x100] = 0x01;                     /* error reporting, then ...    */
    config[0x102] = 0x01;
    config[0x103] = 0x20;                     /* ... at 0x200:                */
    config[0x200] = 0x0d;                     /* access control               */
    config[0x206] = control;
    snprintf(path, sizeof path, "%s/config", folder);
    put(path, config, sizeof config);
}

static void machine_make(void)
{
    put_text(GPU "/numa_node", "0\n");
    put_text(GPU "/resource",
             "0x00000000a0000000 0x00000000a0ffffff 0x0000000000040200\n"
             "0x0000200000000000 0x000020000fffffff 0x000000000014220c\n");
    put_text(GPU "/iommu_group/type", "DMA-FQ\n");
    put_text("/sys/bus/pci/devices/README", "");
    put_link("/sys/bus/pci/devices/0000:1a:00.0", GPU);
    put_bridge("/sys/devices/pci0000:17/0000:17:01.0", 0);
    put_bridge(BUS, 0);
    put_bridge(BUS "/0000:19:00.0", 0);
    put_bridge(BUS "/0000:19:01.0", 0);
    put_card("near", BUS "/0000:19:01.0/0000:1b:00.0", "0\n");
    put_card("host", "/sys/devices/pci0000:17/0000:17:02.0/0000:20:00.0",
             "0\n");
    put_card("node", "/sys/devices/pci0000:30/0000:30:01.0/0000:31:00.0",
             "0\n");
    put_card("far", "/sys/devices/pci0000:80/0000:80:01.0/0000:81:00.0",
             "1\n");
    put_text("/proc/driver/nvidia/version",
             "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.1  x\n");
}

static void machine_remove(void)
{
    char command[PATH_MAX];

    snprintf(command, sizeof command, "rm -r %s", root);
    if (system(command) != 0)
        note("%s could not be removed", root);
}

/* -------------------------------------------------------------------- words */

/* All sentences on a GPU, a line each.  Good until the next call. */
static const char *words(const struct dtn_gpu_report *report)
{
    static char all[DTN_GPU_SENTENCES * (DTN_GPU_WORDS + 1)];
    char text[DTN_GPU_WORDS];
    size_t n = 0;

    all[0] = '\0';
    for (int i = 0; i < DTN_GPU_SENTENCES; i++)
        if (dtn_gpu_sentence(report, i, text))
            n += (size_t)snprintf(all + n, sizeof all - n, "%s\n", text);
    return all;
}

static void says(const char *claim, const struct dtn_gpu_report *report,
                 const char *expected)
{
    const char *text = words(report);

    ok(strstr(text, expected), "%s", claim);
    if (!strstr(text, expected))
        note("expected: %s\n# said: %s", expected, text);
}

static void silent(const char *claim, const struct dtn_gpu_report *report,
                   const char *unexpected)
{
    const char *text = words(report);

    ok(!strstr(text, unexpected), "%s", claim);
    if (strstr(text, unexpected))
        note("said: %s", text);
}

static struct dtn_gpu_report seen(const char *nic)
{
    const struct dtn_gpu_want want = { .number = -1, .local_rank = 2,
                                       .nic = nic, .root = root };
    struct dtn_gpu_report report;

    dtn_gpu_look(&want, &report);
    return report;
}

/* -------------------------------------------------------------------- tests */

static void test_paths(void)
{
    static const struct {
        const char *nic;
        const char *path;
    } cases[] = {
        { "near", "between it and near: PIX\n" },
        { "host", "between it and host: PHB; near is nearer: PIX (see hca" },
        { "node", "between it and node: NODE; near is nearer: PIX (see hca" },
        { "far:1", "between it and far: SYS; near is nearer: PIX (see hca" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dtn_gpu_report report = seen(cases[i].nic);
        char claim[64];

        snprintf(claim, sizeof claim, "the way to %s", cases[i].nic);
        says(claim, &report, cases[i].path);
    }
}

static void test_bus(void)
{
    struct dtn_gpu_report report = seen("near");

    says("the GPU, its memory and driver", &report, "GPU 0 is Stand-in 0 at "
         "0000:1a:00.0 with 16.0 GiB, driver of CUDA 13.0\n");
    says("BAR1 is smaller than the memory", &report, "BAR1 has 256.0 MiB of its "
         "16.0 GiB: no more can be registered (see nvidia-smi -q");
    says("the IOMMU translates", &report, "(boot with iommu=pt)");
    silent("bridges without redirection are fine", &report, "ACS");
    put_bridge(BUS "/0000:19:01.0", 0x1d);
    report = seen("near");
    says("a bridge that redirects is named", &report,
         "ACS of bridge 0000:19:01.0 sends what the two exchange through the "
         "CPU");
    put_text(BUS "/0000:19:01.0/config", "as a user sees it: 64 bytes");
    report = seen("near");
    says("a user is told what root can see", &report, "only root can see "
         "whether ACS is in the way (lspci -vvv | grep ACSCtl)");
    report = seen("host");
    silent("which is no matter between two root ports", &report, "ACS");
    put_text(GPU "/iommu_group/type", "identity\n");
    report = seen("near");
    silent("an IOMMU that passes through is fine", &report, "IOMMU");
    report = seen("");
    silent("without a card only the GPU is told", &report, "\n\n");
    ok(strchr(words(&report), '\n')[1] == '\0', "... in one line");
}

/* All that registration takes is there, but for what `take` takes away. */
static struct dtn_gpu_report good(void)
{
    struct dtn_gpu_report report = {
        .version = 13000, .dmabuf = 1, .rdma = 1, .ordering = 100,
        .modules = DTN_MODULES_OPEN, .kernel = 6012, .rdma_core = 1,
        .memory = 1 << 30, .nic = "mlx5_0", .name = "GPU", .bus = "0"
    };

    return report;
}

static void test_registration(void)
{
    struct dtn_gpu_report report = good();

    says("memory can be registered by dma-buf", &report, "RDMA cards can "
         "register its memory by dma-buf; nvidia_peermem is not needed");
    report.kernel = 5010;
    says("... not with an old kernel", &report, "RDMA cards cannot register its "
         "memory: Linux 5.10 has no dma-buf registration (it came with 5.12); "
         "nvidia_peermem is not loaded (modprobe nvidia-peermem, if");
    report.peermem = 1;
    says("... but then by nvidia_peermem", &report, "can register its memory by "
         "nvidia_peermem; not by dma-buf: Linux 5.10");
    report = good();
    report.rdma_core = 0;
    says("... not with an old libibverbs", &report, "ibv_reg_dmabuf_mr (it came "
         "with rdma-core 34)");
    report = good();
    report.version = 11040;
    report.dmabuf = 0;
    says("... not with an old driver", &report, "the driver is of CUDA 11.4 "
         "(export came with 11.7)");
    report.version = 12000;
    report.modules = DTN_MODULES_CLOSED;
    says("... nor with closed kernel modules", &report, "its kernel modules are "
         "the closed ones (install the open ones)");
    report = good();
    silent("ordered writes need no words", &report, "READ");
    report.ordering = 0;
    says("writes that are not ordered do", &report, "seen by kernels only after "
         "a READ (ordering attribute 0)");
}

/* Which path its memory takes, and why not the better one. */
static void test_ways(void)
{
    struct dtn_gpu_report report = good();

    silent("a rank alone has no way to peers", &report, "its memory to");
    report.inside = DTN_WIRE_SHM + 1;
    report.between = DTN_WIRE_RC + 1;
    report.shares = 1;
    says("both ways in place", &report, "its memory to ranks of this host, "
         "over shm: in place, mapped by them; its memory to other hosts, over "
         "rc: in place, by dma-buf\n");
    report.scope = 1;
    says("Yama forbids to take a peer's files", &report, "this host, over shm: "
         "staged in host memory, since kernel.yama.ptrace_scope = 1 forbids "
         "peers to take the files of its memory (set it to 0); its memory to "
         "other hosts, over rc: in place, by dma-buf\n");
    report.shares = 0;
    says("a driver that shares nothing", &report, "staged in host memory, "
         "since its driver does not share memory between processes");
    report.kernel = 5010;
    report.required = 1;
    says("cards that cannot register it", &report, "to other hosts, over rc: "
         "staged in host memory, since RDMA cards cannot register its memory, "
         "and [device] direct = required makes that an error\n");
    report.peermem = 1;
    says("... but by nvidia_peermem", &report, "over rc: in place, by nvidia_peermem\n");
    report.nic[0] = '\0';
    says("a rank without a card", &report, "over rc: staged in host memory, "
         "since this rank has no RDMA card");
    report.between = DTN_WIRE_TCP + 1;
    says("tcp", &report, "over tcp: staged in host memory, since tcp reaches "
         "host memory only (see [transport])");
    report.code = DTENSOR_ENODEV;
    silent("without a GPU there is no way", &report, "its memory to");
}

static void test_looking(void)
{
    struct dtn_gpu_report report;
    const struct dtn_gpu_want none = { .number = 3, .nic = "", .root = root };

    report = seen("near");
    says("closed modules are recognised", &report, "closed ones");
    put_text("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open "
             "Kernel Module for x86_64  580.1\n");
    put_text("/sys/module/nvidia_peermem/version", "580.1\n");
    report = seen("near");
    ok(report.shares == 1 && report.scope == 0, "so is a driver that shares "
       "memory, and a kernel that lets peers take it");
    put_text("/proc/sys/kernel/yama/ptrace_scope", "3\n");
    report = seen("near");
    ok(report.scope == 3, "so is a kernel that lets nobody, not even root");
    ok(report.modules == DTN_MODULES_OPEN && report.peermem == 1,
       "so are open ones, and nvidia_peermem");
    dtn_gpu_look(&none, &report);
    says("a device that does not exist is ENODEV", &report, "GPU 3 of 1: "
         "cuDeviceGet: CUDA_ERROR_INVALID_DEVICE (CUDA_ERROR_INVALID_DEVICE)");
    ok(report.code == DTENSOR_ENODEV, "... and a code");
}

/* What the table says of some ranks. */
static const char *table(const struct dtn_gpu_report reports[], int n)
{
    static char text[4096];
    FILE *file;

    text[0] = '\0';
    file = fmemopen(text, sizeof text, "w");
    dtn_gpu_table_write(reports, n, file);
    fclose(file);
    return text;
}

static void test_table(void)
{
    struct dtn_gpu_report reports[4] = { good(), good(), good(), good() };
    const char *text;

    for (int i = 0; i < 4; i++) {
        snprintf(reports[i].boot, sizeof reports[i].boot, "%d", i / 3);
        reports[i].uuid[0] = (char)(i == 1);
    }
    text = table(reports, 4);
    ok(strstr(text, "ranks 0-3: GPU 0 is GPU"), "ranks share a line");
    ok(strstr(text, "ranks 0,2: they share one GPU") && !strstr(text, "ranks 1")
       && !strstr(text, "3: they"), "two ranks of a host that share a GPU");
    reports[2].pid_namespace = 7;
    text = table(reports, 4);
    ok(strstr(text, "rank 2: on the machine of lower ranks, but in another PID "
              "namespace"), "a rank in another PID namespace");
    for (int i = 0; i < 4; i++) {
        reports[i].code = DTENSOR_ENODEV;
        snprintf(reports[i].why, sizeof reports[i].why, "no driver");
    }
    ok(table(reports, 4)[0] == '\0', "no GPUs that nobody asked for: "
       "nothing is said");
    reports[1].wanted = reports[3].wanted = 1;
    ok(strcmp(table(reports, 4), "ranks 1,3: no driver\n") == 0,
       "if the file asks for them, why there are none");
}

int main(void)
{
    const char *why = standin_use();

    if (why || !standin_used())
        return skip_all(why ? why : "this is not for a real driver");
    if (!mkdtemp(root))
        return skip_all("mkdtemp");
    machine_make();
    test_paths();
    test_bus();
    test_registration();
    test_ways();
    test_looking();
    test_table();
    machine_remove();
    return done();
}
