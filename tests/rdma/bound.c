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
#include "tests/rdma/writes.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TURNS = WRITES_CALLS, RUNS = 16, BLOCK = WRITES_BLOCK };

struct bound {
    struct writes w;
    double us[TURNS];
    double *taken;                /* where in us[] the call in between goes   */
};

static void exchange(struct bound *b, size_t size)
{
    writes_exchange(&b->w, size);
}

static void turn(struct bound *b, size_t size)
{
    if (b->w.end.me == 2)
        writes_hear(&b->w, b->w.number + 1);
    writes_say(&b->w, size);
    if (b->w.end.me == 1)
        writes_hear(&b->w, b->w.number);
}

/* Only the call; the rest of the exchange is not timed. */
static void post_alone(struct bound *b, size_t size)
{
    int64_t start = dtn_now_ns();

    writes_say(&b->w, size);
    *b->taken = (double)(dtn_now_ns() - start) / 1e3;
    writes_hear(&b->w, b->w.number);
}

static void fold(struct bound *b, size_t size)
{
    const struct dtn_reduction sum = dtn_reduction(DTENSOR_F32, DTENSOR_SUM, 1);
    const void *terms[] = { b->w.out, b->w.in };

    dtn_fold(&sum, 0, b->w.out + BLOCK, terms, 2, BLOCK / 4);
}

static void moves(struct bound *b, size_t size)
{
    writes_move(&b->w, 0, 0);
    writes_move(&b->w, BLOCK, BLOCK);
}

static void reduces(struct bound *b, size_t size)
{
    writes_move(&b->w, 0, 0);
    fold(b, size);
    writes_move(&b->w, BLOCK, BLOCK);
}

static void rows(struct bound *b, size_t row)
{
    writes_rows(&b->w, row, 1);
}

static void gathers(struct bound *b, size_t row)
{
    writes_rows(&b->w, row, END_PIECES);
}

static void packs(struct bound *b, size_t row)
{
    for (size_t at = 0; at < BLOCK; at += row)
        memcpy(b->w.out + 2 * BLOCK + at, b->w.out + 2 * at, row);
    writes_move(&b->w, 2 * (size_t)BLOCK, 0);
}

/* ---------------------------------------------------------- measurement --- */

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
    writes_slower(&b->w, b->us, n);
    writes_sort(b->us, n);
    if (b->w.end.me == 1)
        printf("%s %.2f %.2f\n", name, b->us[0], b->us[n / 2]);
    exchange(b, 8);
}

int main(int argc, char **argv)
{
    static struct bound b;

    if (argc < 3)
        return 64;
    writes_open(&b.w, argv[1], atoi(argv[2]));
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
