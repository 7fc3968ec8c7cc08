/* bound.c - what the device and the processors allow, by libibverbs alone
 *
 *     bound FILE ME [SECONDS]
 *
 * Two processes, ME = 1 and 2, use one device.  In a collective both ranks send
 * at once, and the time of the slower one after a barrier counts; the ranks of
 * perftest take turns.  On a soft device, where each write is a system call,
 * that doubles the time.  So this program measures the bound of a collective:
 * both sides write at once and wait for the other's write.  Process 1 prints
 * the best and the median:
 *
 *     bound_turn 10.3 10.9         us, 8 bytes in turn, as ib_write_lat
 *     bound_both8 20.1 21.3        us, 8 bytes both ways at once
 *     bound_both512 22.4 23.0      us, 512 bytes
 *     bound_both4096 37.0 38.8     us, 4 KiB
 *     bound_post8 18.0 18.9        us, of which in ibv_post_send()
 *     bound_fold 2100 2150         us, to add 1 MiB of floats to another
 *     bound_moves 15800 16200      us, 1 MiB both ways at once, twice
 *     bound_reduces 17900 18400    us, the same, and between them the addition
 *     bound_rows 9100 9200         us, both ways 512 rows of 2 KiB, 16 a call
 *     bound_gathers 7900 8000      us, as 32 requests, 16 rows gathered in each
 *     bound_packs 8800 8900        us, copied to one place first
 */
#include "base/reduce.h"
#include "base/wait.h"
#include "dtensor.h"
#include "tests/rdma/end.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TURNS = 2000, RUNS = 16,
    BLOCK = 1 << 20,
    WORD_AT = 4 * BLOCK + 4096,   /* what an exchange writes ends here        */
    TIMES_AT = WORD_AT + 64,
    BYTES = TIMES_AT + TURNS * 8 + 64,
    TELL_EVERY = 64
};

struct bound {
    struct end end;
    unsigned char *out, *in;      /* BYTES each                               */
    uint64_t number;              /* of the last exchange                     */
    unsigned posted;
    double us[TURNS];
    double *taken;                /* where in us[] the call in between goes   */
};

static void take_completion(struct bound *b)
{
    struct ibv_wc wc;
    int n;

    while ((n = ibv_poll_cq(b->end.cq, 1, &wc)) == 0)
        ;
    end_need(n == 1 && wc.status == IBV_WC_SUCCESS, "a write");
}

/* Post a chain; one of 64 requests asks for a completion. */
static void post(struct bound *b, struct ibv_send_wr *wr, int n)
{
    struct ibv_send_wr *bad;
    bool tells = (b->posted += (unsigned)n) >= TELL_EVERY;

    for (int i = 0; i < n; i++)
        wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
    if (tells)
        wr[n - 1].send_flags |= IBV_SEND_SIGNALED;
    end_need(ibv_post_send(b->end.qp, wr, &bad) == 0, "ibv_post_send");
    if (tells)
        take_completion(b);
    b->posted = tells ? 0 : b->posted;
}

static struct ibv_sge piece(const struct bound *b, size_t at, size_t size)
{
    return (struct ibv_sge){ .addr = (uintptr_t)(b->out + at),
                             .length = (uint32_t)size,
                             .lkey = b->end.from->lkey };
}

static struct ibv_send_wr request(const struct bound *b, struct ibv_sge *sge,
                                  int n, size_t at)
{
    return (struct ibv_send_wr){
        .sg_list = sge, .num_sge = n, .opcode = IBV_WR_RDMA_WRITE,
        .send_flags = n == 1 && sge->length <= END_INLINE ? IBV_SEND_INLINE : 0,
        .wr.rdma = { b->end.other.address + at, b->end.other.key }
    };
}

/* ------------------------------------------------------------ exchanges --- */

/* `size` bytes, of which the last eight are the next number. */
static void say(struct bound *b, size_t size)
{
    struct ibv_sge sge = piece(b, WORD_AT - size, size);
    struct ibv_send_wr wr = request(b, &sge, 1, WORD_AT - size);

    b->number++;
    memcpy(b->out + WORD_AT - 8, &b->number, 8);
    post(b, &wr, 1);
}

static void hear(const struct bound *b, uint64_t number)
{
    const _Atomic uint64_t *word = (const void *)(b->in + WORD_AT - 8);

    while (atomic_load_explicit(word, memory_order_acquire) < number)
        ;
}

static void exchange(struct bound *b, size_t size)
{
    say(b, size);
    hear(b, b->number);
}

static void turn(struct bound *b, size_t size)
{
    if (b->end.me == 2)
        hear(b, b->number + 1);
    say(b, size);
    if (b->end.me == 1)
        hear(b, b->number);
}

/* Only the call; the rest of the exchange is not timed. */
static void post_alone(struct bound *b, size_t size)
{
    int64_t start = dtn_now_ns();

    say(b, size);
    *b->taken = (double)(dtn_now_ns() - start) / 1e3;
    hear(b, b->number);
}

