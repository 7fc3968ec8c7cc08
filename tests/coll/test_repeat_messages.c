/* test_repeat_messages.c - messages that repeat are run without a check
 *
 * A message with the arguments of an earlier one, and a group with the messages
 * of an earlier group, run the executable of that time.  Here they repeat, take
 * turns, or differ in one thing; executables are evicted in between; a message
 * is recorded in a group; one rank repeats and the other does not.
 *
 * Without this test, a message could take its data from the wrong buffer, or
 * run an executable that is no longer there.
 */
#include "base/compiler.h"
#include "base/lru.h"
#include "dtensor.h"
#include "tests/support/world.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PAIR = 2, TRIO = 3, ROUNDS = 3, MOST = DTN_LRU_LIMIT + 40,
       SLOT = 8, SLOTS = 6, MESSAGES = 4, PLANS = 10, GROUPS = 1000 };

struct job {
    struct world w;
    int32_t *in, *out;            /* [MOST] in the arena                      */
};

#define good(call) need((call) == 0, "%s", job->w.err.text)

static void job_open(struct job *job)
{
    void *mem;

    world_open(&job->w);
    good(dtensor_alloc(job->w.ctx, MOST * sizeof *job->in, &mem,
                       &job->w.err));
    job->in = mem;
    good(dtensor_alloc(job->w.ctx, MOST * sizeof *job->out, &mem,
                       &job->w.err));
    job->out = mem;
    memset(job->in, 0, MOST * sizeof *job->in);
}

static void job_close(struct job *job)
{
    dtensor_free(job->w.ctx, job->in);
    dtensor_free(job->w.ctx, job->out);
    dtensor_fini(job->w.ctx);
}

/* More calls than executables are kept. */
static void job_evict(struct job *job)
{
    for (size_t count = 1; count < MOST; count++)
        good(dtensor_allreduce(job->w.mesh, job->in, job->out, count,
                               DTENSOR_I32, DTENSOR_SUM, &job->w.err));
}

/* ------------------------------------------------------------- messages --- */

/* One message from `sender` to the other rank. */
static void message(struct job *job, int sender, int32_t *buf, size_t count,
                    enum dtensor_dtype dtype)
{
    const int rc = job->w.rank == sender
                 ? dtensor_send(job->w.mesh, 1 - sender, buf, count, dtype,
                                &job->w.err)
                 : dtensor_recv(job->w.mesh, sender, buf, count, dtype,
                                &job->w.err);

    need(rc == 0, "%s", job->w.err.text);
}

/* The same message again, at the end of a group. */
static void message_late(struct job *job, int sender, int32_t *buf,
                         size_t count)
{
    const int32_t was = buf[0];

    buf[0] = job->w.rank == sender ? was : -1;
    good(dtensor_group_begin(job->w.ctx, &job->w.err));
    message(job, sender, buf, count, DTENSOR_I32);
    need(job->w.rank == sender || buf[0] == -1, "it came before the end");
    good(dtensor_group_end(job->w.ctx, &job->w.err));
    need(buf[0] == was, "%d, not %d", buf[0], was);
}

/* Messages that differ in one argument take turns, in both directions. */
static void messages_main(int rank, int n, void *arg)
{
    static const struct { int at; size_t count; } cases[] = {
        { 0, 4 }, { 0, 3 }, { 8, 3 }, { 8, 4 }, { 0, 4 }
    };
    struct job job_here, *job = &job_here;

    (void)n;
    (void)arg;
    job_open(job);
    for (int round = 0; round < 8 * ROUNDS; round++) {
        const int at = cases[round % 5].at, sender = round / 2 % 2;
        const size_t count = cases[round % 5].count;

        for (int i = 0; i < 12; i++)
            job->out[i] = rank == sender ? 100 * round + i : -1;
        message(job, sender, job->out + at, count, DTENSOR_I32);
        for (int i = 0; i < 12; i++)
            need(job->out[i] == (rank == sender
                                 || (i >= at && i < at + (int)count)
                                 ? 100 * round + i : -1),
                 "round %d: element %d is %d", round, i, job->out[i]);
        message_late(job, sender, job->out + at, count);
        need(dtensor_send(job->w.mesh, 2, job->out + at, count, DTENSOR_I32,
                          &job->w.err) == DTENSOR_EINVAL, "there is no rank 2");
        if (round % 8 == 7)
            job_evict(job);
    }
    job_close(job);
}

