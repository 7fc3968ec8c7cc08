/* pretend.c - the pretend device
 *
 * One byte of it has two addresses, 0x7f00000 in the window and 0x7e00000 in
 * the alias.  The library is given the first, where its own load is a SIGSEGV;
 * an operation computes the second.
 *
 * With DTN_TEST_DEVICE=cuda the device is that of the driver in tests/standin,
 * or a real one, whose memory the CPU may not touch either, and the operations
 * are those of the kind `cuda`.  With DTN_TEST_MUTANT=settle too, nobody waits
 * for them, as in a library that forgot to: a suite has to fail.
 */
#include "tests/device/pretend.h"
#include "base/box.h"
#include "base/compiler.h"
#include "base/equal.h"
#include "base/reduce.h"
#include "device/cuda/cuda.h"
#include "device/memory.h"
#include "job/ctx.h"
#include "tests/device/window.h"
#include "transport/arena.h"
#include "transport/arena_size.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PRETEND_BYTES ((size_t)1 << 30)

enum { QUEUE_MAX = 32, SOURCES_MAX = 64 };

enum what { COPY, SET, COPY_BOX, FOLD, FOLD_BOX, SCALE, NEUTRAL, EQUAL };

/* An operation that was launched; addresses are of the alias. */
struct op {
    enum what what;
    void *dst;
    const void *src[SOURCES_MAX];
    int nsrc;
    size_t count;                 /* bytes or elements                        */
    int n;                        /* byte of SET, divisor of SCALE            */
    struct dtn_box box;
    struct dtn_reduction how;
    unsigned partial;
    bool adds;
    enum dtensor_dtype dtype;
    enum dtensor_redop redop;
    bool *equalp;
};

struct pretend {
    struct dtn_memory memory;
    struct dtn_arena arena;       /* over the window                          */
    unsigned char *alias;
    struct op queue[QUEUE_MAX];
    int nqueued;
    bool asked;                   /* settle() was asked for without waiting   */
    int npinned;                  /* ranges of the host's pages, pinned       */
    struct pretend *next;
};

static struct pretend *pretends;  /* open ones                                */
static int depth;                 /* of calls of the library                  */

static struct pretend *pretend_of(const struct dtn_memory *memory)
{
    return (struct pretend *)(uintptr_t)memory;
}

/* ------------------------------------------------------------ operations -- */

/* A third of the cases, unless asked for more: each call closes and opens the
 * window, which takes longer than the call.
 */
__attribute__((constructor)) static void rounds_fewer(void)
{
    setenv("DTN_TEST_ROUNDS", "33", 0);
}

static void pretend_die(const char *what)
{
    perror(what);
    _exit(99);
}

static bool pretend_holds(const struct dtn_memory *memory, const void *mem)
{
    return dtn_arena_contains(&pretend_of(memory)->arena, mem, 1);
}

static int pretend_check(const struct dtn_memory *memory, const char *what,
                         const void *mem, size_t bytes,
                         struct dtensor_error *err)
{
    return 0;
}

static int pretend_begin(const struct dtn_memory *memory)
{
    return 0;
}

static const char *pretend_why(const struct dtn_memory *memory)
{
    return "it does not fail";
}

static int pretend_nomem(const struct dtn_memory *memory, const char *what,
                         size_t size, struct dtensor_error *err)
{
    return dtn_arena_fail(memory->arena, what, size, err);
}

/* Where the kind reaches it. */
static void *at(const struct dtn_memory *memory, const void *mem)
{
    const struct pretend *p = pretend_of(memory);

    if (!pretend_holds(memory, mem))
        return (void *)(uintptr_t)mem;
    return p->alias + ((const unsigned char *)mem - p->arena.backing.base);
}

