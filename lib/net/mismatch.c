/* mismatch.c - two ranks called what is not the same: in words, on all ranks
 *
 * Who takes a signal with another fingerprint than its own knows that, and of
 * the other side's call no more than 32 bits.  So each side says over the tree
 * what it called, with count and root, before it gives up; all who hear of the
 * mismatch wait for both, and word them alike: "rank 1 on n0 called allreduce of
 * 3 f32 sum, rank 0 on n0 called allreduce of 4 f32 sum".
 */
#include "net/wire.h"

#include <string.h>
#include <time.h>

#define MISMATCH_TAG (UINT16_MAX - 1)

bool dtn_signal_mismatch(const struct dtn_signal *signal,
                         struct dtn_mismatch *mismatch)
{
    if (signal->tag != MISMATCH_TAG || signal->len != sizeof *mismatch)
        return false;
    memcpy(mismatch, signal->payload, sizeof *mismatch);
    return true;
}

/* Best effort: a peer whose queue is full finds the abort, and its code. */
static void mismatch_tell(struct dtensor_ctx *ctx,
                          const struct dtn_mismatch *mismatch)
{
    struct dtn_signal signal = { .tag = MISMATCH_TAG,
                                 .len = sizeof *mismatch };

    memcpy(signal.payload, mismatch, sizeof *mismatch);
    for (int r = 0; r < ctx->self.world_size; r++) {
        struct dtn_transport *tp = ctx->peers[r].tp;

        if (tp && ctx->peers[r].connected
            && tp->ops->signal(tp, r, &signal) == 0)
            ctx->peers[r].sent++;
    }
}

/* Tell what this rank called, if it did. */
static void mismatch_own(struct dtensor_ctx *ctx, int rank,
                         uint64_t fingerprint)
{
    struct dtn_said said;

    if (rank == ctx->self.rank && ctx->words->recall(ctx, fingerprint, &said))
        dtn_boot_say(ctx->boot, rank, &said);
}

/* Others may have found another mismatch, of which this rank is one side. */
static void mismatch_answer(struct dtensor_ctx *ctx)
{
    for (int r = 0; r < ctx->self.world_size; r++) {
        const struct dtn_gone *gone = dtn_boot_gone(ctx->boot, r);

        if (gone->order > 0 && gone->code == DTENSOR_EMISMATCH)
            mismatch_own(ctx, gone->mismatch.rank, gone->mismatch.called);
    }
}

/* Until it is known what that rank called, and what it found: but it may be
 * computing, or dead.
 */
static void mismatch_listen(struct dtensor_ctx *ctx, int rank,
                            uint64_t fingerprint)
{
    const struct dtn_gone *gone = dtn_boot_gone(ctx->boot, rank);
    const struct timespec pause = { 0, 1000000 };
    const int64_t start = dtn_now_ns();
    int64_t patience = DTN_STALL_NS;

    while (rank != ctx->self.rank && dtn_now_ns() - start < patience) {
        for (int t = 0; t < ctx->ntransports; t++)
            ctx->transports[t]->ops->progress(ctx->transports[t]);
        dtn_boot_watch(ctx->boot);
        mismatch_answer(ctx);
        if (dtn_boot_said(ctx->boot, rank, fingerprint)) {
            if (gone->order > 0)
                break;
            patience = DTN_STALL_NS / 10;
        }
        nanosleep(&pause, NULL);
    }
}

/* "rank 1 on n0 called allreduce of 3 f32 sum": one side. */
static void mismatch_side(const struct dtensor_ctx *ctx, int rank,
                          uint64_t fingerprint, bool numbered, char *buf,
                          size_t size)
{
    const struct dtn_said unknown = { .fingerprint = fingerprint };
    const struct dtn_said *said = dtn_boot_said(ctx->boot, rank, fingerprint);
    char name[160], what[160], number[48] = "";

    if (numbered)
        snprintf(number, sizeof number, " as %s %u %s", said->group == 0
                 ? "message" : "call", (unsigned)said->number,
                 said->group == 0 ? "between them" : "over these ranks");
    snprintf(buf, size, "%s called %s%s", dtn_ctx_rank_name(ctx, rank, name,
             sizeof name), ctx->words->describe(said ? said : &unknown, what,
             sizeof what), number);
}

/* Did they call the same over the same ranks, one of them once more often? */
static bool mismatch_counted(const struct dtensor_ctx *ctx,
                             const struct dtn_mismatch *mismatch)
{
    const struct dtn_said *a = dtn_boot_said(ctx->boot, mismatch->rank,
                                             mismatch->called);
    const struct dtn_said *b = dtn_boot_said(ctx->boot, mismatch->witness,
                                             mismatch->expected);

    return a && b && a->group == b->group && a->number > 0 && b->number > 0
        && a->number != b->number;
}

