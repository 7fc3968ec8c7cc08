/* test_checker.c - the checker refuses what is wrong
 *
 * Schedules of two or three ranks with errors made by hand, each with the words
 * of its refusal.  test_checker_mutations.c changes steps of good schedules.
 *
 * Without this test, the checker could accept wrong schedules, and every proof
 * by it would be worth nothing.
 */
#include "base/compiler.h"
#include "sched/call.h"
#include "sched/check.h"
#include "sched/sched.h"
#include "transport/transport.h"
#include "dtensor.h"
#include "tests/sched/coll_cases.h"
#include "tests/support/tap.h"

#include <stdbool.h>
#include <string.h>

/* ---------------------------------------------------------------- by hand */

#define N 3
static struct dtn_sched hand[N];

static struct dtn_span at(int rank, enum dtn_space space, size_t offset)
{
    return (struct dtn_span){ rank, space, offset };
}

/* Three ranks with 8 elements in each space, everything but ACC exposed. */
static void hand_begin_with(enum dtensor_dtype dtype, enum dtensor_redop op)
{
    const size_t bytes = 8 * dtensor_dtype_size(dtype);

    for (int r = 0; r < N; r++) {
        dtn_sched_fini(&hand[r]);
        dtn_sched_init(&hand[r], "hand", N, r, dtype, op);
        for (int s = 0; s < DTN_NSPACES; s++) {
            hand[r].bytes[s] = bytes;
            hand[r].exposed[s] = s != DTN_ACC;
        }
    }
}

static void hand_begin(void)
{
    hand_begin_with(DTENSOR_I32, DTENSOR_SUM);
}

/* bf16, with ACC exposed instead of TMP. */
static void hand_begin_wide(void)
{
    hand_begin_with(DTENSOR_BF16, DTENSOR_SUM);
    for (int r = 0; r < N; r++) {
        hand[r].exposed[DTN_TMP] = false;
        hand[r].exposed[DTN_ACC] = true;
    }
}

static bool expect_any(int rank, size_t elem, const struct dtn_cell *cell,
                       const void *arg)
{
    (void)rank, (void)elem, (void)cell, (void)arg;
    return true;
}

/* Refused, with these words in the error (NULL: accepted). */
static void hand_end(const char *words, const char *claim)
{
    struct dtensor_error err = { .text = "accepted" };
    int rc = dtn_sched_check(hand, N, 2, NULL, expect_any, NULL, &err);

    if (!ok(words ? rc == DTENSOR_EINVAL && strstr(err.text, words)
                  : rc == 0, "%s", claim))
        note("%s", err.text);
}

static void hand_signal(int from, int to, enum dtn_tag tag)
{
    dtn_sched_signal(&hand[from], to, tag);
    dtn_sched_wait(&hand[to], from, tag);
}

/* Rank 0 puts its IN into rank 1's OUT, up to the signal. */
static void hand_put(void)
{
    hand_begin();
    hand_signal(1, 0, DTN_TAG_READY);
    dtn_sched_put(&hand[0], 1, at(1, DTN_OUT, 0), at(0, DTN_IN, 0), 32);
}

static void test_put_accepted(void)
{
    hand_put();
    hand_signal(0, 1, DTN_TAG_DATA);
    dtn_sched_flush(&hand[0], 1);
    dtn_sched_copy(&hand[1], at(1, DTN_TMP, 0), at(1, DTN_OUT, 0), 32);
    hand_end(NULL, "READY, put, DATA, flush, read is accepted");
}