/* What rank 0 sends repeats; rank 1 receives another dtype. */
static void message_floats_main(int rank, int n, void *arg)
{
    struct job job_here, *job = &job_here;
    int rc;

    (void)n;
    (void)arg;
    job_open(job);
    for (int round = 0; round < ROUNDS; round++)
        message(job, 0, job->out, 4, DTENSOR_I32);
    rc = rank == 0 ? dtensor_send(job->w.mesh, 1, job->out, 4, DTENSOR_I32,
                                  &job->w.err)
                   : dtensor_recv(job->w.mesh, 0, job->out, 4, DTENSOR_F32,
                                  &job->w.err);
    need(rc == (rank == 0 ? 0 : DTENSOR_EMISMATCH), "%s", job->w.err.text);
    job_close(job);
}

/* --------------------------------------------------------------- groups --- */

/* A message of each rank to the rank `ahead` of it, from a slot of IN to
 * a slot of OUT.  Up to three have different peers and need no packing.
 */
struct message {
    int ahead, from, to;
    size_t count;
};

struct plan {
    struct message messages[MESSAGES];
    int n;
    enum dtensor_dtype dtype;     /* of all messages                          */
    int sums;                     /* allreduces, which come last              */
    bool started;                 /* by dtensor_group_start()                 */
};

static unsigned dice(uint64_t *state, unsigned sides)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(*state >> 33) % sides;
}

/* One thing is another one.  Or none. */
static void plan_change(struct plan *plan, uint64_t *state)
{
    struct message *last = &plan->messages[plan->n - 1];
    const int to = plan->messages[0].to, ahead = plan->messages[0].ahead;

    switch (dice(state, 10)) {
    case 0:
        plan->n = plan->n < MESSAGES ? plan->n + 1 : plan->n;
        break;
    case 1:
        plan->n -= plan->n > 1;
        break;
    case 2:
        plan->sums = !plan->sums;
        break;
    case 3:
        plan->started = !plan->started;
        break;
    case 4:
        last->from = (int)dice(state, SLOTS);
        break;
    case 5:
        last->count = 1 + dice(state, SLOT);
        break;
    case 6:
        plan->messages[0].to = last->to;
        last->to = to;
        break;
    case 7:
        plan->messages[0].ahead = last->ahead;
        last->ahead = ahead;
        break;
    default:
        break;
    }
}

static void plan_record(struct job *job, const struct plan *plan)
{
    const int me = job->w.rank, n = job->w.n;

    for (int i = 0; i < plan->n; i++) {
        const struct message *m = &plan->messages[i];

        good(dtensor_send(job->w.mesh, (me + m->ahead) % n,
                          job->in + m->from * SLOT, m->count, plan->dtype,
                          &job->w.err));
        good(dtensor_recv(job->w.mesh, (me + n - m->ahead) % n,
                          job->out + m->to * SLOT, m->count, plan->dtype,
                          &job->w.err));
    }
    for (int i = 0; i < plan->sums; i++)
        good(dtensor_allreduce(job->w.mesh, job->in,
                               job->out + SLOTS * SLOT, SLOT, DTENSOR_I32,
                               DTENSOR_SUM, &job->w.err));
}

static void plan_end(struct job *job, bool started)
{
    struct dtensor_request *request;

    if (!started) {
        good(dtensor_group_end(job->w.ctx, &job->w.err));
        return;
    }
    good(dtensor_group_start(job->w.ctx, &request, &job->w.err));
    good(dtensor_wait(request, &job->w.err));
}

/* What the rank has at `i` of its input in this round. */
static int32_t input(int rank, int round, int i)
{
    return 100000 * rank + 100 * round + i;
}

static void plan_expect(int rank, const struct plan *plan, int round,
                        int32_t out[(SLOTS + 1) * SLOT])
{
    memset(out, 0xff, (SLOTS + 1) * SLOT * sizeof *out);
    for (int i = 0; i < plan->n; i++) {
        const struct message *m = &plan->messages[i];
        const int peer = (rank + TRIO - m->ahead) % TRIO;

        for (int k = 0; k < (int)m->count; k++)
            out[m->to * SLOT + k] = input(peer, round, m->from * SLOT + k);
    }
    for (int k = 0; plan->sums && k < SLOT; k++)
        out[SLOTS * SLOT + k] = input(0, round, k) + input(1, round, k)
                              + input(2, round, k);
}

/* Executables are evicted while a started group has its own. */
static void groups_evict_started(struct job *job, const struct plan *plan)
{
    struct dtensor_request *request;

    good(dtensor_group_begin(job->w.ctx, &job->w.err));
    plan_record(job, plan);
    good(dtensor_group_start(job->w.ctx, &request, &job->w.err));
    job_evict(job);
    good(dtensor_wait(request, &job->w.err));
}

