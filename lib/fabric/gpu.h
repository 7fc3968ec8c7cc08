/* gpu.h - reports of ranks on their GPUs; private to lib/fabric
 *
 * gpu_look.c   the report of one rank
 * gpu_pci.c    where GPU and RDMA card are, and what is between them
 * gpu_share.c  whether ranks of a host can map each other's memory
 * gpu_words.c  what is wrong, in words
 * gpu_table.c  prints the words of all ranks
 */
#ifndef DTN_FABRIC_GPU_H
#define DTN_FABRIC_GPU_H

#include "boot/boot.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* What is between two devices, the worst of it, as nvidia-smi topo names it. */
enum dtn_pci_path {
    DTN_PCI_UNKNOWN,
    DTN_PCI_PIX,                  /* one bridge                               */
    DTN_PCI_PXB,                  /* several bridges                          */
    DTN_PCI_PHB,                  /* the host bridge of a CPU                 */
    DTN_PCI_NODE,                 /* several host bridges of a NUMA node      */
    DTN_PCI_SYS                   /* the link between NUMA nodes              */
};

/* Of the kernel modules of the driver. */
enum dtn_gpu_modules {
    DTN_MODULES_UNKNOWN, DTN_MODULES_OPEN, DTN_MODULES_CLOSED
};

/* Access control services of the bridges between the two. */
enum dtn_pci_acs {
    DTN_ACS_UNKNOWN,              /* only root may read them                  */
    DTN_ACS_CLEAR,
    DTN_ACS_REDIRECTS             /* packets take the way through the CPU     */
};

/* A rank's report on its GPU, as it travels in a blob. */
struct dtn_gpu_report {
    int32_t code;                 /* 0: it has one                            */
    int32_t wanted;               /* 1: a mesh of it is on device memory      */
    int32_t number;               /* of the device                            */
    int32_t version;              /* of CUDA, of the driver: 13000 is 13.0    */
    int32_t dmabuf;               /* 1: the driver exports memory             */
    int32_t rdma;                 /* 1: the device can do GPUDirect RDMA      */
    int32_t ordering;             /* CU_GPU_DIRECT_RDMA_WRITES_ORDERING_...   */
    int32_t modules;              /* enum dtn_gpu_modules                     */
    int32_t peermem;              /* 1: nvidia_peermem is loaded              */
    int32_t kernel;               /* version of Linux: 6001 is 6.1            */
    int32_t rdma_core;            /* 1: it has ibv_reg_dmabuf_mr              */
    int32_t path;                 /* enum dtn_pci_path, to `nic`              */
    int32_t nearer_path;          /* the same, to `nearer`                    */
    int32_t acs;                  /* enum dtn_pci_acs                         */
    int32_t iommu;                /* 1: it translates addresses of the GPU    */
    int32_t inside, between;      /* enum dtn_wire plus 1, to ranks of its    */
                                  /* host and of others; 0: there are none    */
    int32_t required;             /* 1: [device] direct = required            */
    int32_t shares;               /* 1: processes can map its memory          */
    int32_t scope;                /* of kernel.yama.ptrace_scope, if this     */
                                  /* process is bound by it, else 0           */
    int32_t unmapped;             /* 1 + a rank of its host that could not    */
                                  /* map a peer's memory; 0: all could        */
    uint64_t memory;              /* bytes                                    */
    uint64_t bar1;                /* bytes that cards can reach; 0: unknown   */
    uint64_t pid_namespace;       /* number; 0: unknown                       */
    char boot[40];                /* the running system of its host, or ""    */
    char uuid[16];                /* of the device                            */
    char name[64];                /* of the device                            */
    char bus[16];                 /* its PCI address, 0000:1a:00.0            */
    char nic[64];                 /* RDMA device of the rank, or ""           */
    char nearer[64];              /* an RDMA device that is nearer, or ""     */
    char bridge[16];              /* PCI address of a bridge that redirects   */
    char why[300];                /* code != 0: what is in the way; else why  */
                                  /* it could not map a peer's memory, or ""  */
};

/* What a rank asks for. */
struct dtn_gpu_want {
    int number;                   /* of the device; -1: local_rank, in turn   */
    int local_rank;               /* of the rank, on its host                 */
    bool wanted;                  /* is a mesh of it on device memory?        */
    const char *nic;              /* its RDMA device, or ""                   */
    int inside, between;          /* as in the report                         */
    bool required;                /* [device] direct = required               */
    const char *root;             /* "", or a copy of /proc and /sys in tests */
};

/* Fill in the report of this rank. */
void dtn_gpu_look(const struct dtn_gpu_want *want,
                  struct dtn_gpu_report *report);

/* The same for the GPU that the cluster file gives this rank, whose RDMA device
 * is `nic`, or "".
 */
void dtn_gpu_mine(const struct dtensor_ctx *ctx, const char *nic,
                  struct dtn_gpu_report *report);

/* What a rank found when it tried to map memory of the next one's GPU. */
struct dtn_gpu_trial {
    int failed;                   /* 1 + a rank of its host that could not    */
    char why[300];                /* of this rank, and what to do; or ""      */
};

/* Try it, where the file has tensors on GPUs that ranks of a host share over
 * shm.  The GPU stays open.
 * Collective.   Errors: those of the bootstrap
 */
int dtn_gpu_try_share(struct dtensor_ctx *ctx, struct dtn_gpu_trial *trial,
                      struct dtensor_error *err);

/* Fill in what /sys under `root` says: path, acs, iommu, bar1 and the like. */
void dtn_gpu_pci(const char *root, struct dtn_gpu_report *report);
const char *dtn_pci_path_name(enum dtn_pci_path path);      /* "PIX"          */

enum { DTN_GPU_WORDS = 500, DTN_GPU_SENTENCES = 9 };

/* Write sentence `which` on a rank's GPU: false, and "", if there is none. */
bool dtn_gpu_sentence(const struct dtn_gpu_report *report, int which,
                      char text[DTN_GPU_WORDS]);

/* Of these the ones on the path of its memory to the peers.  Of a machine
 * without a GPU they say why there is none, and what the wires could do.
 */
enum { DTN_GPU_PATH_SENTENCES = 3 };
bool dtn_gpu_path(const struct dtn_gpu_report *report, int which,
                  char text[DTN_GPU_WORDS]);

/* Print all sentences, each once with the ranks that it is about.  Ranks that
 * neither have a GPU nor want one are left out.
 */
void dtn_gpu_table_write(const struct dtn_gpu_report reports[], int n,
                         FILE *out);

#endif
