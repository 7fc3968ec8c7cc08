/* test_shm_interleavings.c - signals over shared memory, in all executions
 *
 * Each program below runs the code of transport/shm in all ways that C11
 * allows: signals with data, around the end of the queue, from two senders to
 * one receiver, memory that is used again, the last words of a rank.  Then each
 * operation of that code is made wrong in each way of interleave.h, one by one:
 * some program has to fail.
 *
 * A receiver polls and never sleeps until it is woken, so a lost signal, not a
 * lost wake, is what would make it wait for ever.
 *
 *     test_shm_interleavings [SIGNALS]    more signals than the queue holds
 *
 * Without this test, an order that is too weak would fail on another processor
 * once in a million messages.
 */
#include "base/compiler.h"
#include "transport/transport.h"
#include "dtensor.h"
#include "tests/support/tap.h"
#include "tests/transport/interleave.h"
#include "tests/transport/modelled_shm.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static int more = 2;              /* signals than the queue holds             */

/* ------------------------------------------------- what a rank does --- */

static unsigned char byte_of(int rank, int number)
{
    return (unsigned char)(rank * 100 + number);
}

/* Send signal `number` with its bytes, and `data` beside it. */
static void tell(int rank, int peer, int number, bool data)
{
    const int place = number - 1;
    struct dtn_transport *tp = modelled_rank(rank);
    struct dtn_signal signal = { .fingerprint = (uint64_t)number,
                                 .len = MODELLED_BOX };
    unsigned char bytes[MODELLED_BOX];
    const struct dtn_eager eager = {
        modelled_name(peer, modelled_box(peer, rank, place)), bytes,
        sizeof bytes
    };
    int rc;

    memset(bytes, byte_of(rank, number), sizeof bytes);
    memset(signal.payload, byte_of(rank, number), sizeof signal.payload);
    interleave_turn();
    rc = modelled_ops->signal(tp, peer, &signal, data ? &eager : NULL);
    if (rc == DTENSOR_EAGAIN)
        interleave_vain();
    interleave_must(rc == 0, "a signal is sent");
}

static void read_bytes(const void *from, int rank, int number)
{
    unsigned char bytes[MODELLED_BOX];

    interleave_copy("receiver", bytes, from, sizeof bytes);
    interleave_must(bytes[0] == byte_of(rank, number)
                    && bytes[MODELLED_BOX - 1] == byte_of(rank, number),
                    "the bytes are those of the signal");
}

/* Take signal `number` of the peer, which is there. */
static void take(const struct dtn_signal *signal, int rank, int peer,
                 int number, bool data)
{
    struct dtn_signal line;

    interleave_copy("receiver", &line, signal, DTN_SIGNAL_BODY);
    interleave_must(line.fingerprint == (uint64_t)number,
                    "signals come in their order");
    read_bytes(signal->payload, peer, number);
    if (data)
        read_bytes(modelled_box(rank, peer, number - 1), peer, number);
    modelled_ops->consume(modelled_rank(rank), peer);
}

static void await(int rank, int peer, int number, bool data)
{
    const struct dtn_signal *signal;

    interleave_turn();
    signal = modelled_ops->peek(modelled_rank(rank), peer);
    if (!signal)
        interleave_vain();
    else
        take(signal, rank, peer, number, data);
}

/* Write, as put() or through map(). */
static void window_write(int rank, int writer, int number)
{
    unsigned char bytes[MODELLED_BOX];

    memset(bytes, byte_of(writer, number), sizeof bytes);
    interleave_copy("writer", modelled_window(rank), bytes, sizeof bytes);
}

/* ----------------------------------------------------------- programs --- */

static void run_data(int rank)
{
    for (int i = 1; i <= modelled_depth + more; i++)
        if (rank == 0)
            tell(0, 1, i, true);
        else
            await(1, 0, i, true);
}

/* Both send, and receive what the other sent. */
static void run_both(int rank)
{
    for (int i = 1; i <= modelled_depth + more - 1; i++) {
        tell(rank, !rank, i, i % 2 == 0);
        await(rank, !rank, i, i % 2 == 0);
    }
}

/* Ranks 0 and 1 send to rank 2, which takes what comes first. */
static void run_senders(int rank)
{
    enum { EACH = 3 };
    int taken[2] = { 0, 0 };
    bool any;

    for (int i = 1; i <= EACH && rank < 2; i++)
        tell(rank, 2, i, true);
    while (rank == 2 && taken[0] + taken[1] < 2 * EACH) {
        interleave_turn();
        any = false;
        for (int peer = 0; peer < 2; peer++) {
            const struct dtn_signal *signal =
                modelled_ops->peek(modelled_rank(2), peer);

            if (signal)
                take(signal, 2, peer, ++taken[peer], true);
            any = any || signal;
        }
        if (!any)
            interleave_vain();
    }
}

/* Rank 0 writes into rank 1, which reads and says that it is done. */
static void run_push(int rank)
{
    for (int i = 1; i <= more + 1; i++)
        if (rank == 0) {
            window_write(1, 0, i);
            tell(0, 1, i, false);
            await(0, 1, i, false);
        } else {
            await(1, 0, i, false);
            read_bytes(modelled_window(1), 0, i);
            tell(1, 0, i, false);
        }
}

