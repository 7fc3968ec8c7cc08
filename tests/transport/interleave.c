/* interleave.c - a model checker for threads, by running them
 *
 * The threads are coroutines of this process.  Stores never overwrite: each
 * atomic word keeps the list of its values.  A load may return any that the
 * thread cannot know to be outdated, so a store can be seen late, and two
 * stores in another order than they were made, unless acquire meets release.
 * With x = 1, y = 1 in one thread, all relaxed, the other can read y = 1 and
 * then x = 0: it chooses the first or the second value of x.
 *
 * What a load may choose does not depend on the order in which the threads
 * run.  So that order is fixed, and an execution is the list of choices: which
 * value, or to wait until there is a newer one.  All lists are tried, depth
 * first.  A loop that waits in vain is ended: a later turn is another choice of
 * the first.  It hangs if it has read the last values there will ever be.
 *
 * Each thread has a clock of what it knows of the others (a vector clock).
 * Plain memory has the time of its last store and loads; one that does not know
 * of them is a data race, whatever bytes it got.
 *
 * An atomic word has one thread that stores there.  Values are never read
 * before they are stored, in any order of the program (RC11 has that, too).
 */
#include "tests/transport/interleave.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum {
    THREADS = INTERLEAVE_THREADS,
    WORDS = 256,                  /* that are atomic, in a program            */
    VALUES = 64,                  /* of a word, in an execution               */
    CHOICES = 4096,               /* of an execution                          */
    REGIONS = 16,
    SITES = 64,
    GRAIN = 4,                    /* bytes of plain memory with one time      */
    STACK_BYTES = 64 << 10
};

struct clock {
    uint32_t of[THREADS];         /* operations of that thread                */
};

struct value {
    uint64_t bits;
    int writer;                   /* thread; -1: it was there at the start    */
    uint32_t when;                /* by the clock of the writer               */
    struct clock told;            /* what an acquire learns                   */
};

struct word {
    const void *at;
    int n;
    struct value value[VALUES];
};

struct grain {
    int writer;                   /* the last one; -1: none                   */
    uint32_t when;                /* by its clock                             */
    struct clock read;            /* the last load of each thread             */
};

struct region {
    const char *at;
    size_t bytes;
    struct grain *grain;
};

enum state { RUNS, WAITS, IN_VAIN, DONE };

struct thread {
    ucontext_t context;
    char *stack;
    enum state state;
    struct clock knows;
    int seen[WORDS];              /* index of the newest value loaded, or     */
                                  /* stored                                   */
    const struct word *waits;     /* for a value newer than `than`            */
    int than;
    int nloads;                   /* of this turn                             */
    struct { const struct word *word; int index; } load[THREADS * 4];
    struct { void *to; size_t bytes; unsigned char from[256]; } late;
};

struct choice {
    int taken, of;
};

static const struct interleave_program *program;
static const struct interleave_mutant *mutant;
static struct interleave_result *result;
static struct word words[WORDS];
static int nwords;
static struct region regions[REGIONS];
static int nregions;
static struct interleave_site sites[SITES];
static int nsites;
static struct thread threads[THREADS];
static int running;               /* the thread that runs                     */
static ucontext_t scheduler;
static struct choice path[CHOICES];
static int length, depth;         /* of the path; how far it was followed     */

const char *const interleave_fault_names[INTERLEAVE_FAULTS] = {
    "right", "relaxed", "left out", "larger by 1", "late"
};
const char *const interleave_kind_names[INTERLEAVE_KINDS] = {
    "load", "store", "copy"
};

/* ------------------------------------------------- choices and failures --- */

static void fatal(const char *what)
{
    fprintf(stderr, "interleave: %s\n", what);
    abort();
}

static int choose(int of)
{
    if (depth == length) {
        if (length == CHOICES)
            fatal("too many choices");
        path[length++] = (struct choice){ 0, of };
    }
    if (path[depth].of != of)
        fatal("a thread does not do the same twice");
    return path[depth++].taken;
}

/* The next list of choices.  False: there is none. */
static bool choose_next(void)
{
    while (length > 0 && path[length - 1].taken + 1 == path[length - 1].of)
        length--;
    if (length == 0)
        return false;
    path[length - 1].taken++;
    return true;
}

static void leave(enum state state)
{
    threads[running].state = state;
    swapcontext(&threads[running].context, &scheduler);
}

static void fail(const char *what)
{
    snprintf(result->failure, sizeof result->failure, "thread %d: %s", running,
             what);
    leave(IN_VAIN);
}

void interleave_must(bool condition, const char *claim)
{
    if (!condition)
        fail(claim);
}

/* ------------------------------------------------------------- mutants --- */

const struct interleave_site *interleave_sites(int *n)
{
    *n = nsites;
    return sites;
}

