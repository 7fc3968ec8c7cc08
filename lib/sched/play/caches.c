/* caches.c - where cache lines are while schedules run
 *
 * Memory is followed in pieces of 1 KiB.  A piece knows who wrote it last, who
 * read it since, and how many bytes each of the two had used by then: when they
 * have used more than a cache holds since, the piece has left the cache.
 * Example: a rank writes its input of 64 KiB, and a peer loads it.  The peer
 * finds the lines THERE.  The rank that writes it again finds them READ, or
 * AWAY_READ after its peer has used 1 MiB of other memory.  A line that its
 * writer reads again from beyond its cache comes back clean: to store there
 * takes a peer as long as if a third one had read it.
 *
 * Memory of all ranks together fills the cache that they share.  What has left
 * that one comes from DRAM.
 */
#include "sched/caches.h"
#include "base/array.h"
#include "base/box.h"
#include "base/error.h"
#include "dtensor.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#define PIECE_BYTES ((size_t)1 << 10)

/* Who has a piece, and how many bytes that rank, and all ranks, had used by
 * then.
 */
struct holder {
    int rank;                     /* -1: nobody                               */
    double used, all;
};

struct users {
    struct holder writer, reader;
    double clean;                 /* share that the writer has read again     */
                                  /* after it had left its cache              */
};

struct space {
    struct users *piece;          /* [npieces]                                */
    int npieces, capacity;        /* used and allocated                       */
};

/* What a rank has used so far, and its last step. */
struct usage {
    double bytes, before;         /* used with this step, and before it       */
    double begin_ns, end_ns;      /* of the step                              */
    bool elsewhere;               /* it loads or stores lines of others       */
};

struct dtn_caches {
    struct dtn_cache_costs costs; /* of bytes                                 */
    int ranks;                    /* of the host                              */
    struct usage *used;           /* [ranks]                                  */
    double all;                   /* bytes that all have used                 */
    int user;                     /* the rank that uses lines now             */
    double now_ns, passed;        /* how far it is, and bytes it has used     */
    double known;                 /* bytes of memory that were ever used      */
    struct space *space;          /* [ranks][DTN_NSPACES]                     */
    struct dtn_span *named;       /* [ranks][ranks] where the memory of the   */
                                  /* second begins for the first              */
    bool failed;                  /* out of memory                            */
};

/* Bytes of a use by where their lines are, and those of them that are beyond
 * the shared cache.
 */
struct lines { double bytes[DTN_NLINES_STATES], beyond; };

size_t dtn_cache_size(int index)
{
    return (size_t)64 << 3 * index;
}

int dtn_caches_create(const struct dtn_cache_costs *costs, int ranks,
                      struct dtn_caches **cachesp, struct dtensor_error *err)
{
    const size_t n = (size_t)ranks;
    struct dtn_caches *caches = calloc(1, sizeof *caches);

    if (caches) {
        caches->costs = *costs;
        caches->ranks = ranks;
        caches->used = calloc(n, sizeof *caches->used);
        caches->space = calloc(n * DTN_NSPACES, sizeof *caches->space);
        caches->named = calloc(n * n, sizeof *caches->named);
    }
    if (!caches || !caches->used || !caches->space || !caches->named) {
        dtn_caches_destroy(caches);
        return dtn_fail_nomem(err, "caches", n * sizeof *caches->space);
    }
    *cachesp = caches;
    return 0;
}

void dtn_caches_destroy(struct dtn_caches *caches)
{
    if (!caches)
        return;
    for (int i = 0; caches->space && i < caches->ranks * DTN_NSPACES; i++)
        free(caches->space[i].piece);
    free(caches->space);
    free(caches->named);
    free(caches->used);
    free(caches);
}

bool dtn_caches_failed(const struct dtn_caches *caches)
{
    return caches->failed;
}

/* ---------------------------------------------------------------- lines --- */

/* Which share of it a cache still has after so many other bytes.  Caches do not
 * forget all that they cannot hold: they begin before they are full.
 */
static double cached_share(double used, double capacity)
{
    return fmin(1, fmax(0, 1.5 - used / capacity));
}

/* What a rank has used by now: it may be in the middle of its last step. */
static double used_by(const struct dtn_caches *caches, int rank)
{
    const struct usage *used = &caches->used[rank];

    if (rank == caches->user)
        return used->before + caches->passed;
    if (caches->now_ns >= used->end_ns)
        return used->bytes;
    return used->before + (used->bytes - used->before)
         * fmax(0, caches->now_ns - used->begin_ns)
         / (used->end_ns - used->begin_ns);
}