static void op_run(const struct op *op)
{
    switch (op->what) {
    case COPY:
        memcpy(op->dst, op->src[0], op->count);
        break;
    case SET:
        memset(op->dst, op->n, op->count);
        break;
    case COPY_BOX:
        dtn_box_copy(&op->box, op->count, op->dst, op->src[0]);
        break;
    case FOLD:
        dtn_fold(&op->how, op->partial, op->dst, op->src, op->nsrc, op->count);
        break;
    case FOLD_BOX:
        dtn_box_fold(&op->box, &op->how, op->partial, op->adds, op->dst,
                     op->src[0]);
        break;
    case SCALE:
        dtn_scale(op->dtype, op->dst, op->count, op->n);
        break;
    case NEUTRAL:
        dtn_fill_neutral(op->dtype, op->redop, op->dst, op->count);
        break;
    case EQUAL:
        *op->equalp = dtn_equal(op->dtype, op->dst, op->src[0], op->count);
        break;
    }
}

static void pretend_finish(struct pretend *p)
{
    for (int i = 0; i < p->nqueued; i++)
        op_run(&p->queue[i]);
    p->nqueued = 0;
    p->asked = false;
}

static int launch(const struct dtn_memory *memory, const struct op *op)
{
    struct pretend *p = pretend_of(memory);

    if (p->nqueued == QUEUE_MAX)
        pretend_finish(p);
    p->queue[p->nqueued++] = *op;
    return DTN_LAUNCHED;
}

static int pretend_copy(const struct dtn_memory *memory, void *dst,
                        const void *src, size_t bytes)
{
    return launch(memory, &(struct op){ .what = COPY, .dst = at(memory, dst),
                      .src = { at(memory, src) }, .count = bytes });
}

static int pretend_set(const struct dtn_memory *memory, void *dst, int byte,
                       size_t bytes)
{
    return launch(memory, &(struct op){ .what = SET, .dst = at(memory, dst),
                      .n = byte, .count = bytes });
}

static int pretend_copy_box(const struct dtn_memory *memory,
                            const struct dtn_box *box, size_t elem_bytes,
                            void *dst, const void *src)
{
    return launch(memory, &(struct op){ .what = COPY_BOX, .box = *box,
                      .dst = at(memory, dst), .src = { at(memory, src) },
                      .count = elem_bytes });
}

static int pretend_fold(const struct dtn_memory *memory,
                        const struct dtn_reduction *how, unsigned partial,
                        void *dst, const void *const src[], int nsrc,
                        size_t count)
{
    struct op op = { .what = FOLD, .how = *how, .partial = partial,
                     .dst = at(memory, dst), .nsrc = nsrc, .count = count };

    if (nsrc > SOURCES_MAX)
        return DTENSOR_EINVAL;
    for (int i = 0; i < nsrc; i++)
        op.src[i] = at(memory, src[i]);
    return launch(memory, &op);
}

static int pretend_fold_box(const struct dtn_memory *memory,
                            const struct dtn_box *box,
                            const struct dtn_reduction *how, unsigned partial,
                            bool adds, void *dst, const void *src)
{
    return launch(memory, &(struct op){ .what = FOLD_BOX, .box = *box,
                      .how = *how, .partial = partial, .adds = adds,
                      .dst = at(memory, dst), .src = { at(memory, src) } });
}

static int pretend_scale(const struct dtn_memory *memory,
                         enum dtensor_dtype dtype, void *array, size_t count,
                         int n)
{
    return launch(memory, &(struct op){ .what = SCALE, .dtype = dtype,
                      .dst = at(memory, array), .count = count, .n = n });
}

static int pretend_neutral(const struct dtn_memory *memory,
                           enum dtensor_dtype dtype, enum dtensor_redop redop,
                           void *array, size_t count)
{
    return launch(memory, &(struct op){ .what = NEUTRAL, .dtype = dtype,
                      .redop = redop, .dst = at(memory, array),
                      .count = count });
}

static int pretend_equal(const struct dtn_memory *memory,
                         enum dtensor_dtype dtype, const void *left,
                         const void *right, size_t count, bool *equalp)
{
    return launch(memory, &(struct op){ .what = EQUAL, .dtype = dtype,
                      .dst = at(memory, left), .src = { at(memory, right) },
                      .count = count, .equalp = equalp });
}