/* The signals of a call that waits for nobody are met in a later one.  If what
 * this rank called as the earlier of the two is yet another thing, it was that.
 */
static void mismatch_earlier(struct dtensor_ctx *ctx, struct dtn_mismatch *found)
{
    const struct dtn_said *a = dtn_boot_said(ctx->boot, found->rank,
                                             found->called);
    const struct dtn_said *b = dtn_boot_said(ctx->boot, found->witness,
                                             found->expected);
    const struct dtn_said *earlier = a->number < b->number ? a : b;
    struct dtn_said mine;

    for (int i = 0; i < DTN_SAID_MAX; i++)
        if (ctx->words->recall(ctx, ctx->said[i].fingerprint, &mine)
            && mine.group == earlier->group && mine.number == earlier->number
            && mine.fingerprint != earlier->fingerprint) {
            *found = (struct dtn_mismatch){
                .rank = earlier == a ? found->rank : found->witness,
                .called = earlier->fingerprint, .witness = ctx->self.rank,
                .expected = mine.fingerprint };
            dtn_boot_say(ctx->boot, ctx->self.rank, &mine);
            return;
        }
}

int dtn_poison_mismatch(struct dtensor_ctx *ctx,
                        const struct dtn_mismatch *mismatch)
{
    struct dtn_mismatch found = *mismatch;
    char what[640], called[240], expected[240];
    bool counted;

    if (ctx->failure.code != 0)
        return ctx->failure.code;
    ctx->mismatch = *mismatch;
    mismatch_own(ctx, mismatch->rank, mismatch->called);
    mismatch_own(ctx, mismatch->witness, mismatch->expected);
    mismatch_tell(ctx, mismatch);
    dtn_poison_tell(ctx, DTENSOR_EMISMATCH, mismatch->rank);
    mismatch_listen(ctx, mismatch->rank, mismatch->called);
    mismatch_listen(ctx, mismatch->witness, mismatch->expected);
    if (mismatch_counted(ctx, &found))
        mismatch_earlier(ctx, &found);
    counted = mismatch_counted(ctx, &found);
    mismatch_side(ctx, found.rank, found.called, counted, called,
                  sizeof called);
    mismatch_side(ctx, found.witness, found.expected, counted, expected,
                  sizeof expected);
    snprintf(what, sizeof what, "%s, %s (all ranks must make the same calls in "
             "the same order)", called, expected);
    return dtn_poison_words(ctx, DTENSOR_EMISMATCH, found.rank, what);
}

/* This rank has waited long.  It says in what, unless another has said the same;
 * who called something else as the same call over the same ranks is found so,
 * though neither waits for the other: two roots of a broadcast.
 */
int dtn_mismatch_stalled(struct dtensor_ctx *ctx)
{
    const struct dtn_said *last = &ctx->said[ctx->calls % DTN_SAID_MAX];
    const struct dtn_told *told;
    struct dtn_said mine;

    if (ctx->making)
        last = ctx->making;
    if (!ctx->words || !ctx->words->recall(ctx, last->fingerprint, &mine)
        || mine.number == 0)
        return 0;
    for (uint32_t i = 0; (told = dtn_boot_told(ctx->boot, i)); i++)
        if (told->said.group == mine.group && told->said.number == mine.number
            && told->said.fingerprint != mine.fingerprint)
            return dtn_poison_mismatch(ctx, &(struct dtn_mismatch){
                .rank = told->rank, .witness = ctx->self.rank,
                .called = told->said.fingerprint,
                .expected = mine.fingerprint });
    dtn_boot_say(ctx->boot, ctx->self.rank, &mine);
    return 0;
}

bool dtn_mismatch_heard(struct dtensor_ctx *ctx, int peer,
                        struct dtn_mismatch *mismatch)
{
    struct dtn_transport *tp = ctx->peers[peer].tp;
    const struct dtn_signal *signal;

    while (tp && ctx->peers[peer].connected
           && (signal = tp->ops->peek(tp, peer))) {
        if (dtn_signal_mismatch(signal, mismatch))
            return true;
        dtn_consume(ctx, peer);
    }
    return false;
}

bool dtn_mismatch_told(struct dtensor_ctx *ctx, int peer,
                       struct dtn_mismatch *mismatch)
{
    int culprit, code;

    if (dtn_boot_gone(ctx->boot, peer)->order == 0)
        dtn_gone_news(ctx, peer, &culprit, &code);
    for (int r = 0; r < ctx->self.world_size; r++) {
        *mismatch = dtn_boot_gone(ctx->boot, r)->mismatch;
        if (mismatch->rank != mismatch->witness)
            return true;
    }
    return false;
}
