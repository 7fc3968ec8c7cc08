/* memory.c - memory that peers can access
 *
 * dtensor_alloc() returns arena memory, which peers access in place.  Any other
 * buffer is copied through a bounce buffer in the arena (bounce.c).
 *
 * A buffer from malloc() that is used often can be registered; then a network
 * card accesses it in place.  A table of the registered buffers is sorted by
 * address, so that no two overlap.
 */
#include "base/array.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/log.h"
#include "base/units.h"
#include "device/cuda/cuda.h"
#include "device/memory.h"
#include "job/await.h"
#include "job/buffer.h"
#include "job/ctx.h"
#include "job/registered.h"
#include "transport/arena.h"
#include "transport/arena_size.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <stdlib.h>
#include <string.h>

void dtn_ctx_place(struct dtensor_ctx *ctx, struct dtn_memory *memory)
{
    ctx->device = memory;
    ctx->all_on_device = ctx->asks = true;
}

/* The arena that has the address; the host's for any other address. */
static struct dtn_arena *arena_of(struct dtensor_ctx *ctx, const void *mem)
{
    return ctx->device && dtn_arena_contains(ctx->device->arena, mem, 1)
         ? ctx->device->arena : &ctx->arena;
}

int dtn_ctx_alloc(struct dtensor_ctx *ctx, enum dtensor_memory memory,
                  const char *what, size_t size, void **memp,
                  struct dtensor_error *err)
{
    const bool on_device = memory == DTENSOR_CUDA || ctx->all_on_device;
    struct dtn_arena *arena = on_device ? ctx->device->arena : &ctx->arena;
    void *mem = dtn_arena_alloc(arena, size);

    if (mem)
        *memp = mem;
    if (mem)
        return 0;
    return on_device ? ctx->device->ops->nomem(ctx->device, what, size, err)
                     : dtn_arena_fail(arena, what, size, err);
}

void dtn_ctx_free(struct dtensor_ctx *ctx, void *mem)
{
    dtn_arena_free(arena_of(ctx, mem), mem);
}

int dtensor_alloc(struct dtensor_ctx *ctx, size_t size, void **memp,
                  struct dtensor_error *err)
{
    return dtensor_alloc_on(ctx, DTENSOR_HOST, size, memp, err);
}

int dtensor_alloc_on(struct dtensor_ctx *ctx, enum dtensor_memory memory,
                     size_t size, void **memp, struct dtensor_error *err)
{
    int rc = dtn_ctx_can_allocate(ctx, err);
    void *mem = NULL;

    if (rc == 0 && memory != DTENSOR_HOST && memory != DTENSOR_CUDA)
        rc = dtn_fail(err, DTENSOR_EINVAL, "alloc: there is no memory %d (see "
                      "enum dtensor_memory)", (int)memory);
    if (rc == 0 && memory == DTENSOR_CUDA)
        rc = dtn_ctx_open_device(ctx, err);
    if (rc == 0)
        rc = dtn_ctx_alloc(ctx, memory, "alloc", size ? size : 1, &mem, err);
    if (rc != 0)
        return rc;
    rc = dtn_buffer_zero(ctx, mem, size, err);
    if (rc != 0) {
        dtn_ctx_free(ctx, mem);
        return rc;
    }
    dtn_arena_lend(arena_of(ctx, mem), mem);
    dtn_ctx_hold(ctx);
    *memp = mem;
    return 0;
}

void dtensor_free(struct dtensor_ctx *ctx, void *mem)
{
    if (mem && dtn_arena_return(arena_of(ctx, mem), mem))
        dtn_ctx_release(ctx);
    else if (mem)
        dtn_log(&ctx->log, DTN_LOG_WARN, "free: %p is not of dtensor_alloc(), or "
                "was freed: nothing was done (free each once)", mem);
}

int dtensor_stream(struct dtensor_ctx *ctx, void *stream,
                   struct dtensor_error *err)
{
    int rc = dtn_ctx_can_allocate(ctx, err);

    if (rc == 0)
        rc = dtn_ctx_open_device(ctx, err);
    if (rc == 0)
        rc = dtn_cuda_check_stream(ctx->device, stream, err);
    return rc == 0 ? dtn_cuda_follow(ctx->device, stream, err) : rc;
}

/* -------------------------------------------------------- registration --- */

/* The index of `mem` in the table, or the index at which to insert it. */
static int registered_at(const struct dtensor_ctx *ctx,
                         const unsigned char *mem)
{
    int at = 0;

    while (at < ctx->registered.n && ctx->registered.table[at].mem < mem)
        at++;
    return at;
}

/* A registered buffer that overlaps [mem, mem + size), or NULL. */
static const struct dtn_registered *registered_meets(
    const struct dtensor_ctx *ctx, const unsigned char *mem, size_t size)
{
    int at = registered_at(ctx, mem);
    const struct dtn_registered *table = ctx->registered.table;

    if (at < ctx->registered.n && table[at].mem < mem + size)
        return &table[at];
    if (at > 0 && table[at - 1].mem + table[at - 1].size > mem)
        return &table[at - 1];
    return NULL;
}

