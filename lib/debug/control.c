/* control.c - counting begins and ends; scopes of the program; queries
 *
 * All memory is allocated when counting begins: 1,024 scopes of 1.3 KiB, 4,096
 * lines of 0.5 KiB, 65,536 events of 24 bytes.
 */
#include "base/error.h"
#include "base/wait.h"
#include "debug/counters.h"

#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------- memory --- */

static void counters_free(struct dtn_counters *counters)
{
    free(counters->scopes);
    free(counters->lines);
    free(counters->by_hash);
    free(counters->events);
    free(counters);
}

static void counters_stop(struct dtn_counters *counters)
{
    if (!counters->on)
        return;
    dtn_wire_release(counters);
    dtn_laps_read(counters, false);
    dtn_laps_close(counters);
    counters->ctx->watcher = NULL;
    counters->on = false;
}

/* The context is finished: its transports are about to be closed. */
static void slot_finish(struct dtensor_ctx *ctx)
{
    counters_stop(dtn_counters_of(ctx));
}

static void slot_destroy(void *state)
{
    counters_free(state);
}

/* Room for all that is counted; false: there is not enough memory. */
static bool counters_room(struct dtn_counters *counters,
                          const struct dtensor_debug_options *options)
{
    size_t nhashes = 16;

    counters->scopes_room = options->scopes ? options->scopes : 1024;
    counters->lines_room = options->lines ? options->lines : 4096;
    counters->events_room = options->events < 0 ? 0
                          : options->events ? options->events : 65536;
    while (nhashes < 2 * (size_t)counters->lines_room)
        nhashes *= 2;
    counters->hash_mask = nhashes - 1;
    counters->scopes = calloc((size_t)counters->scopes_room,
                              sizeof counters->scopes[0]);
    counters->lines = calloc((size_t)counters->lines_room,
                             sizeof counters->lines[0]);
    counters->by_hash = malloc(nhashes * sizeof counters->by_hash[0]);
    counters->events = calloc((size_t)counters->events_room + 1,
                              sizeof counters->events[0]);
    if (!counters->scopes || !counters->lines || !counters->by_hash ||
        !counters->events)
        return false;
    for (size_t i = 0; i < nhashes; i++)
        counters->by_hash[i] = -1;
    return true;
}

/* ------------------------------------------------------- begin and end --- */

static int options_check(const struct dtensor_debug_options *options,
                         struct dtensor_error *err)
{
    if (options->scopes >= 0 && options->lines >= 0 && options->events >= -1)
        return 0;
    return dtn_fail(err, DTENSOR_EINVAL, "debug_begin: room for %d scopes, %d "
                    "lines, %d events (expected 0 or more, of events -1 or "
                    "more)", options->scopes, options->lines, options->events);
}

int dtensor_debug_begin(struct dtensor_ctx *ctx,
                        const struct dtensor_debug_options *options,
                        struct dtensor_error *err)
{
    static const struct dtensor_debug_options defaults;
    struct dtn_counters *old = ctx ? dtn_counters_of(ctx) : NULL, *counters;
    int rc;

    if (!ctx)
        return dtn_fail(err, DTENSOR_EINVAL, "debug_begin: ctx is NULL");
    rc = options_check(options ? options : &defaults, err);
    if (rc != 0)
        return rc;
    if (old && old->on)
        return dtn_fail(err, DTENSOR_EINVAL, "debug_begin: it counts already "
                        "(dtensor_debug_end() first)");
    counters = calloc(1, sizeof *counters);
    if (!counters || !counters_room(counters, options ? options : &defaults)) {
        if (counters)
            counters_free(counters);
        return dtn_fail_nomem(err, "debug_begin", sizeof *counters);
    }
    counters->watcher = (struct dtn_watcher){ .begin = dtn_counters_begin,
                                              .end = dtn_counters_end,
                                              .landed = dtn_counters_landed };
    counters->ctx = ctx;
    counters->on = true;
    counters->epoch = old ? old->epoch + 1 : 1;
    counters->watcher.scope = counters->epoch << 32;
    counters->counted = -1;
    dtn_scope_enter(counters, -1, "all", NULL);
    if (old)
        counters_free(old);
    ctx->slots[DTN_ROOM_DEBUG] = (struct dtn_slot){ counters, slot_finish,
                                                    slot_destroy };
    dtn_wire_count(counters);
    dtn_laps_open(counters);
    ctx->watcher = &counters->watcher;
    return 0;
}

/* The counters, if the context counts. */
static struct dtn_counters *counting(const struct dtensor_ctx *ctx)
{
    struct dtn_counters *counters = ctx ? dtn_counters_of(ctx) : NULL;

