/* gpu_words.c - a rank's GPU, and what prevents RDMA to it, as sentences
 *
 * A pure function of the report.  Each sentence has the finding and the remedy.
 */
#include "base/compiler.h"
#include "base/units.h"
#include "cluster/cluster.h"
#include "device/cuda/types.h"
#include "fabric/gpu.h"

#include <stdarg.h>
#include <string.h>

/* The oldest versions that register memory of a GPU by dma-buf. */
enum { KERNEL_DMABUF = 5012 };

/* Append to a text, separated by a semicolon. */
static void text_add(char text[DTN_GPU_WORDS], const char *fmt, ...)
    DTN_PRINTF(2, 3);
static void text_add(char text[DTN_GPU_WORDS], const char *fmt, ...)
{
    size_t n = strlen(text);
    va_list ap;

    if (n > 0 && n + 2 < DTN_GPU_WORDS) {
        memcpy(text + n, "; ", 3);
        n += 2;
    }
    va_start(ap, fmt);
    vsnprintf(text + n, DTN_GPU_WORDS - n, fmt, ap);
    va_end(ap);
}

/* Is there a card that could reach the GPU? */
static bool has_card(const struct dtn_gpu_report *r)
{
    return r->code == 0 && r->nic[0];
}

static void say_gpu(const struct dtn_gpu_report *r, char text[DTN_GPU_WORDS])
{
    char size[32];

    if (r->code != 0)
        text_add(text, "%s", r->why);
    else
        text_add(text, "GPU %d is %s at %s with %s, driver of CUDA %d.%d",
                 r->number, r->name, r->bus,
                 dtn_format_size(r->memory, size, sizeof size),
                 r->version / 1000, r->version % 1000 / 10);
}

/* What is missing for dma-buf, and what gives it. */
static void dmabuf_lacks(const struct dtn_gpu_report *r,
                         char text[DTN_GPU_WORDS])
{
    if (r->kernel < KERNEL_DMABUF)
        text_add(text, "Linux %d.%d has no dma-buf registration (it came with "
                 "5.12)", r->kernel / 1000, r->kernel % 1000);
    if (!r->rdma_core)
        text_add(text, "libibverbs has no ibv_reg_dmabuf_mr (it came with "
                 "rdma-core 34)");
    if (r->version < 11070)
        text_add(text, "the driver is of CUDA %d.%d (export came with 11.7)",
                 r->version / 1000, r->version % 1000 / 10);
    else if (!r->dmabuf)
        text_add(text, "the driver does not export memory%s",
                 r->modules == DTN_MODULES_CLOSED
                 ? ", because its kernel modules are the closed ones (install "
                   "the open ones)" : " (see the log of its kernel modules)");
}

static void say_register(const struct dtn_gpu_report *r,
                         char text[DTN_GPU_WORDS])
{
    char lacks[DTN_GPU_WORDS] = "";

    if (!has_card(r))
        return;
    dmabuf_lacks(r, lacks);
    if (!lacks[0])
        text_add(text, "RDMA cards can register its memory by dma-buf; "
                 "nvidia_peermem is not needed");
    else if (r->peermem)
        text_add(text, "RDMA cards can register its memory by nvidia_peermem; "
                 "not by dma-buf: %s", lacks);
    else
        text_add(text, "RDMA cards cannot register its memory: %s; "
                 "nvidia_peermem is not loaded (modprobe nvidia-peermem, if "
                 "dma-buf cannot be had)", lacks);
}

static void say_bar1(const struct dtn_gpu_report *r, char text[DTN_GPU_WORDS])
{
    char bar[32], size[32];

    if (has_card(r) && r->bar1 > 0 && r->bar1 < r->memory)
        text_add(text, "BAR1 has %s of its %s: no more can be registered (see "
                 "nvidia-smi -q, and Resizable BAR in the firmware)",
                 dtn_format_size(r->bar1, bar, sizeof bar),
                 dtn_format_size(r->memory, size, sizeof size));
}

static void say_path(const struct dtn_gpu_report *r, char text[DTN_GPU_WORDS])
{
    if (!has_card(r) || r->path == DTN_PCI_UNKNOWN)
        return;
    text_add(text, "between it and %s: %s", r->nic,
             dtn_pci_path_name((enum dtn_pci_path)r->path));
    if (r->nearer[0])
        text_add(text, "%s is nearer: %s (see hca and gpus)", r->nearer,
                 dtn_pci_path_name((enum dtn_pci_path)r->nearer_path));
}

static void say_acs(const struct dtn_gpu_report *r, char text[DTN_GPU_WORDS])
{
    if (!has_card(r) || (r->path != DTN_PCI_PIX && r->path != DTN_PCI_PXB))
        return;
    if (r->acs == DTN_ACS_REDIRECTS)
        text_add(text, "ACS of bridge %s sends what the two exchange through "
                 "the CPU: slow, or error 4 or 12 of a queue pair (switch ACS "
                 "off in the firmware, or by setpci)", r->bridge);
    else if (r->acs == DTN_ACS_UNKNOWN)
        text_add(text, "only root can see whether ACS is in the way (lspci "
                 "-vvv | grep ACSCtl)");
}

