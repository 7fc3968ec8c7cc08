/* late_card.c - a card whose writes into a GPU are late, as late as they may be
 *
 * Of a real card nobody sees for how long its writes are on their way to the
 * GPU.  Here they do not arrive before the card reads from the GPU.  What is
 * registered is memory beside the GPU's: peers write there.  A READ of any such
 * region brings what the card of that region has received into the GPU.  Bytes
 * that are sent are copied from the GPU when the request is posted.
 *
 * What has been written is what differs from a pattern; a word of 4 bytes that
 * is equal to it by chance, one in 2^32, would be lost.  So whatever is put
 * begins and ends at a multiple of 4.
 */
#include "tests/rdma/late_card.h"
#include "tests/support/ranks.h"

#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { REGIONS = 64, SGES = 16 };

/* A region of GPU memory, as this card knows it. */
static struct region {
    struct ibv_mr *arriving, *leaving;    /* NULL: this entry is free         */
    uint32_t *landed, *sent;              /* what they are regions of         */
    unsigned char *gpu, *map;             /* the GPU's, as a CPU sees it      */
    size_t length, map_bytes;
    uint64_t iova;                        /* its address on the GPU           */
} regions[REGIONS];

static int (*real_post)(struct ibv_qp *, struct ibv_send_wr *,
                        struct ibv_send_wr **);
unsigned long late_card_flushed;

static const struct ibv_context *cards[REGIONS];
static int ncards, forgotten = -1;

void late_card_forgets(int card)
{
    forgotten = card;
}

static uint32_t pattern(size_t i)
{
    return (uint32_t)i * 0x9E3779B1u ^ 0x5bd1e995u;
}

static size_t words_of(const struct region *r)
{
    return (r->length + 3) / 4;
}

/* The card of this context has read: what it received arrives. */
static void flush(const struct ibv_context *card)
{
    if (forgotten >= 0 && forgotten < ncards && cards[forgotten] == card)
        return;
    for (struct region *r = regions; r < regions + REGIONS; r++) {
        if (!r->arriving || r->arriving->context != card)
            continue;
        for (size_t i = 0; i < words_of(r); i++)
            if (r->landed[i] != pattern(i)) {
                memcpy(r->gpu + 4 * i, &r->landed[i], 4);
                r->landed[i] = pattern(i);
                late_card_flushed++;
            }
    }
}

/* Take the bytes of one part of a request from the GPU. */
static void take(struct ibv_sge *sge)
{
    for (struct region *r = regions; r < regions + REGIONS; r++)
        if (r->arriving && sge->lkey == r->arriving->lkey
            && sge->addr - r->iova < r->length) {
            const size_t at = sge->addr - r->iova;

            memcpy((char *)r->sent + at, r->gpu + at, sge->length);
            sge->lkey = r->leaving->lkey;
            return;
        }
}

static int late_post(struct ibv_qp *qp, struct ibv_send_wr *wr,
                     struct ibv_send_wr **bad)
{
    for (; wr; wr = wr->next) {
        struct ibv_send_wr one = *wr, *ignored;
        struct ibv_sge sge[SGES];
        int rc;

        need(one.num_sge <= SGES, "%d parts", one.num_sge);
        memcpy(sge, one.sg_list, (size_t)one.num_sge * sizeof *sge);
        one.sg_list = sge;
        one.next = NULL;
        if (one.opcode == IBV_WR_RDMA_READ)
            flush(qp->context);
        else
            for (int i = 0; i < one.num_sge; i++)
                take(&sge[i]);
        rc = real_post(qp, &one, &ignored);
        *bad = wr;
        if (rc != 0)
            return rc;
    }
    return 0;
}

static void *memory(size_t bytes)
{
    void *at = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);

    need(at, "%zu bytes", bytes);
    return at;
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
                                 size_t length, uint64_t iova, int fd,
                                 int access)
{
    struct region *r = regions;

    while (r < regions + REGIONS && r->arriving)
        r++;
    need(r < regions + REGIONS && iova % 4 == 0, "no room for a region");
    r->map_bytes = (offset + length + 4095) / 4096 * 4096;
    r->map = mmap(NULL, r->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                  0);
    need(r->map != MAP_FAILED, "mmap of a dma-buf: %s", strerror(errno));
    r->gpu = r->map + offset;
    r->length = length;
    r->iova = iova;
    r->landed = memory(length);
    r->sent = memory(length);
    for (size_t i = 0; i < words_of(r); i++)
        r->landed[i] = pattern(i);
    r->arriving = ibv_reg_mr_iova(pd, r->landed, length, iova, access);
    r->leaving = ibv_reg_mr_iova(pd, r->sent, length, iova, access);
    need(r->arriving && r->leaving, "a region: %s", strerror(errno));
    if (pd->context->ops.post_send != late_post) {
        real_post = pd->context->ops.post_send;
        pd->context->ops.post_send = late_post;
        cards[ncards++] = pd->context;
    }
    return r->arriving;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
    int (*real)(struct ibv_mr *);

    *(void **)&real = dlsym(RTLD_NEXT, "ibv_dereg_mr");
    for (struct region *r = regions; r < regions + REGIONS; r++)
        if (r->arriving == mr) {
            real(r->leaving);
            free(r->landed);
            free(r->sent);
            munmap(r->map, r->map_bytes);
            r->arriving = NULL;
        }
    return real(mr);
}