static void test_puts(void)
{
    hand_put();
    hand_signal(0, 1, DTN_TAG_DATA);
    hand_end("not flushed", "a put must be flushed before the end");

    hand_put();
    dtn_sched_flush(&hand[0], 1);
    hand_end("rank 1 may have returned", "a put may not come after its "
             "receiver's end");

    hand_begin();
    hand_signal(1, 0, DTN_TAG_READY);
    dtn_sched_signal(&hand[0], 1, DTN_TAG_DATA);
    dtn_sched_put(&hand[0], 1, at(1, DTN_OUT, 0), at(0, DTN_IN, 0), 32);
    dtn_sched_wait(&hand[1], 0, DTN_TAG_DATA);
    dtn_sched_flush(&hand[0], 1);
    hand_end("OUT+0 of rank 1 is still being put by rank 0", "a put must have "
             "landed before its receiver's end");

    hand_put();
    dtn_sched_flush(&hand[0], 1);
    dtn_sched_signal(&hand[0], 1, DTN_TAG_DATA);
    dtn_sched_copy(&hand[1], at(1, DTN_TMP, 0), at(1, DTN_OUT, 0), 32);
    dtn_sched_wait(&hand[1], 0, DTN_TAG_DATA);
    hand_end("OUT+0 of rank 1", "what is put may not be read before the wait");

    hand_begin();
    dtn_sched_copy(&hand[0], at(0, DTN_IN, 0), at(0, DTN_OUT, 0), 32);
    hand_end("holds nothing yet", "reading OUT before it is written");

    hand_put();
    dtn_sched_copy(&hand[0], at(0, DTN_OUT, 0), at(0, DTN_IN, 0), 32);
    dtn_sched_scale(&hand[0], at(0, DTN_IN, 0), 32);
    hand_signal(0, 1, DTN_TAG_DATA);
    dtn_sched_flush(&hand[0], 1);
    hand_end("not flushed", "the source of a put may not be written before "
             "the flush");

    hand_put();
    hand_signal(0, 2, DTN_TAG_DATA);
    hand_signal(2, 1, DTN_TAG_DATA);
    dtn_sched_flush(&hand[0], 1);
    dtn_sched_copy(&hand[1], at(1, DTN_TMP, 0), at(1, DTN_OUT, 0), 32);
    hand_end("still being put", "a signal by way of a third rank does not make "
             "a put land");
}

static void test_puts_refused(void)
{
    hand_begin();
    dtn_sched_put(&hand[0], 1, at(1, DTN_OUT, 0), at(0, DTN_IN, 0), 32);
    dtn_sched_flush(&hand[0], 1);
    hand_signal(0, 1, DTN_TAG_DATA);
    hand_end("no READY", "a put needs the receiver's READY");

    hand_put();
    dtn_sched_put(&hand[0], 1, at(1, DTN_OUT, 28), at(0, DTN_IN, 0), 4);
    hand_signal(0, 1, DTN_TAG_DATA);
    hand_end("OUT+28 of rank 1 is still being put by rank 0",
             "two puts to one place, no signal in between");

    hand_put();
    hand_signal(0, 1, DTN_TAG_DATA);
    hand[1].exposed[DTN_OUT] = false;
    hand_end("not exposed", "a space must be exposed to be put into");
    hand_put();
    hand_signal(0, 1, DTN_TAG_DATA);
    hand[1].bytes[DTN_OUT] = 28;
    hand_end("OUT+28 is outside", "a put past the end of a space");
}

/* Rank 0 loads rank 1's IN. */
static void hand_load(void)
{
    hand_begin();
    hand_signal(1, 0, DTN_TAG_READY);
    dtn_sched_copy(&hand[0], at(0, DTN_OUT, 0), at(1, DTN_IN, 0), 32);
}

static void test_loads(void)
{
    hand_load();
    hand_signal(0, 1, DTN_TAG_DONE);
    hand_end(NULL, "READY, load, DONE is accepted");

    hand_load();
    hand_end("rank 1 may have returned", "a load may not come after its "
             "owner's end");

    hand_begin();
    hand_signal(1, 0, DTN_TAG_READY);
    dtn_sched_signal(&hand[0], 1, DTN_TAG_DONE);
    dtn_sched_copy(&hand[0], at(0, DTN_OUT, 0), at(1, DTN_IN, 0), 32);
    dtn_sched_wait(&hand[1], 0, DTN_TAG_DONE);
    hand_end("was read, with no signal since, by rank 0", "a load must be "
             "followed by a signal to the owner");

    hand_load();
    hand_signal(0, 2, DTN_TAG_DONE);
    hand_signal(2, 1, DTN_TAG_DONE);
    hand_end(NULL, "or by signals by way of others");

    hand_load();
    dtn_sched_scale(&hand[1], at(1, DTN_IN, 0), 32);
    hand_signal(0, 1, DTN_TAG_DONE);
    hand_end("with no signal since", "what a peer loads may not be written "
             "before its DONE");

    hand_begin();
    hand_signal(1, 0, DTN_TAG_READY);
    hand_signal(1, 2, DTN_TAG_READY);
    dtn_sched_put(&hand[2], 1, at(1, DTN_IN, 0), at(2, DTN_IN, 0), 32);
    hand_signal(2, 1, DTN_TAG_DATA);
    dtn_sched_flush(&hand[2], 1);
    dtn_sched_copy(&hand[0], at(0, DTN_OUT, 0), at(1, DTN_IN, 0), 32);
    hand_signal(0, 1, DTN_TAG_DONE);
    hand_end("IN+0 of rank 1", "a load and a put by two other ranks race");
}