/* What is wrong with this operation. */
static enum interleave_fault fault_of(const char *function,
                                      enum interleave_kind kind)
{
    int i = 0;

    while (i < nsites && (sites[i].kind != kind
                          || strcmp(sites[i].function, function) != 0))
        i++;
    if (i == SITES)
        fatal("too many operations");
    if (i == nsites)
        sites[nsites++] = (struct interleave_site){ function, kind };
    return mutant && mutant->site.kind == kind
           && strcmp(mutant->site.function, function) == 0
         ? mutant->fault : INTERLEAVE_NONE;
}

/* -------------------------------------------------------- plain memory --- */

void interleave_share(const void *mem, size_t bytes)
{
    struct region *region = &regions[nregions++];

    if (nregions > REGIONS || bytes % GRAIN != 0)
        fatal("a region too many, or of an odd size");
    if (region->bytes < bytes)
        region->grain = realloc(region->grain,
                                bytes / GRAIN * sizeof *region->grain);
    region->at = mem;
    region->bytes = bytes;
    if (!region->grain)
        fatal("out of memory");
    for (size_t i = 0; i < bytes / GRAIN; i++)
        region->grain[i] = (struct grain){ .writer = -1 };
}

static bool grain_touch(struct grain *grain, bool writes)
{
    struct thread *self = &threads[running];
    bool known = grain->writer < 0
              || self->knows.of[grain->writer] >= grain->when;

    for (int t = 0; t < THREADS && writes; t++)
        known = known && self->knows.of[t] >= grain->read.of[t];
    if (writes) {
        grain->writer = running;
        grain->when = self->knows.of[running];
    } else {
        grain->read.of[running] = self->knows.of[running];
    }
    return known;
}

static void touch(const void *mem, size_t bytes, bool writes)
{
    const char *at = mem;
    bool known = true;

    for (int r = 0; r < nregions; r++) {
        const struct region *region = &regions[r];
        size_t from, to;

        if (at < region->at || at >= region->at + region->bytes)
            continue;
        from = (size_t)(at - region->at) / GRAIN;
        to = ((size_t)(at - region->at) + bytes - 1) / GRAIN;
        for (size_t i = from; bytes > 0 && i <= to; i++)
            known = grain_touch(&region->grain[i], writes) && known;
    }
    if (!known)
        fail(writes ? "data race: stores over what another may still read"
                    : "data race: reads what may not have come");
}

static void copy(void *to, const void *from, size_t bytes)
{
    threads[running].knows.of[running]++;
    touch(from, bytes, false);
    touch(to, bytes, true);
    memcpy(to, from, bytes);
}

void interleave_copy(const char *function, void *to, const void *from,
                     size_t bytes)
{
    struct thread *self = &threads[running];
    enum interleave_fault fault = fault_of(function, INTERLEAVE_COPY);

    if (fault == INTERLEAVE_LATE && bytes <= sizeof self->late.from) {
        touch(from, bytes, false);
        memcpy(self->late.from, from, bytes);
        self->late.to = to;
        self->late.bytes = bytes;
    } else if (fault != INTERLEAVE_LOST) {
        copy(to, from, bytes);
    }
}

/* --------------------------------------------------------- atomic words --- */

static struct word *word_of(const _Atomic uint64_t *at)
{
    struct word *word = words;

    while (word < words + nwords && word->at != at)
        word++;
    if (word == words + WORDS)
        fatal("too many atomic words");
    if (word == words + nwords) {
        nwords++;
        word->at = at;
        word->n = 1;
        word->value[0] = (struct value){ .bits = atomic_load(at),
                                         .writer = -1 };
    }
    return word;
}

/* The oldest value that this thread may load. */
static int oldest(const struct word *word)
{
    const struct thread *self = &threads[running];
    int i = word->n - 1;

    while (i > self->seen[word - words] && word->value[i].writer >= 0
           && self->knows.of[word->value[i].writer] < word->value[i].when)
        i--;
    return i;
}

static bool others_run(void)
{
    for (int t = 0; t < program->nthreads; t++)
        if (t != running && (threads[t].state == RUNS
                             || threads[t].state == WAITS))
            return true;
    return false;
}

/* Choose a value, or wait for newer ones and choose then. */
static int value_choose(const struct word *word)
{
    struct thread *self = &threads[running];
    int from = oldest(word), chosen;

    for (;;) {
        chosen = word->n - 1 - choose(word->n - from + others_run());
        if (chosen >= from)
            return chosen;
        from = self->than = word->n;
        self->waits = word;
        leave(WAITS);
    }
}

static void learn(struct clock *clock, const struct clock *from)
{
    for (int t = 0; t < THREADS; t++)
        if (clock->of[t] < from->of[t])
            clock->of[t] = from->of[t];
}

static bool acquires(memory_order order)
{
    return order != memory_order_relaxed && order != memory_order_release;
}