/* A block, and a number behind it. */
static void move(struct bound *b, size_t from, size_t to)
{
    struct ibv_sge sge = piece(b, from, BLOCK);
    struct ibv_send_wr wr = request(b, &sge, 1, to);

    post(b, &wr, 1);
    exchange(b, 8);
}

static void fold(struct bound *b, size_t size)
{
    const void *terms[] = { b->out, b->in };

    dtn_reduce(DTENSOR_F32, DTENSOR_SUM, b->out + BLOCK, terms, 2, BLOCK / 4);
}

static void moves(struct bound *b, size_t size)
{
    move(b, 0, 0);
    move(b, BLOCK, BLOCK);
}

static void reduces(struct bound *b, size_t size)
{
    move(b, 0, 0);
    fold(b, size);
    move(b, BLOCK, BLOCK);
}

/* ----------------------------------------------------------------- rows --- */

/* Every second row of 2 * BLOCK goes to one block of the other; `gathered` of
 * them by one request, and 16 requests by one call.
 */
static void rows_write(struct bound *b, size_t row, int gathered)
{
    struct ibv_sge sge[16][END_PIECES];
    struct ibv_send_wr wr[16];
    size_t at = 0;
    int n;

    while (at < BLOCK) {
        for (n = 0; n < 16 && at < BLOCK; n++) {
            size_t start = at;

            for (int i = 0; i < gathered; i++, at += row)
                sge[n][i] = piece(b, 2 * at, row);
            wr[n] = request(b, sge[n], gathered, start);
        }
        post(b, wr, n);
    }
    exchange(b, 8);
}

static void rows(struct bound *b, size_t row)
{
    rows_write(b, row, 1);
}

static void gathers(struct bound *b, size_t row)
{
    rows_write(b, row, END_PIECES);
}

static void packs(struct bound *b, size_t row)
{
    for (size_t at = 0; at < BLOCK; at += row)
        memcpy(b->out + 2 * BLOCK + at, b->out + 2 * at, row);
    move(b, 2 * (size_t)BLOCK, 0);
}

/* ---------------------------------------------------------- measurement --- */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Process 2 writes its times to process 1, because the slower one counts. */
static void slower(struct bound *b, int n)
{
    struct ibv_sge sge = piece(b, TIMES_AT, (size_t)n * sizeof b->us[0]);
    struct ibv_send_wr wr = request(b, &sge, 1, TIMES_AT);
    const double *theirs = (const void *)(b->in + TIMES_AT);

    memcpy(b->out + TIMES_AT, b->us, (size_t)n * sizeof b->us[0]);
    post(b, &wr, 1);
    exchange(b, 8);
    for (int i = 0; i < n; i++)
        if (theirs[i] > b->us[i])
            b->us[i] = theirs[i];
}

static void measure(struct bound *b, const char *name,
                    void (*what)(struct bound *b, size_t size), size_t size,
                    int n)
{
    double parts = what == turn ? 2e3 : 1e3;

    for (int i = 0; i < n; i++) {
        int64_t start;

        exchange(b, 8);
        b->taken = &b->us[i];
        start = dtn_now_ns();
        what(b, size);
        if (what != post_alone)
            b->us[i] = (double)(dtn_now_ns() - start) / parts;
    }
    slower(b, n);
    qsort(b->us, (size_t)n, sizeof b->us[0], compare);
    if (b->end.me == 1)
        printf("%s %.2f %.2f\n", name, b->us[0], b->us[n / 2]);
    exchange(b, 8);
}

static void fill(struct bound *b)
{
    float *at = (void *)b->out;

    for (size_t i = 0; i < 4 * (size_t)BLOCK / sizeof *at; i++)
        at[i] = (float)(i % 7);
}

int main(int argc, char **argv)
{
    static struct bound b;

    if (argc < 3)
        return 64;
    end_open(&b.end, argv[1], atoi(argv[2]), BYTES, 6);
    b.out = b.end.from->addr;
    b.in = b.end.to->addr;
    fill(&b);
    measure(&b, "bound_turn", turn, 8, TURNS);
    measure(&b, "bound_both8", exchange, 8, TURNS);
    measure(&b, "bound_both512", exchange, 512, TURNS);
    measure(&b, "bound_both4096", exchange, 4096, TURNS);
    measure(&b, "bound_post8", post_alone, 8, TURNS);
    measure(&b, "bound_fold", fold, 0, RUNS);
    measure(&b, "bound_moves", moves, 0, RUNS);
    measure(&b, "bound_reduces", reduces, 0, RUNS);
    measure(&b, "bound_rows", rows, 2048, RUNS);
    measure(&b, "bound_gathers", gathers, 2048, RUNS);
    measure(&b, "bound_packs", packs, 2048, RUNS);
    return 0;
}