/* Rank 1 reads what rank 0 has in its own memory. */
static void run_pull(int rank)
{
    for (int i = 1; i <= more + 1; i++)
        if (rank == 0) {
            window_write(0, 0, i);
            tell(0, 1, i, false);
            await(0, 1, i, false);
        } else {
            await(1, 0, i, false);
            read_bytes(modelled_window(0), 0, i);
            tell(1, 0, i, false);
        }
}

/* As dtn_peer_check() does: a signal counts more than that the peer left. */
static int await_end(int rank, int peer, int number, int *culprit)
{
    struct dtn_transport *tp = modelled_rank(rank);
    const struct dtn_signal *signal;
    int code = 0, rc;

    interleave_turn();
    signal = modelled_ops->peek(tp, peer);
    if (!signal) {
        rc = modelled_ops->health(tp, peer, culprit, &code);
        signal = modelled_ops->peek(tp, peer);
        if (!signal && rc != 0)
            return rc == DTENSOR_EABORT ? code : rc;
    }
    if (signal)
        take(signal, rank, peer, number, true);
    else
        interleave_vain();
    return 0;
}

/* Rank 0 sends and gives up; rank 1 sees both. */
static void run_poison(int rank)
{
    int culprit = 0, code, n = 0;

    if (rank == 0) {
        for (int i = 1; i <= modelled_depth; i++)
            tell(0, 1, i, true);
        modelled_ops->abort(modelled_rank(0), 2, DTENSOR_ETIME);
        return;
    }
    while ((code = await_end(1, 0, n + 1, &culprit)) == 0)
        n++;
    interleave_must(n == modelled_depth, "signals before the end are seen");
    interleave_must(code == DTENSOR_ETIME && culprit == 2,
                    "the end has a reason and a culprit");
}

/* Rank 0 sends its last signal and leaves. */
static void run_leave(int rank)
{
    int culprit = 0, code, n = 0;

    if (rank == 0) {
        tell(0, 1, 1, true);
        modelled_ops->close(modelled_rank(0));
        return;
    }
    while ((code = await_end(1, 0, n + 1, &culprit)) == 0)
        n++;
    interleave_must(n == 1, "signals before it left are seen");
    interleave_must(code == DTENSOR_EPEER, "it has left");
}

static const struct interleave_program programs[] = {
    { "signals with data, around the queue", 2, modelled_begin, run_data },
    { "both ways", 2, modelled_begin, run_both },
    { "two senders", 3, modelled_begin, run_senders },
    { "memory of the receiver, again", 2, modelled_begin, run_push },
    { "memory of the sender, again", 2, modelled_begin, run_pull },
    { "the sender gives up", 2, modelled_begin, run_poison },
    { "the sender leaves", 2, modelled_begin, run_leave },
};

static void programs_hold(void)
{
    for (size_t i = 0; i < DTN_COUNT(programs); i++) {
        struct interleave_result result;

        interleave_all(&programs[i], NULL, &result);
        ok(result.failure[0] == '\0' && result.executions > 0,
           "%s: all of %" PRIu64 " executions are right, of %" PRIu64 " tried "
           "%s", programs[i].name, result.executions, result.tried,
           result.failure);
    }
}

/* ------------------------------------------------------------ mutants --- */

/* Is this fault one that the code must not have?  A rank that has left may have
 * any bits beside that one.  The receiver of this file is not the code.
 */
static bool is_wrong(const struct interleave_mutant *mutant)
{
    static const enum interleave_kind kinds[INTERLEAVE_FAULTS][2] = {
        [INTERLEAVE_WEAKER] = { INTERLEAVE_LOAD, INTERLEAVE_STORE },
        [INTERLEAVE_LOST] = { INTERLEAVE_STORE, INTERLEAVE_COPY },
        [INTERLEAVE_MORE] = { INTERLEAVE_LOAD, INTERLEAVE_STORE },
        [INTERLEAVE_LATE] = { INTERLEAVE_COPY, INTERLEAVE_COPY },
    };

    if (mutant->fault == INTERLEAVE_MORE
        && strcmp(mutant->site.function, "shm_close") == 0)
        return false;
    return strcmp(mutant->site.function, "receiver") != 0
        && (mutant->site.kind == kinds[mutant->fault][0]
            || mutant->site.kind == kinds[mutant->fault][1]);
}

static void mutant_fails(const struct interleave_mutant *mutant)
{
    struct interleave_result result = { .failure = "" };
    size_t i = 0;

    while (i < DTN_COUNT(programs) && result.failure[0] == '\0')
        interleave_all(&programs[i++], mutant, &result);
    ok(result.failure[0] != '\0', "%s of %s() %s: found in \"%s\": %s",
       interleave_kind_names[mutant->site.kind], mutant->site.function,
       interleave_fault_names[mutant->fault], programs[i - 1].name,
       result.failure);
}

static void mutants_fail(void)
{
    struct interleave_mutant mutant;
    int n;
    const struct interleave_site *sites = interleave_sites(&n);

    for (int i = 0; i < n; i++)
        for (int f = INTERLEAVE_NONE + 1; f < INTERLEAVE_FAULTS; f++) {
            mutant = (struct interleave_mutant){
                sites[i], (enum interleave_fault)f
            };
            if (is_wrong(&mutant))
                mutant_fails(&mutant);
        }
}

int main(int argc, char **argv)
{
    if (argc > 1)
        more = atoi(argv[1]);
    programs_hold();
    mutants_fail();
    return done();
}