static void say_iommu(const struct dtn_gpu_report *r, char text[DTN_GPU_WORDS])
{
    if (has_card(r) && r->iommu)
        text_add(text, "the IOMMU translates its addresses: RDMA may fail or "
                 "be slow (boot with iommu=pt)");
}

static void say_flush(const struct dtn_gpu_report *r, char text[DTN_GPU_WORDS])
{
    if (has_card(r)
        && r->ordering < CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER)
        text_add(text, "writes of RDMA cards are seen by kernels only after a "
                 "READ (ordering attribute %d)", r->ordering);
}

/* Why peers over this wire do not reach its memory in place; "": they do. */
static void way_lacks(const struct dtn_gpu_report *r, enum dtn_wire wire,
                      char text[DTN_GPU_WORDS])
{
    char lacks[DTN_GPU_WORDS] = "";

    dmabuf_lacks(r, lacks);
    if (wire == DTN_WIRE_TCP)
        text_add(text, "tcp reaches host memory only (see [transport])");
    else if (wire != DTN_WIRE_SHM && !r->nic[0])
        text_add(text, "this rank has no RDMA card");
    else if (wire != DTN_WIRE_SHM && lacks[0] && !r->peermem)
        text_add(text, "RDMA cards cannot register its memory");
    else if (wire == DTN_WIRE_SHM && !r->shares)
        text_add(text, "its driver does not share memory between processes");
    else if (wire == DTN_WIRE_SHM && r->scope > 0)
        text_add(text, "kernel.yama.ptrace_scope = %d forbids peers to take "
                 "the files of its memory (set it to 0)", r->scope);
    else if (wire == DTN_WIRE_SHM && r->unmapped)
        text_add(text, "rank %d could not map or export memory (see its line)",
                 r->unmapped - 1);
}

/* How peers reach it in place over this wire. */
static void way_good(const struct dtn_gpu_report *r, enum dtn_wire wire,
                     char text[DTN_GPU_WORDS])
{
    char lacks[DTN_GPU_WORDS] = "";

    dmabuf_lacks(r, lacks);
    text_add(text, "in place, %s", wire == DTN_WIRE_SHM ? "mapped by them"
             : lacks[0] ? "by nvidia_peermem" : "by dma-buf");
}

/* The same on a machine without a GPU, where nobody can be asked. */
static const char *way_possible(enum dtn_wire wire)
{
    return wire == DTN_WIRE_SHM ? "in place where they can map it"
         : wire == DTN_WIRE_TCP ? "staged in host memory, since tcp reaches "
                                  "host memory only (see [transport])"
         : "in place where the card can register it (see dtensor-conf "
           "--fabric)";
}

static void say_way(const struct dtn_gpu_report *r, const char *who, int wire,
                    char text[DTN_GPU_WORDS])
{
    static const char *const names[] = { "shm", "tcp", "rc",
                                         "rc (auto, else tcp)" };
    char lacks[DTN_GPU_WORDS] = "", good[DTN_GPU_WORDS] = "";
    const enum dtn_wire w = (enum dtn_wire)(wire - 1);

    if (wire == 0)
        return;
    if (r->code == 0)
        way_lacks(r, w, lacks);
    if (r->code == 0 && !lacks[0])
        way_good(r, w, good);
    text_add(text, "%s, over %s: %s%s%s", who, names[w], r->code != 0
             ? way_possible(w) : lacks[0]
             ? "staged in host memory, since " : good, lacks,
             lacks[0] && r->required ? ", and [device] direct = required makes "
                                       "that an error" : "");
}

/* How its memory reaches the peers, and why not better. */
static void say_ways(const struct dtn_gpu_report *r, char text[DTN_GPU_WORDS])
{
    say_way(r, "its memory to ranks of this host", r->inside, text);
    say_way(r, "its memory to other hosts", r->between, text);
}

/* What it met when it tried to share memory with a peer. */
static void say_trial(const struct dtn_gpu_report *r, char text[DTN_GPU_WORDS])
{
    if (r->code == 0 && r->why[0])
        text_add(text, "%s", r->why);
}

typedef void say_f(const struct dtn_gpu_report *report,
                   char text[DTN_GPU_WORDS]);

static bool say_one(say_f *const say[], size_t n, int which,
                    const struct dtn_gpu_report *report,
                    char text[DTN_GPU_WORDS])
{
    text[0] = '\0';
    if (which >= 0 && (size_t)which < n)
        say[which](report, text);
    return text[0] != '\0';
}

bool dtn_gpu_sentence(const struct dtn_gpu_report *report, int which,
                      char text[DTN_GPU_WORDS])
{
    static say_f *const say[] = { say_gpu, say_register, say_bar1, say_path,
                                  say_acs, say_iommu, say_flush, say_ways,
                                  say_trial };

    return say_one(say, report->code == 0 ? DTN_COUNT(say) : 1, which, report,
                   text);
}

bool dtn_gpu_path(const struct dtn_gpu_report *report, int which,
                  char text[DTN_GPU_WORDS])
{
    static say_f *const say[DTN_GPU_PATH_SENTENCES] = { say_gpu, say_ways,
                                                        say_register };

    return say_one(say, DTN_COUNT(say), which, report, text);
}