static void test_signals(void)
{
    hand_begin();
    dtn_sched_signal(&hand[0], 1, DTN_TAG_DATA);
    hand_end("rank 0 sends rank 1 1 signals, which waits for 0",
             "a signal nobody waits for");

    hand_begin();
    dtn_sched_signal(&hand[0], 1, DTN_TAG_DATA);
    dtn_sched_wait(&hand[1], 0, DTN_TAG_DONE);
    hand_end("the next signal is tag", "a wait for another tag");

    hand_begin();
    dtn_sched_send_eager(&hand[0], 1, at(0, DTN_IN, 0), 8);
    dtn_sched_recv_eager(&hand[1], 0, at(1, DTN_OUT, 0), 4);
    hand_end("8 bytes", "a wait for another length");

    hand_begin();
    for (int r = 0; r < N; r++)
        dtn_sched_wait(&hand[r], (r + 1) % N, DTN_TAG_READY);
    for (int r = 0; r < N; r++)
        dtn_sched_signal(&hand[r], (r + 2) % N, DTN_TAG_READY);
    hand_end("deadlock of 3 of 3", "all waiting first is a deadlock");

    for (int extra = 0; extra <= 1; extra++) {
        hand_begin();
        for (int r = 0; r < 2; r++) {
            for (int i = 0; i < DTN_QUEUE_DEPTH + extra; i++)
                dtn_sched_signal(&hand[r], 1 - r, DTN_TAG_DATA);
            for (int i = 0; i < DTN_QUEUE_DEPTH + extra; i++)
                dtn_sched_wait(&hand[r], 1 - r, DTN_TAG_DATA);
        }
        hand_end(extra ? "filled the queue" : NULL, extra
                 ? "one more than the queue holds is a deadlock"
                 : "as many signals as the queue holds are accepted");
    }

    hand_begin();
    dtn_sched_send_eager(&hand[0], 1, at(0, DTN_IN, 0), 4100);
    dtn_sched_recv_eager(&hand[1], 0, at(1, DTN_OUT, 0), 4100);
    hand_end("more than 4096 bytes", "4100 bytes do not fit a signal");
}

static void test_values(void)
{
    hand_begin();
    dtn_sched_copy(&hand[0], at(0, DTN_OUT, 0), at(0, DTN_IN, 0), 32);
    dtn_sched_reduce(&hand[0], at(0, DTN_OUT, 0), at(0, DTN_IN, 0), 32);
    hand_end("of rank 0 in twice", "a rank's term may be added once only");

    hand_begin();
    dtn_sched_scale(&hand[0], at(0, DTN_IN, 0), 32);
    dtn_sched_scale(&hand[0], at(0, DTN_IN, 0), 4);
    hand_end("second time", "a result may be divided once only");

    hand_begin();
    dtn_sched_send_eager(&hand[0], 1, at(0, DTN_IN, 0), 4);
    dtn_sched_recv_eager(&hand[1], 0, at(1, DTN_TMP, 0), 4);
    dtn_sched_reduce(&hand[1], at(1, DTN_TMP, 0), at(1, DTN_IN, 4), 4);
    hand_end("element 0 with element 1", "different elements may not be added");

    hand_begin();
    dtn_sched_neutral(&hand[0], at(0, DTN_OUT, 0), 32);
    dtn_sched_reduce(&hand[0], at(0, DTN_OUT, 0), at(0, DTN_IN, 0), 32);
    hand_end(NULL, "the neutral element takes any term");

    hand_begin();
    dtn_sched_copy(&hand[0], at(0, DTN_IN, 0), at(0, DTN_IN, 4), 28);
    hand_end("overlap", "a copy may not overlap its source");

    hand_begin();
    dtn_sched_copy(&hand[0], at(0, DTN_OUT, 0), at(0, DTN_IN, 2), 4);
    hand_end("not whole elements", "a copy of half an element");

    hand_begin();
    dtn_sched_copy(&hand[0], at(1, DTN_OUT, 0), at(0, DTN_IN, 0), 4);
    hand_end("writes to rank 1", "a copy to another rank");
    hand_begin();
}