/* After all that was launched, at once: `how` is the caller's. */
static int pretend_make(const struct dtn_memory *memory,
                        const struct dtn_formula *formula,
                        const struct dtn_elements *elements, void *out,
                        const void *const in[])
{
    const void *from[DTN_FORMULA_INPUTS] = { NULL, NULL };

    pretend_finish(pretend_of(memory));
    for (int i = 0; i < formula->ninputs; i++)
        from[i] = at(memory, in[i]);
    formula->make(elements->how, elements->first, elements->count,
                  at(memory, out), from);
    return 0;
}

static int pretend_settle(const struct dtn_memory *memory, bool waits)
{
    struct pretend *p = pretend_of(memory);

    if (!waits && p->nqueued > 0 && !p->asked) {
        p->asked = true;
        return DTENSOR_EAGAIN;
    }
    pretend_finish(p);
    return 0;
}

/* Whole pages, so that no two ranges can share one; pinned until unpin(). */
static void pretend_pin(const struct dtn_memory *memory, void *mem,
                        size_t bytes)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

    if ((uintptr_t)mem % page != 0 || bytes % page != 0)
        pretend_die("pretend: a part of a page is pinned");
    pretend_of(memory)->npinned++;
}

static void pretend_unpin(const struct dtn_memory *memory, void *mem)
{
    pretend_of(memory)->npinned--;
}

/* --------------------------------------------------- opening and closing -- */

static void pretend_close(struct dtn_memory *memory)
{
    struct pretend *p = pretend_of(memory), **link = &pretends;

    if (p->npinned != 0)
        pretend_die("pretend: host memory is still pinned");
    while (*link != p)
        link = &(*link)->next;
    *link = p->next;
    munmap(p->alias, PRETEND_BYTES);
    dtn_arena_fini(&p->arena);
    free(p);
}

/* Of the arena: the window. */
static bool window_touch(struct dtn_backing *backing, size_t offset,
                         size_t size)
{
    return true;
}

static void window_release(struct dtn_backing *backing, size_t offset,
                           size_t size)
{
}

static void window_close(struct dtn_backing *backing)
{
    munmap(backing->base, backing->size);
}

static const struct dtn_backing_ops window_ops = { window_touch, window_release,
                                                   window_close };

static const struct dtn_memory_ops pretend_ops = {
    .name = "pretend",
    .holds = pretend_holds,
    .check = pretend_check,
    .begin = pretend_begin,
    .why = pretend_why,
    .nomem = pretend_nomem,
    .copy = pretend_copy,
    .set = pretend_set,
    .copy_box = pretend_copy_box,
    .fold = pretend_fold,
    .fold_box = pretend_fold_box,
    .scale = pretend_scale,
    .neutral = pretend_neutral,
    .make = pretend_make,
    .equal = pretend_equal,
    .settle = pretend_settle,
    .pin = pretend_pin,
    .unpin = pretend_unpin,
    .close = pretend_close,
};

/* Of tests/standin/window.c, or of window.c here, for a real GPU. */
static struct {
    int (*open)(const void *mem);
    void (*shut)(void);
} opener;

/* The memory of the driver's device opens where a test touches it.  Else say
 * who touched the window, and end.
 */
static void window_fault(int number, siginfo_t *info, void *context)
{
    void *frames[20];
    int n;

    if (depth == 0 && opener.open && opener.open(info->si_addr))
        return;
    n = backtrace(frames, 20);
    if (opener.open && depth > 0)
        backtrace_symbols_fd(frames, n, STDERR_FILENO);

    for (struct pretend *p = pretends; p && depth > 0; p = p->next)
        if (pretend_holds(&p->memory, info->si_addr))
            backtrace_symbols_fd(frames, n, STDERR_FILENO);
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
}

static struct pretend *pretend_open(void)
{
    struct pretend *p = calloc(1, sizeof *p);
    int fd = memfd_create("pretend", MFD_CLOEXEC);
    struct dtn_backing window = { .ops = &window_ops, .size = PRETEND_BYTES,
                                  .page_bytes = 4096, .fd = -1 };