static bool memory_on_device(const struct dtensor_ctx *ctx, const void *mem)
{
    return ctx->device && ctx->device->ops->holds(ctx->device, mem);
}

/* Does some transport reach memory of the device in place? */
static bool memory_reached(const struct dtensor_ctx *ctx)
{
    bool reached = false;

    for (int t = 0; t < ctx->ntransports; t++)
        reached |= ctx->device->exporter && ctx->transports[t]->ops->attach
                && ctx->transports[t]->ops->adopt;
    return reached;
}

static int register_check(struct dtensor_ctx *ctx, const unsigned char *mem,
                          size_t size, struct dtensor_error *err)
{
    const struct dtn_backing *backing = &arena_of(ctx, mem)->backing;
    const uint64_t limit = ctx->world.cluster->transport.register_limit_bytes;
    const struct dtn_registered *other;
    char size_text[32], other_text[32], limit_text[32];

    dtn_format_size(size, size_text, sizeof size_text);
    if (!mem || size == 0 || (uintptr_t)mem > UINTPTR_MAX - size)
        return dtn_fail(err, DTENSOR_EINVAL, "register: %s at %p (expected "
                        "memory of at least one byte)", size_text,
                        (const void *)mem);
    if (mem < backing->base + backing->size && mem + size > backing->base)
        return dtn_fail(err, DTENSOR_EINVAL, "register: %s at %p are of "
                        "dtensor_alloc() (that needs no registration)",
                        size_text, (const void *)mem);
    if (memory_on_device(ctx, mem) && !memory_reached(ctx))
        return dtn_fail(err, DTENSOR_EINVAL, "register: %s at %p is memory of "
                        "a GPU, which no transport reaches in place (it is "
                        "staged: leave the registration out)", size_text,
                        (const void *)mem);
    other = registered_meets(ctx, mem, size);
    if (other)
        return dtn_fail(err, DTENSOR_EINVAL, "register: %s at %p overlap %s at "
                        "%p (unregister those first)", size_text,
                        (const void *)mem, dtn_format_size(other->size,
                        other_text, sizeof other_text), (void *)other->mem);
    if (size > limit || ctx->registered.bytes > limit - size)
        return dtn_fail(err, DTENSOR_ENOMEM, "register: %s and the %s that are "
                        "exceed %s (unregister some, or raise [transport] "
                        "register_limit)", size_text,
                        dtn_format_size(ctx->registered.bytes, other_text,
                                        sizeof other_text),
                        dtn_format_size(limit, limit_text, sizeof limit_text));
    return 0;
}

/* Undo the registration with the first n transports. */
static void register_disown(struct dtensor_ctx *ctx, int n, void *mem,
                            size_t size)
{
    struct dtn_transport **tp = ctx->transports;

    for (int t = 0; t < n; t++)
        if (tp[t]->ops->disown)
            tp[t]->ops->disown(tp[t], mem, size);
}

/* Register with all transports, or with none. */
static int register_adopt(struct dtensor_ctx *ctx, void *mem, size_t size,
                          struct dtensor_error *err)
{
    struct dtn_transport **tp = ctx->transports;
    int t, rc = 0;

    for (t = 0; t < ctx->ntransports && rc == 0; t++)
        if (tp[t]->ops->adopt)
            rc = tp[t]->ops->adopt(tp[t], mem, size, err);
    if (rc != 0)
        register_disown(ctx, t - 1, mem, size);
    return rc;
}

int dtensor_register(struct dtensor_ctx *ctx, void *mem, size_t size,
                     struct dtensor_error *err)
{
    struct dtn_registrations *all = &ctx->registered;
    int at, rc = ctx->finished ? dtn_ctx_check(ctx, err)
        : dtn_ctx_check_buffer(ctx, "register", mem, size, err);

    if (rc == 0)
        rc = register_check(ctx, mem, size, err);
    if (rc == 0)
        rc = dtn_array_reserve(&all->table, &all->capacity, all->n + 1,
                               sizeof *all->table)
           ? 0 : dtn_fail_nomem(err, "register", sizeof *all->table);
    if (rc == 0)
        rc = register_adopt(ctx, mem, size, err);
    if (rc != 0)
        return rc;
    at = registered_at(ctx, mem);
    memmove(&all->table[at + 1], &all->table[at],
            (size_t)(all->n - at) * sizeof all->table[0]);
    all->table[at] = (struct dtn_registered){ mem, size };
    all->n++;
    all->bytes += size;
    dtn_ctx_hold(ctx);
    return 0;
}

void dtensor_unregister(struct dtensor_ctx *ctx, void *mem)
{
    struct dtn_registrations *all = &ctx->registered;
    int at = registered_at(ctx, mem);
    size_t size;

    if (at == all->n || all->table[at].mem != mem)
        return;
    size = all->table[at].size;
    register_disown(ctx, ctx->ntransports, mem, size);
    all->n--;
    memmove(&all->table[at], &all->table[at + 1],
            (size_t)(all->n - at) * sizeof all->table[0]);
    all->bytes -= size;
    dtn_ctx_release(ctx);
}