static bool releases(memory_order order)
{
    return order == memory_order_release || order == memory_order_acq_rel
        || order == memory_order_seq_cst;
}

uint64_t interleave_load(const char *function, const _Atomic uint64_t *at,
                         memory_order order)
{
    struct thread *self = &threads[running];
    struct word *word = word_of(at);
    enum interleave_fault fault = fault_of(function, INTERLEAVE_LOAD);
    int index = value_choose(word);

    self->knows.of[running]++;
    self->seen[word - words] = index;
    if (acquires(order) && fault != INTERLEAVE_WEAKER)
        learn(&self->knows, &word->value[index].told);
    if (self->nloads == THREADS * 4)
        fatal("too many loads in a turn");
    self->load[self->nloads].word = word;
    self->load[self->nloads++].index = index;
    return word->value[index].bits + (fault == INTERLEAVE_MORE);
}

static void store(struct word *word, uint64_t bits, bool tells)
{
    struct thread *self = &threads[running];
    struct value *value = &word->value[word->n];

    if (word->n == VALUES)
        fatal("too many stores to a word");
    if (value[-1].writer >= 0 && value[-1].writer != running)
        fatal("two threads store to a word");
    value->bits = bits;
    value->writer = running;
    value->when = ++self->knows.of[running];
    value->told = tells ? self->knows : (struct clock){ { 0 } };
    self->seen[word - words] = word->n++;
    for (int t = 0; t < program->nthreads; t++)
        if (threads[t].state == WAITS && threads[t].waits == word)
            threads[t].state = RUNS;
}

void interleave_store(const char *function, _Atomic uint64_t *at,
                      uint64_t value, memory_order order)
{
    struct thread *self = &threads[running];
    enum interleave_fault fault = fault_of(function, INTERLEAVE_STORE);

    if (fault != INTERLEAVE_LOST)
        store(word_of(at), value + (fault == INTERLEAVE_MORE),
              releases(order) && fault != INTERLEAVE_WEAKER);
    if (self->late.to)
        copy(self->late.to, self->late.from, self->late.bytes);
    self->late.to = NULL;
}

uint64_t interleave_or(const char *function, _Atomic uint64_t *at,
                       uint64_t bits, memory_order order)
{
    struct word *word = word_of(at);
    const uint64_t before = word->value[word->n - 1].bits;

    interleave_store(function, at, before | bits, order);
    return before;
}

void interleave_turn(void)
{
    threads[running].nloads = 0;
}

void interleave_vain(void)
{
    leave(IN_VAIN);
}

/* ----------------------------------------------------------- executions --- */

static void thread_main(void)
{
    program->run(running);
    leave(DONE);
}

static void thread_begin(int t)
{
    struct thread *thread = &threads[t];
    char *stack = thread->stack ? thread->stack : malloc(STACK_BYTES);

    if (!stack)
        fatal("out of memory");
    memset(thread, 0, sizeof *thread);
    thread->stack = stack;
    getcontext(&thread->context);
    thread->context.uc_stack.ss_sp = stack;
    thread->context.uc_stack.ss_size = STACK_BYTES;
    makecontext(&thread->context, thread_main, 0);
}

/* The first thread in that state; the number of threads if there is none. */
static int first(enum state state)
{
    int t = 0;

    while (t < program->nthreads && threads[t].state != state)
        t++;
    return t;
}

static int count(enum state state)
{
    int n = 0;

    for (int t = 0; t < program->nthreads; t++)
        n += threads[t].state == state;
    return n;
}

/* Has every thread that waits in vain seen the last values? */
static bool hangs(void)
{
    for (int t = 0; t < program->nthreads; t++)
        for (int i = 0; threads[t].state == IN_VAIN && i < threads[t].nloads;
             i++)
            if (threads[t].load[i].index < threads[t].load[i].word->n - 1)
                return false;
    return true;
}

static void execute(void)
{
    nwords = nregions = depth = 0;
    program->begin();
    for (int t = 0; t < program->nthreads; t++)
        thread_begin(t);
    while (result->failure[0] == '\0'
           && (running = first(RUNS)) < program->nthreads)
        swapcontext(&scheduler, &threads[running].context);
    result->tried++;
    if (result->failure[0] != '\0')
        return;
    if (count(DONE) == program->nthreads)
        result->executions++;
    else if (count(WAITS) == 0 && hangs())
        snprintf(result->failure, sizeof result->failure, "%d of %d threads "
                 "wait for ever", count(IN_VAIN), program->nthreads);
}

void interleave_all(const struct interleave_program *of,
                    const struct interleave_mutant *with,
                    struct interleave_result *found)
{
    program = of;
    mutant = with;
    result = found;
    *found = (struct interleave_result){ .failure = "" };
    length = 0;
    do
        execute();
    while (found->failure[0] == '\0' && choose_next());
}