/* That of its last holder. */
static double held_share(const struct dtn_caches *caches, struct holder holder)
{
    return cached_share(used_by(caches, holder.rank) - holder.used,
                        caches->costs.capacity);
}

/* Which share of it has left the shared cache, which all ranks fill; memory
 * that is used again and again fills it once.
 */
static double beyond_share(const struct dtn_caches *caches,
                           struct holder holder)
{
    return 1 - cached_share(fmin(caches->all + caches->passed - holder.all,
                                 caches->known), caches->costs.shared);
}

static void lines_add(struct lines *spread, enum dtn_lines lines, double bytes,
                      double held)
{
    spread->bytes[lines] += held * bytes;
    spread->bytes[lines + DTN_LINES_AWAY] += (1 - held) * bytes;
}

/* Add bytes of a piece to where they are.  Nobody has used it: it is away. */
static void piece_spread(const struct dtn_caches *caches,
                         const struct users *piece, double bytes, bool writes,
                         struct lines *spread)
{
    const struct holder *last = piece->reader.rank >= 0 ? &piece->reader
                                                        : &piece->writer;
    const double held = last->rank < 0 ? 0 : held_share(caches, *last);
    enum dtn_lines lines = DTN_LINES_THERE;

    if (last->rank == caches->user || last->rank < 0)
        lines = DTN_LINES_HERE;
    else if (piece->writer.rank == caches->user)
        lines = DTN_LINES_READ;
    if (last->rank >= 0)
        spread->beyond += bytes * beyond_share(caches, *last);
    if (lines == DTN_LINES_THERE && writes) {
        lines_add(spread, DTN_LINES_READ, piece->clean * bytes, held);
        bytes *= 1 - piece->clean;
    }
    lines_add(spread, lines, bytes, held);
}

/* Up to so many pieces; false: out of memory. */
static bool space_reserve(struct dtn_caches *caches, struct space *space,
                          int npieces)
{
    const struct users fresh = { { -1, 0, 0 }, { -1, 0, 0 }, 0 };

    if (!dtn_array_reserve(&space->piece, &space->capacity, npieces,
                           sizeof space->piece[0]))
        return false;
    for (; space->npieces < npieces; caches->known += (double)PIECE_BYTES)
        space->piece[space->npieces++] = fresh;
    return true;
}

static void piece_use(const struct dtn_caches *caches, struct users *piece,
                      struct holder holder, bool writes)
{
    if (writes) {
        *piece = (struct users){ holder, { -1, 0, 0 }, 0 };
    } else if (piece->writer.rank == holder.rank) {
        piece->clean = 1 - (1 - piece->clean)
                         * held_share(caches, piece->writer);
        piece->writer = holder;   /* the other still has it, too              */
    } else {
        piece->reader = holder;
    }
}

/* Between two sizes a straight line, beyond the last the same for each byte. */
static double curve_ns(const double ns[], double bytes)
{
    int i = 1;

    if (bytes < (double)dtn_cache_size(0))
        return ns[0];
    while (i < DTN_CACHE_SIZES - 1 && bytes > (double)dtn_cache_size(i))
        i++;
    if (bytes > (double)dtn_cache_size(i))
        return ns[i] * bytes / (double)dtn_cache_size(i);
    return ns[i - 1] + (ns[i] - ns[i - 1])
         * (bytes - (double)dtn_cache_size(i - 1))
         / (double)(dtn_cache_size(i) - dtn_cache_size(i - 1));
}

/* The user uses bytes of the memory at a span, from now on and for as long as a
 * copy takes, beside other spans: where are they?
 */
