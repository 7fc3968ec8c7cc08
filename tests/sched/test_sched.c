/* test_sched.c - schedules are built and printed
 *
 * Steps are added one by one, also when memory runs out, and the printed text
 * is compared.
 *
 * Without this test, a schedule that grows could lose steps, and dtensor-plan
 * could show other steps than are run.
 */
#include "base/box.h"
#include "sched/sched.h"
#include "dtensor.h"
#include "tests/support/tap.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Linked with --wrap=realloc: the n-th call from now fails, 0 none. */
static int failing;

void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *__wrap_realloc(void *old, size_t size)
{
    if (failing > 0 && --failing == 0)
        return NULL;
    return __real_realloc(old, size);
}

static struct dtn_span at(int rank, enum dtn_space space, size_t offset)
{
    return (struct dtn_span){ rank, space, offset };
}

/* Every kind of step, once. */
static void build(struct dtn_sched *sched)
{
    const struct dtn_box box = { 2, { 3, 4 }, { 8, 1 }, { 4, 1 } };

    dtn_sched_init(sched, "sample tree", 3, 1, DTENSOR_F32, DTENSOR_AVG);
    sched->bytes[DTN_IN] = 64;
    sched->bytes[DTN_TMP] = 192;
    sched->exposed[DTN_TMP] = true;
    dtn_sched_signal(sched, 2, DTN_TAG_READY);
    dtn_sched_wait(sched, 0, DTN_TAG_READY);
    dtn_sched_put(sched, 0, at(0, DTN_TMP, 64), at(1, DTN_IN, 0), 64);
    dtn_sched_signal(sched, 0, DTN_TAG_DATA);
    dtn_sched_flush(sched, 0);
    dtn_sched_send_eager(sched, 2, at(1, DTN_IN, 8), 24);
    dtn_sched_recv_eager(sched, 2, at(1, DTN_TMP, 128), 24);
    dtn_sched_copy(sched, at(1, DTN_OUT, 0), at(1, DTN_IN, 0), 64);
    dtn_sched_reduce(sched, at(1, DTN_OUT, 4), at(2, DTN_IN, 4), 60);
    dtn_sched_copy_box(sched, at(1, DTN_OUT, 0), at(0, DTN_IN, 16), &box);
    dtn_sched_reduce_box(sched, at(1, DTN_OUT, 0), at(1, DTN_TMP, 0), &box);
    dtn_sched_fold(sched, at(1, DTN_OUT, 0), at(-1, DTN_IN, 0), 64);
    dtn_sched_fold(sched, at(1, DTN_OUT, 0), at(1, DTN_TMP, 0), 64);
    dtn_sched_neutral(sched, at(1, DTN_OUT, 32), 32);
    dtn_sched_scale(sched, at(1, DTN_OUT, 0), 64);
    dtn_sched_put_box(sched, 0, at(0, DTN_OUT, 32), at(1, DTN_IN, 4), &box);
    dtn_sched_signal(sched, 2, DTN_TAG_DONE);
}

static const char golden[] =
    "sample tree: rank 1 of 3, f32 avg, IN 64 OUT 0 TMP* 192\n"
    "  0 signal  -> 2  READY\n"
    "  1 wait    <- 0  READY\n"
    "  2 put     -> 0  TMP+64 <- IN+0  64 bytes\n"
    "  3 signal  -> 0  DATA\n"
    "  4 flush   -> 0\n"
    "  5 signal  -> 2  EAGER <- IN+8  24 bytes\n"
    "  6 wait    <- 2  EAGER -> TMP+128  24 bytes\n"
    "  7 copy    OUT+0 <- IN+0  64 bytes\n"
    "  8 reduce  OUT+4 <- 2:IN+4  60 bytes\n"
    "  9 copy    OUT+0 <- 0:IN+16  box 3x4 (8,1) <- (4,1)\n"
    " 10 reduce  OUT+0 <- TMP+0  box 3x4 (8,1) <- (4,1)\n"
    " 11 fold    OUT+0 <- *:IN+0  64 bytes\n"
    " 12 fold    OUT+0 <- TMP+0  3 slots of 64 bytes\n"
    " 13 neutral OUT+32  32 bytes\n"
    " 14 scale   OUT+0  64 bytes\n"
    " 15 put     -> 0  OUT+32 <- IN+4  box 3x4 (8,1) <- (4,1)\n"
    " 16 signal  -> 2  DONE\n";

