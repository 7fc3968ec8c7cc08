/* said.c - a signal that was not expected, in words
 *
 * The fingerprint of a signal is that of the call, mixed with the salt of its
 * step: what both sides must mean beyond the call, as the 100 floats of a send.
 * A rank that finds another one, or hears of one, tells what it meant itself;
 * net/mismatch.c makes a sentence of both.
 */
#include "coll/exec/exec.h"

/* What this rank means by a step whose own fingerprint that is, if it has one. */
static void run_say(const struct exec_run *run, uint64_t fingerprint)
{
    const struct dtn_sched *sched = &run->plan->sched;
    const struct dtn_step *step = sched->steps, *end = step + sched->nsteps;
    struct dtn_said said = run->plan->said;

    while (step < end && (step->salt == 0
                          || (run->fingerprint ^ step->salt) != fingerprint))
        step++;
    if (step == end)
        return;
    said.kind = step->comes ? DTN_SAID_RECEIVED : DTN_SAID_SENT;
    said.fingerprint = fingerprint;
    said.other = run->plan->peers[step->peer].rank;
    said.count = step->about / dtn_fingerprint_size(fingerprint);
    if (run->plan->messages)
        said.number = run->ctx->peers[said.other].messages[step->comes];
    dtn_boot_say(run->ctx->boot, run->ctx->self.rank, &said);
}

/* Is it the message that this rank means, but an earlier or a later one? */
static uint32_t run_other_turn(const struct exec_run *run, int rank,
                               uint64_t fingerprint, uint64_t expected)
{
    const uint32_t mine = run->ctx->peers[rank].messages[true];
    const uint64_t turn = dtn_fingerprint_mix(DTN_MIX_TURN, mine);

    for (uint32_t i = 1; run->plan->messages && i < 2 * DTN_SAID_MAX; i++) {
        if ((fingerprint ^ expected ^ turn)
            == dtn_fingerprint_mix(DTN_MIX_TURN, mine + i))
            return mine + i;
        if (i < mine && (fingerprint ^ expected ^ turn)
                        == dtn_fingerprint_mix(DTN_MIX_TURN, mine - i))
            return mine - i;
    }
    return 0;
}

/* What came with a signal has a size: so a sender that is gone need not say. */
static void run_heard(const struct exec_run *run, int rank, uint64_t expected,
                      const struct dtn_signal *signal)
{
    const enum dtn_coll coll = dtn_fingerprint_coll(signal->fingerprint);

    if (signal->tag == DTN_TAG_CARRY
        && (coll == DTN_COLL_PAIRS || coll == DTN_COLL_ALL_TO_ALL))
        dtn_boot_say(run->ctx->boot, rank, &(struct dtn_said){
            .kind = DTN_SAID_SENT, .fingerprint = signal->fingerprint,
            .group = run->plan->said.group, .other = run->ctx->self.rank,
            .number = run_other_turn(run, rank, signal->fingerprint, expected),
            .count = signal->len / dtn_fingerprint_size(signal->fingerprint) });
}

/* The salt of what a step waits for: DATA has none, but READY before it had. */
static uint64_t run_salt(const struct exec_run *run,
                         const struct dtn_step *step)
{
    const struct dtn_sched *sched = &run->plan->sched;

    for (int s = 0; step->salt == 0 && s < sched->nsteps; s++)
        if (sched->steps[s].salt != 0 && sched->steps[s].comes
            && sched->steps[s].peer == step->peer)
            return sched->steps[s].salt;
    return step->salt;
}

/* A signal other than the one of this step: another call, or news of one. */
int dtn_run_mismatch(const struct exec_run *run, const struct dtn_step *step,
                     const struct dtn_signal *signal)
{
    struct dtn_mismatch mismatch;

    if (!dtn_signal_mismatch(signal, &mismatch))
        mismatch = (struct dtn_mismatch){
            .rank = run->plan->peers[step->peer].rank,
            .witness = run->ctx->self.rank, .called = signal->fingerprint,
            .expected = run->fingerprint ^ run_salt(run, step) };
    if (mismatch.rank == run->ctx->self.rank)
        run_say(run, mismatch.called);
    if (mismatch.witness == run->ctx->self.rank) {
        run_say(run, mismatch.expected);
        run_heard(run, mismatch.rank, mismatch.expected, signal);
    }
    return dtn_poison_mismatch(run->ctx, &mismatch);
}