static void groups_run(struct job *job, const struct plan *plan, int round)
{
    int32_t expected[(SLOTS + 1) * SLOT];

    for (int i = 0; i < SLOTS * SLOT; i++)
        job->in[i] = input(job->w.rank, round, i);
    memset(job->out, 0xff, sizeof expected);
    plan_expect(job->w.rank, plan, round, expected);
    good(dtensor_group_begin(job->w.ctx, &job->w.err));
    plan_record(job, plan);
    plan_end(job, plan->started);
    need(memcmp(job->out, expected, sizeof expected) == 0,
         "round %d, %d messages: wrong data", round, plan->n);
}

/* A message becomes two collectives and comes back; executables are evicted. */
static void groups_scripted(struct job *job, struct plan plan)
{
    groups_run(job, &plan, 0);
    plan.n--;
    plan.sums = 2;                /* a send and a receive less, two more      */
    groups_run(job, &plan, 1);
    plan.n++;
    plan.sums = 0;
    groups_run(job, &plan, 2);
    job_evict(job);
    groups_run(job, &plan, 3);
    groups_evict_started(job, &plan);
    groups_run(job, &plan, 4);
}

/* Three groups take turns, then any of more than are kept; they change. */
static void groups_main(int rank, int n, void *arg)
{
    struct job job_here, *job = &job_here;
    struct plan plans[PLANS];
    uint64_t state = 7;

    (void)rank;
    (void)n;
    (void)arg;
    job_open(job);
    for (int p = 0; p < PLANS; p++) {
        plans[p] = (struct plan){ .n = 2, .dtype = DTENSOR_I32 };
        for (int i = 0; i < MESSAGES; i++)
            plans[p].messages[i] = (struct message){
                .ahead = (i + 1) % TRIO, .from = (i + p) % SLOTS, .to = i,
                .count = SLOT };
    }
    groups_scripted(job, plans[0]);
    for (int round = 5; round < GROUPS; round++) {
        const bool turns = round / 20 % 2;
        struct plan *plan = &plans[turns ? round % 3
                                         : (int)dice(&state, PLANS)];

        groups_run(job, plan, round);
        for (int i = 0; i < round % 3 && !turns; i++)
            plan_change(plan, &state);
    }
    job_close(job);
}

/* The messages of rank 0 repeat, those of rank 1 have another length, or the
 * elements of floats.
 */
static void group_differs(int rank, size_t more, enum dtensor_dtype dtype)
{
    struct job job_here, *job = &job_here;
    struct plan plan = { .messages = { { .ahead = 1, .count = 4 } },
                         .n = 1, .dtype = DTENSOR_I32 };
    int rc;

    job_open(job);
    for (int round = 0; round < ROUNDS; round++) {
        good(dtensor_group_begin(job->w.ctx, &job->w.err));
        plan_record(job, &plan);
        good(dtensor_group_end(job->w.ctx, &job->w.err));
    }
    good(dtensor_group_begin(job->w.ctx, &job->w.err));
    if (rank == 1) {
        plan.messages[0].count += more;
        plan.dtype = dtype;
    }
    plan_record(job, &plan);
    rc = dtensor_group_end(job->w.ctx, &job->w.err);
    need(rc == DTENSOR_EMISMATCH, "%d", rc);
    job_close(job);
}

static void group_longer_main(int rank, int n, void *arg)
{
    (void)n;
    (void)arg;
    group_differs(rank, 1, DTENSOR_I32);
}

static void group_floats_main(int rank, int n, void *arg)
{
    (void)n;
    (void)arg;
    group_differs(rank, 0, DTENSOR_F32);
}

static void check(int ranks, rank_main_f *fn, const char *claim)
{
    static const char *const wires[] = { "shm", "tcp" };

    for (size_t w = 0; w < DTN_COUNT(wires); w++) {
        const char *path = ranks_file(wires[w], ranks, NULL);

        setenv("DTN_CLUSTER", path, 1);
        ok(ranks_run(ranks, 60, fn, NULL, NULL) == 0, "%s: %s", wires[w],
           claim);
        unlink(path);
    }
}

int main(void)
{
    check(PAIR, messages_main, "messages that differ in one argument");
    check(PAIR, message_floats_main, "one rank has another dtype: an error");
    check(TRIO, groups_main, "groups that repeat, or differ in one thing");
    check(PAIR, group_longer_main, "a group repeats on one rank: an error");
    check(PAIR, group_floats_main, "the bytes of another dtype: an error");
    return done();
}
