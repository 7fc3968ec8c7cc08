/* mismatch.c - the report of an unexpected signal
 *
 * The fingerprint of a signal is that of the call, xored with the match bits of
 * its step: what both sides must agree on beyond the call, such as the 100
 * floats of a send.  They show the direction too, or the blocks of both
 * directions, so two steps with the same bits have the same record.  A rank
 * that receives another fingerprint, or hears of one, reports its own call;
 * job/mismatch.c writes the error from both reports.
 */
#include "coll/exec/mismatch.h"
#include "boot/boot.h"
#include "coll/exec/exec.h"
#include "coll/exec/run.h"
#include "coll/record.h"
#include "coll/state.h"
#include "job/await.h"
#include "job/ctx.h"
#include "sched/call.h"
#include "sched/fingerprint.h"
#include "sched/sched.h"

#include <stdbool.h>

/* The bytes to or from the peer at a position. */
static size_t run_bytes(const struct dtn_exec_run *run, int position,
                        bool is_recv)
{
    const struct dtn_sched *sched = &run->exec->sched;

    for (int s = 0; s < sched->nsteps; s++)
        if (sched->steps[s].match_bits != 0
            && sched->steps[s].peer == position
            && sched->steps[s].is_recv == is_recv)
            return sched->steps[s].message_bytes;
    return 0;
}

/* The record of a step of this rank with match bits: bytes to or from a peer;
 * of an all-to-all both.
 */
static void step_said(const struct dtn_exec_run *run,
                      const struct dtn_step *step,
                      struct dtn_call_record *record)
{
    size_t size;

    if (!dtn_record_recall(run->ctx, run->fingerprint, record))
        *record = run->exec->record;
    record->kind = step->is_recv ? DTN_RECORD_RECEIVED : DTN_RECORD_SENT;
    record->fingerprint = run->fingerprint ^ step->match_bits;
    record->other = run->exec->peers[step->peer].rank;
    size = dtn_fingerprint_size(record->fingerprint);
    record->count = step->message_bytes / size;
    if (!run->exec->messages) {
        record->kind = DTN_RECORD_BLOCKS;
        record->count = run_bytes(run, step->peer, false) / size;
        record->back = run_bytes(run, step->peer, true) / size;
    } else
        record->number = dtn_coll_of(run->ctx)->peers[record->other]
                           .messages[step->is_recv];
}

/* The record of this rank's step to or from a peer with that fingerprint. */
static bool run_message(const struct dtensor_ctx *ctx, int peer,
                        uint64_t fingerprint, struct dtn_call_record *record)
{
    const struct dtn_exec_run *run = dtn_coll_of(ctx)->run;

    for (int s = 0; run && s < run->exec->sched.nsteps; s++) {
        const struct dtn_step *step = &run->exec->sched.steps[s];

        if (step->match_bits != 0 && run->exec->peers[step->peer].rank == peer
            && (run->fingerprint ^ step->match_bits) == fingerprint) {
            step_said(run, step, record);
            return true;
        }
    }
    return false;
}

static bool run_waits(const struct dtensor_ctx *ctx,
                      struct dtn_call_record *record)
{
    const struct dtn_exec_run *run = dtn_coll_of(ctx)->run;
    const struct dtn_step *step;

    if (!run || run->progress.step >= run->progress.end)
        return false;
    step = &run->exec->sched.steps[run->progress.step];
    if (step->match_bits == 0)
        return false;
    step_said(run, step, record);
    return true;
}

static bool run_edge(const struct dtensor_ctx *ctx, int peer, bool comes,
                     struct dtn_call_record *record)
{
    const struct dtn_exec_run *run = dtn_coll_of(ctx)->run;

    for (int s = 0; run && s < run->exec->sched.nsteps; s++) {
        const struct dtn_step *step = &run->exec->sched.steps[s];

        if (step->match_bits != 0
            && (step->is_recv == comes || !run->exec->messages)
            && run->exec->peers[step->peer].rank == peer) {
            step_said(run, step, record);
            return true;
        }
    }
    return false;
}

const struct dtn_call_describer dtn_coll_describer = {
    .describe = dtn_record_describe, .recall = dtn_record_recall,
    .numbered = dtn_record_numbered, .message = run_message,
    .waits = run_waits, .edge = run_edge
};

/* Is it the message that this rank expects, but an earlier or later one of the
 * pair?
 */
static uint32_t run_other_turn(const struct dtn_exec_run *run, int rank,
                               uint64_t fingerprint, uint64_t expected)
{
    const uint32_t mine = dtn_coll_of(run->ctx)->peers[rank].messages[true];
    const uint64_t turn = dtn_fingerprint_mix(DTN_MIX_TURN, mine);

    for (uint32_t i = 1; run->exec->messages && i < 2 * DTN_RECORD_MAX; i++) {
        if ((fingerprint ^ expected ^ turn)
            == dtn_fingerprint_mix(DTN_MIX_TURN, mine + i))
            return mine + i;
        if (i < mine && (fingerprint ^ expected ^ turn)
                        == dtn_fingerprint_mix(DTN_MIX_TURN, mine - i))
            return mine - i;
    }
    return 0;
}

/* The payload of a message has a size, so a sender that is gone need not report
 * it.
 */
static void run_heard(const struct dtn_exec_run *run, int rank,
                      uint64_t expected, const struct dtn_signal *signal)
{
    if (signal->tag == DTN_TAG_EAGER
        && dtn_fingerprint_coll(signal->fingerprint) == DTN_COLL_PAIRS)
        dtn_boot_report_call(run->ctx->boot, rank, &(struct dtn_call_record){
            .kind = DTN_RECORD_SENT, .fingerprint = signal->fingerprint,
            .group = run->exec->record.group, .other = run->ctx->world.rank,
            .number = run_other_turn(run, rank, signal->fingerprint, expected),
            .count = signal->len / dtn_fingerprint_size(signal->fingerprint) });
}

/* The match bits of the awaited step.  DATA has none: the READY before it had
 * them.
 */
static uint64_t run_match_bits(const struct dtn_exec_run *run,
                         const struct dtn_step *step)
{
    const struct dtn_sched *sched = &run->exec->sched;

    for (int s = 0; step->match_bits == 0 && s < sched->nsteps; s++)
        if (sched->steps[s].match_bits != 0 && sched->steps[s].is_recv
            && sched->steps[s].peer == step->peer)
            return sched->steps[s].match_bits;
    return step->match_bits;
}

/* A signal that this step does not expect: of another call, or a failure
 * notice.
 */
int dtn_run_mismatch(const struct dtn_exec_run *run,
                     const struct dtn_step *step,
                     const struct dtn_signal *signal)
{
    struct dtn_mismatch mismatch;

    if (!dtn_signal_mismatch(signal, &mismatch))
        mismatch = (struct dtn_mismatch){
            .rank = run->exec->peers[step->peer].rank,
            .witness = run->ctx->world.rank, .called = signal->fingerprint,
            .expected = run->fingerprint ^ run_match_bits(run, step) };
    if (mismatch.witness == run->ctx->world.rank)
        run_heard(run, mismatch.rank, mismatch.expected, signal);
    return dtn_poison_mismatch(run->ctx, &mismatch);
}