static struct lines lines_use(struct dtn_caches *caches, struct dtn_span span,
                              size_t bytes, bool writes)
{
    const struct usage *used = &caches->used[caches->user];
    const struct dtn_span *named = &caches->named[caches->user * caches->ranks
                                                  + span.rank];
    struct space *space = &caches->space[span.rank * (int)DTN_NSPACES
                                        + (int)span.space];
    const size_t begin = span.offset
                       + (named->space == span.space ? named->offset : 0);
    const size_t end = begin + bytes;
    const size_t last = (end + PIECE_BYTES - 1) / PIECE_BYTES;
    const double now_ns = caches->now_ns;
    const double ns = curve_ns(caches->costs.copy, (double)bytes);
    struct lines spread = { { 0 }, 0 };

    if (!space_reserve(caches, space, (int)last)) {
        caches->failed = true;
        return spread;
    }
    for (size_t at = begin, next; at < end; at = next) {
        const double share = (double)(at - begin) / (double)bytes;
        struct users *piece = &space->piece[at / PIECE_BYTES];

        next = (at / PIECE_BYTES + 1) * PIECE_BYTES;
        next = next < end ? next : end;
        caches->now_ns = now_ns + share * ns;
        caches->passed = share * (used->bytes - used->before);
        piece_spread(caches, piece, (double)(next - at), writes, &spread);
        piece_use(caches, piece,
                  (struct holder){ caches->user, used->before + caches->passed,
                                   caches->all + caches->passed }, writes);
    }
    caches->now_ns = now_ns;
    return spread;
}

/* A rank begins to use so many bytes. */
static void use_begin(struct dtn_caches *caches, int rank, double bytes,
                      double now_ns)
{
    struct usage *used = &caches->used[rank];

    caches->user = rank;
    caches->now_ns = now_ns;
    *used = (struct usage){ used->bytes + bytes, used->bytes, now_ns, now_ns,
                            false };
}

static void use_end(struct dtn_caches *caches, double ns)
{
    struct usage *used = &caches->used[caches->user];

    caches->all += used->bytes - used->before;
    caches->passed = 0;
    caches->user = -1;
    used->end_ns += ns;
}

void dtn_caches_touch(struct dtn_caches *caches, int rank,
                      enum dtn_space space, size_t bytes, bool writes)
{
    use_begin(caches, rank, (double)bytes, 0);
    lines_use(caches, (struct dtn_span){ rank, space, 0 }, bytes, writes);
    use_end(caches, 0);
}

double dtn_caches_ready(struct dtn_caches *caches, int rank, int from,
                        const struct dtn_sched *sched,
                        const struct dtn_step *ready)
{
    struct dtn_span *named = &caches->named[rank * caches->ranks + from];

    *named = ready->src;
    if (ready->message_bytes == 0)
        named->offset = 0;
    return caches->costs.ready_ns[(sched->exposed[DTN_IN] ? 1 : 0)
                                  + (sched->exposed[DTN_OUT] ? 1 : 0)];
}

/* ---------------------------------------------------------------- costs --- */

/* Which share of such a step another rank still has before it. */
static double others_share(const struct dtn_caches *caches)
{
    double most = 0;

    for (int r = 0; r < caches->ranks; r++) {
        const struct usage *used = &caches->used[r];

        if (r != caches->user && used->elsewhere
            && used->end_ns > caches->now_ns)
            most = fmax(most, fmin(1, (used->end_ns - caches->now_ns)
                                      / (used->end_ns - used->begin_ns)));
    }
    return most;
}

/* More ns, because lines are elsewhere, and another rank asks for others. */
static double spread_ns(struct dtn_caches *caches,
                        const double more[][DTN_CACHE_SIZES],
                        const double both[], const struct lines *spread,
                        size_t bytes)
{
    double ns = spread->beyond * caches->costs.beyond_ns, away = 0;

    for (int s = 0; s < DTN_NLINES_STATES; s++) {
        if (spread->bytes[s] <= 0)
            continue;
        ns += curve_ns(more[s], (double)bytes)
            * spread->bytes[s] / (double)bytes;
        if (s % DTN_LINES_AWAY != DTN_LINES_HERE)
            away += spread->bytes[s] / (double)bytes;
    }
    if (away <= 0)
        return ns;
    caches->used[caches->user].elsewhere = true;
    return ns + away * others_share(caches) * curve_ns(both, (double)bytes);
}

static double load_ns(struct dtn_caches *caches, struct dtn_span from,
                      size_t bytes)
{
    const struct lines spread = lines_use(caches, from, bytes, false);

    return spread_ns(caches, caches->costs.load, caches->costs.both_load,
                     &spread, bytes);
}

static double store_ns(struct dtn_caches *caches, struct dtn_span to,
                       size_t bytes)
{
    const struct lines spread = lines_use(caches, to, bytes, true);

    return spread_ns(caches, caches->costs.store, caches->costs.both_store,
                     &spread, bytes);
}

/* ---------------------------------------------------------------- steps --- */