/* Rank 0 carries its IN to rank 1's TMP, which takes it for a term. */
static void hand_term(void)
{
    dtn_sched_send_eager(&hand[0], 1, at(0, DTN_IN, 0), 16);
    dtn_sched_recv_eager(&hand[1], 0, at(1, DTN_TMP, 0), 16);
}

static void test_partial(void)
{
    hand_begin_wide();
    hand[1].exposed[DTN_TMP] = true;
    hand_end("exposes both TMP and ACC", "a READY has no room for two names of "
             "scratch");

    hand_begin_wide();
    hand_signal(1, 0, DTN_TAG_READY);
    dtn_sched_put(&hand[0], 1, at(1, DTN_ACC, 0), at(0, DTN_IN, 0), 16);
    hand_end("elements as partial results", "bf16 may not be put where sums "
             "are f32");

    hand_begin_wide();
    dtn_sched_send_eager(&hand[0], 1, at(0, DTN_IN, 0), 16);
    dtn_sched_recv_eager(&hand[1], 0, at(1, DTN_ACC, 0), 16);
    hand_end("elements as partial results", "nor caught there");

    hand_begin_with(DTENSOR_F32, DTENSOR_SUM);
    dtn_sched_send_eager(&hand[0], 1, at(0, DTN_IN, 0), 16);
    dtn_sched_recv_eager(&hand[1], 0, at(1, DTN_ACC, 0), 16);
    hand_end(NULL, "where both are f32 they may");

    hand_begin_with(DTENSOR_F32, DTENSOR_AVG);
    dtn_sched_copy(&hand[0], at(0, DTN_ACC, 0), at(0, DTN_IN, 0), 16);
    dtn_sched_send_eager(&hand[0], 1, at(0, DTN_ACC, 0), 16);
    dtn_sched_recv_eager(&hand[1], 0, at(1, DTN_TMP, 0), 16);
    hand_end("or the reverse", "a sum that is to be divided is no result "
             "yet");
}

static void test_partial_rounded(void)
{
    hand_begin_with(DTENSOR_BF16, DTENSOR_SUM);
    hand_term();
    dtn_sched_reduce(&hand[1], at(1, DTN_TMP, 0), at(1, DTN_IN, 0), 16);
    hand_end(NULL, "a sum of two bf16 is rounded");

    hand_begin_with(DTENSOR_BF16, DTENSOR_SUM);
    hand_term();
    dtn_sched_reduce(&hand[1], at(1, DTN_TMP, 0), at(1, DTN_IN, 0), 16);
    dtn_sched_send_eager(&hand[1], 2, at(1, DTN_TMP, 0), 16);
    dtn_sched_recv_eager(&hand[2], 1, at(2, DTN_TMP, 0), 16);
    dtn_sched_reduce(&hand[2], at(2, DTN_TMP, 0), at(2, DTN_IN, 0), 16);
    hand_end("rounded already", "and may not be added to then");

    hand_begin_wide();
    dtn_sched_copy(&hand[0], at(0, DTN_ACC, 0), at(0, DTN_IN, 0), 16);
    dtn_sched_send_eager(&hand[0], 1, at(0, DTN_ACC, 0), 16);
    dtn_sched_recv_eager(&hand[1], 0, at(1, DTN_ACC, 0), 16);
    dtn_sched_reduce(&hand[1], at(1, DTN_ACC, 0), at(1, DTN_IN, 0), 16);
    dtn_sched_send_eager(&hand[1], 2, at(1, DTN_ACC, 0), 16);
    dtn_sched_recv_eager(&hand[2], 1, at(2, DTN_ACC, 0), 16);
    dtn_sched_reduce(&hand[2], at(2, DTN_ACC, 0), at(2, DTN_IN, 0), 16);
    dtn_sched_copy(&hand[2], at(2, DTN_OUT, 0), at(2, DTN_ACC, 0), 16);
    hand_end(NULL, "as f32 in ACC it may, rounded at the end");
}

int main(void)
{
    test_put_accepted();
    test_puts();
    test_puts_refused();
    test_loads();
    test_signals();
    test_values();
    test_partial();
    test_partial_rounded();
    for (int r = 0; r < N; r++)
        dtn_sched_fini(&hand[r]);
    return done();
}
