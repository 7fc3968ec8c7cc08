/* rails.c - a flat algorithm among the hosts
 *
 * With few hosts an owner sends to all others of its rail at once
 * (hierarchy_buffer.c).  Over 512 hosts that are 511 messages each way.  Here
 * the owners of a rail run an algorithm that knows no hosts, such as recursive
 * halving: its schedule is made for a group with one rank on each host.  Its
 * steps are appended with other names: host 3 is rank 25, if hosts have 8 ranks
 * and this is rail 1; its IN is a part of this rank's ACC, with the terms that
 * were folded over the host.
 *
 * If hosts have unequal numbers of ranks, a rank of a rail sends and receives
 * the blocks of all its share (hierarchy.h) as one block.
 *
 * Example: an allreduce of 32 KiB over 512 hosts of 8 ranks.  Each rail has 4
 * KiB, which go to 9 hosts and come from 9, in parts of 2 KiB, 1 KiB, ...  A
 * device sends 64 KiB, as it would for any number of hosts.
 */
#include "sched/emit/rails.h"
#include "sched/call.h"
#include "sched/emit/emit.h"
#include "sched/emit/hierarchy.h"
#include "sched/sched.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>

struct dtn_rail dtn_rail_make(const struct dtn_hierarchy *h)
{
    struct dtn_rail rail = { .h = h };

    for (int s = 0; s < DTN_NSPACES; s++)
        rail.place[s].space = (enum dtn_space)s;
    return rail;
}

struct dtn_call dtn_rail_call(const struct dtn_hierarchy *h, size_t count)
{
    struct dtn_call call = *h->call;

    call.n = h->nhosts;
    call.me = h->host;
    call.count = count;
    call.counts = call.starts = NULL;
    call.hosts = NULL;
    if (call.divisor == 0 && call.redop == DTENSOR_AVG)
        call.divisor = h->call->n;
    return call;
}

static void rail_fail(struct dtn_rail *rail)
{
    rail->h->sched->steps_capacity = -1;
}

/* Room for `lists` lists of counts, each with its starts; NULL: none is needed,
 * since all blocks are as long, or there is no memory.
 */
static size_t *rail_lists(struct dtn_rail *rail, size_t lists)
{
    const struct dtn_hierarchy *h = rail->h;
    const size_t n = (size_t)h->nhosts;

    if (!h->call->counts && h->call->n == h->nhosts * h->nrails)
        return NULL;
    rail->counts = malloc(lists * (2 * n + 1) * sizeof *rail->counts);
    if (!rail->counts)
        rail_fail(rail);
    return rail->counts;
}

/* Elements of the share of this rail on a host. */
static size_t rail_share(const struct dtn_rail *rail, int host)
{
    const struct dtn_hierarchy *h = rail->h;

    return dtn_share_bytes(h, h->local, host, h->call->n)
         / dtensor_dtype_size(h->call->dtype);
}

static void rail_sum(const size_t counts[], int n, size_t starts[])
{
    starts[0] = 0;
    for (int k = 0; k < n; k++)
        starts[k + 1] = starts[k] + counts[k];
}

void dtn_rail_blocks(struct dtn_rail *rail, struct dtn_call *call)
{
    const int n = rail->h->nhosts;
    size_t *counts = rail_lists(rail, 1);

    if (!counts)
        return;
    for (int k = 0; k < n; k++)
        counts[k] = rail_share(rail, k);
    rail_sum(counts, n, counts + n);
    call->counts = counts;
    call->starts = counts + n;
}

void dtn_rail_pairs(struct dtn_rail *rail, struct dtn_call *call)
{
    const struct dtn_hierarchy *h = rail->h;
    const int n = h->nhosts;
    size_t *sent = rail_lists(rail, 2), *received;

    if (!sent)
        return;
    received = sent + 2 * n + 1;
    for (int k = 0; k < n; k++) {
        sent[k] = rail_share(rail, k) * (size_t)dtn_locals(h, h->host);
        received[k] = rail_share(rail, h->host) * (size_t)dtn_locals(h, k);
    }
    rail_sum(sent, n, sent + n);
    rail_sum(received, n, received + n);
    call->counts = sent;
    call->starts = sent + n;
    call->recv_counts = received;
    call->recv_starts = received + n;
}

/* ------------------------------------------------------------------ names */

static struct dtn_span rail_span(const struct dtn_rail *rail,
                                 struct dtn_span span)
{
    const struct dtn_span *place = &rail->place[span.space];

    return dtn_span_at(dtn_local_at(rail->h, span.rank, rail->h->local),
                       place->space, place->offset + span.offset);
}

/* Signals have a place if they have data or name one block. */
static void rail_step(struct dtn_rail *rail)
{
    struct dtn_step step = rail->flat.steps[rail->next++];
    const bool speaks = step.op == DTN_OP_SIGNAL || step.op == DTN_OP_WAIT;

    if (step.op <= DTN_OP_WAIT || step.op == DTN_OP_COPY
        || step.op == DTN_OP_REDUCE)
        step.peer = dtn_local_at(rail->h, step.peer, rail->h->local);
    if (step.op != DTN_OP_FLUSH
        && (!speaks || step.tag == DTN_TAG_EAGER || step.message_bytes > 0)) {
        step.dst = rail_span(rail, step.dst);
        step.src = rail_span(rail, step.src);
    }
    if (step.op == DTN_OP_FOLD && step.own_term >= 0)
        step.own = rail_span(rail, step.own);
    dtn_sched_add(rail->h->sched, &step);
}

/* Its spaces take room in those of this rank. */
static void rail_room(const struct dtn_rail *rail)
{
    struct dtn_sched *sched = rail->h->sched;

    for (int s = 0; s < DTN_NSPACES; s++) {
        const struct dtn_span *place = &rail->place[s];
        const size_t end = place->offset + rail->flat.bytes[s];

        if (rail->flat.bytes[s] > 0 && sched->bytes[place->space] < end)
            sched->bytes[place->space] = end;
        if (rail->flat.exposed[s])
            sched->exposed[place->space] = true;
    }
}

static bool rail_opens(const struct dtn_rail *rail)
{
    const struct dtn_step *step = &rail->flat.steps[rail->next];

    return rail->next < rail->flat.nsteps && step->op == DTN_OP_SIGNAL
        && step->tag == DTN_TAG_READY;
}

void dtn_rail_open(struct dtn_rail *rail, const struct dtn_call *call,
                   dtn_emit_f *emit)
{
    struct dtensor_error err;

    if (emit(call, &rail->flat, &err) != 0) {
        rail_fail(rail);
        return;
    }
    rail_room(rail);
    while (rail_opens(rail))
        rail_step(rail);
}

void dtn_rail_run(struct dtn_rail *rail)
{
    while (rail->next < rail->flat.nsteps)
        rail_step(rail);
    dtn_sched_fini(&rail->flat);
    free(rail->counts);
}
