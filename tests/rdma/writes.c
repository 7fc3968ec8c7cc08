/* writes.c - see writes.h */
#include "tests/rdma/writes.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { TELL_EVERY = 64, RETRIES = 6, CHAIN = 16 };

void writes_open(struct writes *w, const char *file, int me)
{
    float *at;

    end_open(&w->end, file, me, WRITES_BYTES, RETRIES);
    w->out = w->end.from->addr;
    w->in = w->end.to->addr;
    w->number = 0;
    w->posted = 0;
    at = (void *)w->out;
    for (size_t i = 0; i < 4 * (size_t)WRITES_BLOCK / sizeof *at; i++)
        at[i] = (float)(i % 7);
}

static void take_completion(struct writes *w)
{
    struct ibv_wc wc;
    int n;

    while ((n = ibv_poll_cq(w->end.cq, 1, &wc)) == 0)
        ;
    end_need(n == 1 && wc.status == IBV_WC_SUCCESS, "a write");
}

void writes_post(struct writes *w, struct ibv_send_wr *wr, int n)
{
    struct ibv_send_wr *bad;
    bool tells = (w->posted += (unsigned)n) >= TELL_EVERY;

    for (int i = 0; i < n; i++)
        wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
    if (tells)
        wr[n - 1].send_flags |= IBV_SEND_SIGNALED;
    end_need(ibv_post_send(w->end.qp, wr, &bad) == 0, "ibv_post_send");
    if (tells)
        take_completion(w);
    w->posted = tells ? 0 : w->posted;
}

struct ibv_sge writes_piece(const struct writes *w, size_t at, size_t size)
{
    return (struct ibv_sge){ .addr = (uintptr_t)(w->out + at),
                             .length = (uint32_t)size,
                             .lkey = w->end.from->lkey };
}

struct ibv_send_wr writes_request(const struct writes *w, struct ibv_sge *sge,
                                  int pieces, size_t at)
{
    const bool is_short = pieces == 1 && sge->length <= END_INLINE;

    return (struct ibv_send_wr){
        .sg_list = sge, .num_sge = pieces, .opcode = IBV_WR_RDMA_WRITE,
        .send_flags = is_short ? IBV_SEND_INLINE : 0,
        .wr.rdma = { w->end.other.address + at, w->end.other.key }
    };
}

/* ------------------------------------------------------------ exchanges --- */

void writes_say(struct writes *w, size_t size)
{
    struct ibv_sge sge = writes_piece(w, WRITES_WORD - size, size);
    struct ibv_send_wr wr = writes_request(w, &sge, 1, WRITES_WORD - size);

    w->number++;
    memcpy(w->out + WRITES_WORD - 8, &w->number, 8);
    writes_post(w, &wr, 1);
}

void writes_hear(const struct writes *w, uint64_t number)
{
    const _Atomic uint64_t *word = (const void *)(w->in + WRITES_WORD - 8);

    while (atomic_load_explicit(word, memory_order_acquire) < number)
        ;
}

void writes_exchange(struct writes *w, size_t size)
{
    writes_say(w, size);
    writes_hear(w, w->number);
}

void writes_move(struct writes *w, size_t from, size_t to)
{
    struct ibv_sge sge = writes_piece(w, from, WRITES_BLOCK);
    struct ibv_send_wr wr = writes_request(w, &sge, 1, to);

    writes_post(w, &wr, 1);
    writes_exchange(w, 8);
}

void writes_rows(struct writes *w, size_t row, int gathered)
{
    struct ibv_sge sge[CHAIN][END_PIECES];
    struct ibv_send_wr wr[CHAIN];
    size_t at = 0;
    int n;

    while (at < WRITES_BLOCK) {
        for (n = 0; n < CHAIN && at < WRITES_BLOCK; n++) {
            size_t start = at;

            for (int i = 0; i < gathered; i++, at += row)
                sge[n][i] = writes_piece(w, 2 * at, row);
            wr[n] = writes_request(w, sge[n], gathered, start);
        }
        writes_post(w, wr, n);
    }
    writes_exchange(w, 8);
}

/* ---------------------------------------------------------------- times --- */

void writes_slower(struct writes *w, double *us, int calls)
{
    const size_t bytes = (size_t)calls * sizeof us[0];
    struct ibv_sge sge = writes_piece(w, WRITES_TIMES, bytes);
    struct ibv_send_wr wr = writes_request(w, &sge, 1, WRITES_TIMES);
    const double *theirs = (const void *)(w->in + WRITES_TIMES);

    memcpy(w->out + WRITES_TIMES, us, bytes);
    writes_post(w, &wr, 1);
    writes_exchange(w, 8);
    for (int i = 0; i < calls; i++)
        if (theirs[i] > us[i])
            us[i] = theirs[i];
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

void writes_sort(double *us, int calls)
{
    qsort(us, (size_t)calls, sizeof us[0], compare);
}
