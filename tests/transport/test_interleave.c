/* test_interleave.c - the model checker sees what C11 allows, and no more
 *
 * Programs of a few lines whose results are known, by their usual names.  Each
 * has up to 16 results, of which each is either allowed or not; all that are
 * allowed, and only these, must be met.
 *
 * Without this test, a checker that runs too little would find no mistake.
 */
#include "base/compiler.h"
#include "tests/support/tap.h"
#include "tests/transport/interleave.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

static _Atomic uint64_t x, y;
static uint32_t plain;
static unsigned loaded;           /* bits that the threads of a run loaded    */
static int left;                  /* threads of the run that are not done     */
static unsigned met;              /* bit r: result r was met                  */
static memory_order first, second;            /* of stores, and of loads      */

static void begin(void)
{
    x = y = 0;
    plain = 0;
    loaded = 0;
    left = 4;
    interleave_share(&plain, sizeof plain);
}

static void done_with(unsigned bits)
{
    loaded |= bits;
    if (--left == 0)
        met |= 1U << loaded;
}

static unsigned load(const _Atomic uint64_t *at, int bit)
{
    return (unsigned)interleave_load(__func__, at, second) << bit;
}

static void store(_Atomic uint64_t *at, uint64_t value)
{
    interleave_store(__func__, at, value, first);
}

/* MP: two stores, and loads in the other order. */
static void message(int thread)
{
    unsigned bits = 0;

    if (thread == 0) {
        store(&x, 1);
        store(&y, 1);
    } else if (thread == 1) {
        bits = load(&y, 0);
        bits |= load(&x, 1);
    }
    done_with(bits);
}

/* SB: each stores, then loads what the other stores. */
static void buffers(int thread)
{
    unsigned bits = 0;

    if (thread < 2) {
        store(thread == 0 ? &x : &y, 1);
        bits = load(thread == 0 ? &y : &x, thread);
    }
    done_with(bits);
}

/* LB: each loads, then stores what the other loads. */
static void loads(int thread)
{
    unsigned bits = 0;

    if (thread < 2) {
        bits = load(thread == 0 ? &y : &x, thread);
        store(thread == 0 ? &x : &y, 1);
    }
    done_with(bits);
}

/* CoRR: a thread loads the same word twice. */
static void coherence(int thread)
{
    unsigned bits = 0;

    if (thread == 0) {
        store(&x, 1);
    } else if (thread == 1) {
        bits = load(&x, 0);
        bits |= load(&x, 1);
    }
    done_with(bits);
}

/* IRIW: two threads see two stores of others, in two orders. */
static void orders(int thread)
{
    unsigned bits = 0;

    if (thread < 2) {
        store(thread == 0 ? &x : &y, 1);
    } else {
        bits = load(thread == 2 ? &x : &y, 2 * (thread - 2));
        bits |= load(thread == 2 ? &y : &x, 2 * (thread - 2) + 1);
    }
    done_with(bits);
}

static void plainly(int thread)
{
    uint32_t value = 1;

    if (thread == 0) {
        interleave_copy(__func__, &plain, &value, sizeof plain);
        store(&y, 1);
    } else if (thread == 1 && load(&y, 0)) {
        interleave_copy(__func__, &value, &plain, sizeof plain);
    }
    done_with(0);
}

static void forever(int thread)
{
    if (thread == 0) {
        interleave_turn();
        if (load(&x, 0) == 0)
            interleave_vain();
    }
    done_with(0);
}

static void run(const char *name, void (*program)(int), memory_order stores,
                memory_order loads_by, struct interleave_result *result)
{
    const struct interleave_program litmus = { name, 4, begin, program };

    met = 0;
    first = stores;
    second = loads_by;
    interleave_all(&litmus, NULL, result);
}

/* `allowed`: bit r for result r.  Bit b of a result is what load b returned. */
static void litmus(const char *name, void (*program)(int), bool ordered,
                   unsigned allowed)
{
    struct interleave_result result;

    run(name, program, ordered ? memory_order_release : memory_order_relaxed,
        ordered ? memory_order_acquire : memory_order_relaxed, &result);
    ok(result.failure[0] == '\0' && met == allowed,
       "%s, %s: results 0x%x in %" PRIu64 " executions, expected 0x%x", name,
       ordered ? "release and acquire" : "relaxed", met, result.executions,
       allowed);
}

static void finds(const char *name, void (*program)(int), memory_order stores,
                  memory_order loads_by, const char *failure)
{
    struct interleave_result result;

    run(name, program, stores, loads_by, &result);
    ok(strstr(result.failure, failure) && (*failure || !*result.failure),
       "%s: \"%s\"", name, result.failure);
}

int main(void)
{
    litmus("MP", message, false, 0xf);
    litmus("MP", message, true, 0xd);           /* y is new: so is x          */
    litmus("SB", buffers, true, 0xf);
    litmus("LB", loads, false, 0x7);            /* one of them is first       */
    litmus("CoRR", coherence, false, 0xd);      /* no word goes back          */
    litmus("IRIW", orders, true, 0xffff);
    finds("a flag with release and acquire", plainly, memory_order_release,
          memory_order_acquire, "");
    finds("a flag without release", plainly, memory_order_relaxed,
          memory_order_acquire, "data race");
    finds("a flag without acquire", plainly, memory_order_release,
          memory_order_relaxed, "data race");
    finds("a word that nobody sets", forever, memory_order_release,
          memory_order_acquire, "1 of 4 threads wait for ever");
    return done();
}