    if (!p || fd < 0 || ftruncate(fd, (off_t)PRETEND_BYTES) < 0)
        pretend_die("pretend");
    p->alias = mmap(NULL, PRETEND_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
                    fd, 0);
    window.base = mmap(NULL, PRETEND_BYTES, PROT_NONE, MAP_SHARED, fd, 0);
    close(fd);
    if (p->alias == MAP_FAILED || window.base == MAP_FAILED
        || dtn_arena_init_on(&p->arena, &window, NULL) != 0)
        pretend_die("pretend");
    p->memory = (struct dtn_memory){ .ops = &pretend_ops, .arena = &p->arena };
    p->next = pretends;
    pretends = p;
    return p;
}

/* A settle() that was forgotten. */
static int settle_forgets(const struct dtn_memory *memory, bool waits)
{
    return 0;
}

/* The device of the driver. */
static int cuda_open(struct dtensor_ctx *ctx, struct dtensor_error *err)
{
    static struct dtn_memory_ops mutant;
    const char *which = getenv("DTN_TEST_MUTANT");
    void *driver;
    int rc = dtn_ctx_open_device(ctx, err);

    if (rc != 0)
        return rc;
    if (which && strcmp(which, "settle") == 0) {
        mutant = *ctx->device->ops;
        mutant.settle = settle_forgets;
        ctx->device->ops = &mutant;
    }
    driver = getenv("DTN_TEST_GPU")
           ? NULL : dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (driver) {
        *(void **)&opener.open = dlsym(driver, "dtn_standin_open");
        *(void **)&opener.shut = dlsym(driver, "dtn_standin_shut");
    }
    if (!opener.open || !opener.shut) {
        opener.open = window_open;
        opener.shut = window_shut;
        window_of(dtn_cuda_of(ctx->device));
    }
    return 0;
}

/* dtensor_init(); where the suite has no file, over DTN_TEST_WIRE if set. */
static int init_over(const char *path, struct dtensor_ctx **ctxp,
                     struct dtensor_error *err)
{
    const char *wire = getenv("DTN_TEST_WIRE");
    const char *size = getenv("DTN_WORLD_SIZE");
    char file[64];
    int rc;

    if (path || !wire || !size || getenv("DTN_CLUSTER"))
        return (dtensor_init)(path, ctxp, err);
    snprintf(file, sizeof file, "%s", ranks_file(wire, atoi(size), NULL));
    rc = (dtensor_init)(file, ctxp, err);
    remove(file);
    return rc;
}

int pretend_init(const char *path, struct dtensor_ctx **ctxp,
                 struct dtensor_error *err)
{
    const struct sigaction act = { .sa_sigaction = window_fault,
                                   .sa_flags = SA_SIGINFO };
    const char *device = getenv("DTN_TEST_DEVICE");
    const bool cuda = device && strcmp(device, "cuda") == 0;
    int rc = init_over(path, ctxp, err);

    if (rc == 0 && cuda)
        rc = cuda_open(*ctxp, err);
    if (rc != 0)
        return rc;
    dtn_ctx_place(*ctxp, cuda ? (*ctxp)->device : &pretend_open()->memory);
    sigaction(SIGSEGV, &act, NULL);
    return 0;
}

/* ----------------------------------------------------------------- calls -- */

static void windows_protect(int access)
{
    if (opener.shut && access == PROT_NONE)
        opener.shut();
    for (struct pretend *p = pretends; p; p = p->next)
        if (mprotect(p->arena.backing.base, PRETEND_BYTES, access) < 0)
            pretend_die("pretend: mprotect");
}

int pretend_enter(void)
{
    if (depth++ == 0)
        windows_protect(PROT_NONE);
    return depth;
}

void pretend_leave(const int *entered)
{
    if (--depth == 0)
        windows_protect(PROT_READ | PROT_WRITE);
    if (*entered != depth + 1)
        pretend_die("pretend: calls do not nest");
}