static int terms_count(const struct dtn_sched *sched,
                       const struct dtn_step *step)
{
    if (step->op != DTN_OP_FOLD)
        return 2;
    return step->src.rank >= 0 ? step->terms
         : sched->terms ? sched->nterms : sched->n;
}

/* The terms of a fold: of each rank, or slots of own memory. */
static double terms_ns(struct dtn_caches *caches, const struct dtn_sched *sched,
                       const struct dtn_step *step)
{
    const bool own = step->src.rank >= 0;
    const int n = terms_count(sched, step);
    double ns = 0;

    for (int t = 0; t < n; t++) {
        struct dtn_span term = step->src;

        if (t == step->own_term)
            term = step->own;
        else if (own)
            term.offset += (size_t)t * step->bytes;
        else
            term.rank = sched->terms ? sched->terms[t] : t;
        ns += load_ns(caches, term, step->bytes);
    }
    return ns;
}

/* Data in a signal goes through a slot.  The peer has read the slot since this
 * rank wrote it.  It takes them as they come, which is slower than to load what
 * was stored before.  What 64 bytes take is part of the signal.
 */
static double slot_ns(struct dtn_caches *caches, const struct dtn_sched *sched,
                      const struct dtn_step *step)
{
    const struct dtn_cache_costs *costs = &caches->costs;
    const bool sends = step->op == DTN_OP_SIGNAL;
    const double bytes = (double)step->bytes;
    const double own = sends
        ? load_ns(caches, step->src, step->bytes)
        : store_ns(caches, step->dst, step->bytes);
    const double *store = costs->store[DTN_LINES_READ];

    return sends ? own + fmax(0, curve_ns(costs->copy, bytes) - costs->copy[0])
                       + fmax(0, curve_ns(store, bytes) - store[0])
                 : own + curve_ns(costs->slot, bytes);
}

static double fold_ns(struct dtn_caches *caches, const struct dtn_sched *sched,
                      const struct dtn_step *step, size_t bytes)
{
    const double *fold = caches->costs.fold, *copy = caches->costs.copy;
    const int n = terms_count(sched, step);
    double ns;

    if (step->op == DTN_OP_FOLD)
        ns = terms_ns(caches, sched, step);
    else
        ns = load_ns(caches, step->dst, bytes)
           + load_ns(caches, step->src, bytes);
    ns += curve_ns(copy, (double)bytes)
        + (n - 1) * (curve_ns(fold, (double)bytes)
                     - curve_ns(copy, (double)bytes));
    return ns + store_ns(caches, step->dst, bytes);
}

static double step_ns(struct dtn_caches *caches, const struct dtn_sched *sched,
                      const struct dtn_step *step, size_t bytes)
{
    double ns = 0;

    switch (step->op) {
    case DTN_OP_SIGNAL: case DTN_OP_WAIT:
        return step->tag == DTN_TAG_EAGER ? slot_ns(caches, sched, step) : 0;
    case DTN_OP_REDUCE: case DTN_OP_FOLD:
        return fold_ns(caches, sched, step, bytes);
    case DTN_OP_PUT: case DTN_OP_COPY:
        ns = load_ns(caches, step->src, bytes);
        break;
    case DTN_OP_SCALE:
        ns = load_ns(caches, step->dst, bytes);
        break;
    default:
        break;
    }
    return ns + curve_ns(caches->costs.copy, (double)bytes)
         + store_ns(caches, step->dst, bytes);
}

/* How many spans of memory it uses at the same time. */
static int step_spans(const struct dtn_sched *sched,
                      const struct dtn_step *step)
{
    switch (step->op) {
    case DTN_OP_PUT: case DTN_OP_COPY: case DTN_OP_REDUCE:
        return 2;
    case DTN_OP_FOLD:
        return terms_count(sched, step) + 1;
    default:
        return 1;
    }
}

double dtn_caches_step(struct dtn_caches *caches, const struct dtn_sched *sched,
                       const struct dtn_step *step, double now_ns)
{
    const size_t bytes = step->box < 0 ? step->bytes
        : (size_t)dtn_box_count(&sched->boxes[step->box])
          * dtensor_dtype_size(sched->dtype);
    double ns;

    if (bytes == 0)
        return 0;
    use_begin(caches, sched->me, (double)bytes * step_spans(sched, step),
              now_ns);
    ns = step_ns(caches, sched, step, bytes);
    use_end(caches, ns);
    return ns;
}