    return counters && counters->on ? counters : NULL;
}

int dtensor_debug_end(struct dtensor_ctx *ctx, struct dtensor_error *err)
{
    struct dtn_counters *counters = counting(ctx);

    if (!counters)
        return dtn_fail(err, DTENSOR_EINVAL, "debug_end: it does not count "
                        "(dtensor_debug_begin() first)");
    if (counters->depth > 0 &&
        counters->open[counters->depth - 1].kind == DTN_WATCHED_SCOPE)
        return dtn_fail(err, DTENSOR_EINVAL, "debug_end: the scope \"%s\" is "
                        "open (dtensor_debug_pop() first)",
                        counters->scopes[counters->scope].name);
    if (counters->depth > 0)
        return dtn_fail(err, DTENSOR_EINVAL, "debug_end: a call has not "
                        "returned (end outside of modules and operators)");
    dtn_laps_read(counters, true);
    counters_stop(counters);
    return 0;
}

/* --------------------------------------------------------------- scopes --- */

int dtensor_debug_push(struct dtensor_ctx *ctx, const char *name,
                       struct dtensor_error *err)
{
    const size_t n = name ? strnlen(name, DTN_SCOPE_NAME) : 0;
    struct dtn_counters *counters = counting(ctx);

    if (n == 0 || n == DTN_SCOPE_NAME)
        return dtn_fail(err, DTENSOR_EINVAL, "debug_push: the name is %s "
                        "(expected 1 to %d bytes)", !name ? "NULL"
                        : n == 0 ? "empty" : "too long", DTN_SCOPE_NAME - 1);
    if (counters)
        counters->watcher.begin(&counters->watcher, &(struct dtn_activity){
            .kind = DTN_WATCHED_SCOPE, .name = name });
    return 0;
}

int dtensor_debug_pop(struct dtensor_ctx *ctx, struct dtensor_error *err)
{
    struct dtn_counters *counters = counting(ctx);

    if (!counters)
        return 0;
    if (counters->deeper == 0 &&
        (counters->depth == 0 ||
         counters->open[counters->depth - 1].kind != DTN_WATCHED_SCOPE))
        return dtn_fail(err, DTENSOR_EINVAL, "debug_pop: the program has "
                        "opened no scope here (dtensor_debug_push() first)");
    if (counters->deeper > 0)
        counters->deeper--;
    else
        dtn_counters_close(counters);
    return 0;
}

/* -------------------------------------------------------------- queries --- */

int dtensor_debug_counts(const struct dtensor_ctx *ctx, const char *scope,
                         enum dtensor_direction direction, int kind,
                         struct dtensor_debug_count *count,
                         struct dtensor_error *err)
{
    const struct dtn_counters *counters =
        dtn_counters_asked(ctx, "debug_counts", err);
    int at;

    if (!counters)
        return DTENSOR_EINVAL;
    if ((unsigned)direction >= DTENSOR_NDIRECTIONS ||
        kind < DTENSOR_DEBUG_ALL || kind >= DTENSOR_DEBUG_NKINDS)
        return dtn_fail(err, DTENSOR_EINVAL, "debug_counts: there is no "
                        "direction %d with kind %d", (int)direction, kind);
    at = dtn_scope_find(counters, scope);
    if (at < 0)
        return dtn_fail(err, DTENSOR_EINVAL, "debug_counts: there is no scope "
                        "\"%s\" (names from the outermost on, joined by "
                        "\"/\")", scope);
    *count = dtn_scope_sum(counters, at, direction, kind);
    return 0;
}

int dtensor_debug_line(const struct dtensor_ctx *ctx, int i,
                       struct dtensor_debug_line *line,
                       struct dtensor_error *err)
{
    const struct dtn_counters *counters =
        dtn_counters_asked(ctx, "debug_line", err);
    const struct dtn_line *at;

    if (!counters)
        return DTENSOR_EINVAL;
    if (i < 0 || i >= counters->nlines)
        return dtn_fail(err, DTENSOR_EINVAL, "debug_line: there is no line %d "
                        "of %d", i, counters->nlines);
    at = &counters->lines[i];
    *line = (struct dtensor_debug_line){
        .scope = counters->scopes[at->scope].name,
        .direction = at->direction, .what = dtn_watched_word(at->kind),
        .name = at->name, .tensors = at->tensors, .kind = at->what,
        .op = at->op, .operand = at->operand,
        .why = at->kind == DTN_WATCHED_REDIST ? at->why : NULL,
        .count = at->count };
    return 0;
}
