/* lines.c - operators, redistributes and collectives, by scope and tensors
 *
 * Activities that differ in nothing but time are one line: the matmul of
 * "layers.0.up" has one, however often it runs.  A line is found by a hash of
 * what makes it different; its text is made once, when it is new.
 */
#include "debug/counters.h"
#include "layout/spec.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdio.h>
#include <string.h>

static uint64_t text_hash(const char *text, uint64_t seed)
{
    return text ? XXH3_64bits_withSeed(text, strlen(text), seed) : seed + 1;
}

static uint64_t line_hash(const struct dtn_counters *counters,
                          const struct dtn_activity *a)
{
    const struct dtn_cause *cause = &counters->watcher.cause;
    const int which[] = { counters->scope, (int)counters->direction,
                          (int)a->kind, cause->operand, counters->counted >= 0
    };
    uint64_t hash = XXH3_64bits(which, sizeof which);

    hash = text_hash(a->name, hash);
    for (int i = 0; i < a->nin; i++)
        hash = dtn_spec_hash(&a->in[i], hash);
    for (int i = 0; i < a->nout; i++)
        hash = dtn_spec_hash(&a->out[i], hash + 1);
    if (a->kind != DTN_WATCHED_REDIST)
        return hash;
    return text_hash(cause->why, text_hash(cause->op, hash));
}

/* "f32[8,4](S(0)), f32[4](R) -> f32[8,4](S(0))", cut where the room ends. */
static void tensors_format(const struct dtn_activity *a, char *text,
                           size_t size)
{
    char one[200];
    size_t at = 0;

    text[0] = '\0';
    for (int i = 0; i < a->nin + a->nout && at < size; i++) {
        const struct dtensor_spec *spec = i < a->nin ? &a->in[i]
                                                     : &a->out[i - a->nin];

        dtensor_spec_format(spec, one, sizeof one);
        at += (size_t)snprintf(text + at, size - at, "%s%s",
                               i == 0 ? "" : i == a->nin ? " -> " : ", ", one);
    }
}

/* The first kind as which it counts; -1: none, as for a step of what counts. */
static int kind_of(const struct dtn_counters *counters,
                   const struct dtn_activity *a)
{
    const bool counts = counters->counted < 0 &&
                        (a->kind == DTN_WATCHED_REDIST ||
                         a->kind == DTN_WATCHED_CALL);
    const unsigned kinds = counts ? dtn_activity_kinds(a) : 0;
    int kind = 0;

    while (kinds >> kind > 1 && !(kinds >> kind & 1))
        kind++;
    return kinds ? kind : -1;
}

static int line_make(struct dtn_counters *counters, uint64_t hash,
                     const struct dtn_activity *a)
{
    const struct dtn_cause *cause = &counters->watcher.cause;
    const bool moves = a->kind == DTN_WATCHED_REDIST;
    struct dtn_scope *scope = &counters->scopes[counters->scope];
    const int made = counters->nlines++;
    struct dtn_line *line = &counters->lines[made];

    *line = (struct dtn_line){ .hash = hash, .kind = a->kind, .next = -1,
        .direction = counters->direction, .scope = counters->scope,
        .operand = cause->operand, .why = cause->why,
        .what = kind_of(counters, a) };
    snprintf(line->name, sizeof line->name, "%s", a->name);
    snprintf(line->op, sizeof line->op, "%s",
             moves && cause->op ? cause->op : "");
    tensors_format(a, line->tensors, sizeof line->tensors);
    if (scope->line_last >= 0)
        counters->lines[scope->line_last].next = made;
    else
        scope->line = made;
    scope->line_last = made;
    return made;
}

int dtn_line_of(struct dtn_counters *counters,
                const struct dtn_activity *activity)
{
    const uint64_t hash = line_hash(counters, activity);
    uint64_t at = hash & counters->hash_mask;

    for (; counters->by_hash[at] >= 0; at = (at + 1) & counters->hash_mask)
        if (counters->lines[counters->by_hash[at]].hash == hash)
            return counters->by_hash[at];
    if (counters->nlines == counters->lines_room) {
        counters->lines_lost++;
        return -1;
    }
    return counters->by_hash[at] = line_make(counters, hash, activity);
}