static void test_print(void)
{
    struct dtn_sched sched;
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);

    build(&sched);
    ok(dtn_sched_finish(&sched, NULL) == 0, "a schedule with every kind of "
       "step is built");
    dtn_sched_print(&sched, stream);
    fclose(stream);
    if (!ok(strcmp(text, golden) == 0, "and printed, one step a line"))
        printf("%s", text);
    free(text);
    dtn_sched_fini(&sched);
}

static void test_build(void)
{
    const struct dtn_box none = { 1, { 0 }, { 1 }, { 1 } };
    struct dtn_sched sched;

    dtn_sched_init(&sched, "empty", 2, 0, DTENSOR_F32, DTENSOR_SUM);
    dtn_sched_put(&sched, 1, at(1, DTN_OUT, 0), at(0, DTN_IN, 0), 0);
    dtn_sched_copy(&sched, at(0, DTN_OUT, 0), at(1, DTN_IN, 0), 0);
    dtn_sched_copy_box(&sched, at(0, DTN_OUT, 0), at(1, DTN_IN, 0), &none);
    dtn_sched_put_box(&sched, 1, at(1, DTN_OUT, 0), at(0, DTN_IN, 0), &none);
    dtn_sched_fold(&sched, at(0, DTN_OUT, 0), at(-1, DTN_IN, 0), 0);
    dtn_sched_scale(&sched, at(0, DTN_OUT, 0), 0);
    dtn_sched_neutral(&sched, at(0, DTN_OUT, 0), 0);
    ok(sched.nsteps == 0 && sched.nboxes == 0,
       "steps of no bytes are not appended");
    dtn_sched_send_eager(&sched, 1, at(0, DTN_IN, 0), 0);
    dtn_sched_recv_eager(&sched, 1, at(0, DTN_OUT, 0), 0);
    ok(sched.nsteps == 2, "but signals of no bytes are");
    dtn_sched_copy(&sched, at(0, DTN_OUT, 0), at(0, DTN_IN, 0), 4);
    dtn_sched_fold(&sched, at(0, DTN_OUT, 0), at(0, DTN_TMP, 0), 4);
    dtn_sched_reduce(&sched, at(0, DTN_OUT, 0), at(1, DTN_IN, 0), 4);
    ok(sched.divisor == 2, "the divisor is the number of ranks");
    dtn_sched_fini(&sched);
    ok(!sched.steps && sched.nsteps == 0, "fini leaves it empty");
}

static void test_many(void)
{
    struct dtn_sched sched;
    bool good = true;

    dtn_sched_init(&sched, "many", 2, 0, DTENSOR_F32, DTENSOR_SUM);
    for (size_t i = 0; i < 1000; i++)
        dtn_sched_copy(&sched, at(0, DTN_OUT, i), at(0, DTN_IN, i), 1);
    for (size_t i = 0; i < 1000; i++)
        good = good && sched.steps[i].dst.offset == i;
    ok(good && sched.nsteps == 1000 && dtn_sched_finish(&sched, NULL) == 0,
       "a thousand steps keep their order");
    dtn_sched_fini(&sched);
}

/* Fail the k-th growth, of steps or of boxes; later ones would succeed. */
static void test_memory(void)
{
    const struct dtn_box box = { 1, { 2 }, { 3 }, { 1 } };
    struct dtensor_error err;
    bool good = true;

    for (int k = 1; k <= 6; k++) {
        struct dtn_sched sched;

        dtn_sched_init(&sched, "short", 2, 0, DTENSOR_F32, DTENSOR_SUM);
        failing = k;
        for (size_t i = 0; i < 200; i++)
            dtn_sched_copy_box(&sched, at(0, DTN_OUT, i), at(0, DTN_IN, i),
                               &box);
        good = good && failing == 0
            && dtn_sched_finish(&sched, &err) == DTENSOR_ENOMEM
            && strstr(err.text, "short: out of memory") && sched.nsteps < 200;
        dtn_sched_fini(&sched);
    }
    failing = 0;
    ok(good, "running out of memory is remembered until the end");
}

int main(void)
{
    test_build();
    test_print();
    test_many();
    test_memory();
    return done();
}
