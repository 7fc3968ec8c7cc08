/* test_fault_transport.c - injected faults are those of the plan, no others
 *
 * A transport that only counts gets the faults, so that each is seen at the
 * call that it was planned for.
 *
 * Without this test, test_injected_faults could pass because no fault is
 * injected.
 */
#include "base/compiler.h"
#include "base/wait.h"
#include "transport/fault.h"
#include "transport/transport.h"
#include "dtensor.h"
#include "tests/support/ranks.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

/* A transport that only counts. */
static int puts_made, signals_made, connects_made, closes_made;

static int count_put(struct dtn_transport *tp, int peer, struct dtn_remote dst,
                     const void *src, size_t size, size_t *done)
{
    puts_made++;
    *done = size / 2;
    return 0;
}

static int count_signal(struct dtn_transport *tp, int peer,
                        const struct dtn_signal *signal,
                        const struct dtn_eager *data)
{
    signals_made++;
    return 0;
}

static int count_connect(struct dtn_transport *tp, int peer,
                         const struct dtn_blob *blob,
                         struct dtensor_error *err)
{
    connects_made++;
    return 0;
}

static void count_close(struct dtn_transport *tp)
{
    closes_made++;
}

static const struct dtn_transport_ops count_ops = {
    .name = "count", .put = count_put, .signal = count_signal,
    .connect = count_connect, .close = count_close
};
static struct dtn_transport counter = { .ops = &count_ops };

static struct dtn_transport *faulty(const char *text)
{
    struct dtn_fault_plan plan;
    struct dtensor_error err;

    puts_made = signals_made = connects_made = closes_made = 0;
    if (dtn_fault_parse(text, &plan, &err) != 0 ||
        dtn_fault_inject(&counter, &plan, &err) != 0) {
        note("%s", err.text);
        exit(1);
    }
    return &counter;
}

static size_t moved;

static int put(struct dtn_transport *tp)
{
    return tp->ops->put(tp, 0, (struct dtn_remote){ 1, 1 }, "abcd", 4, &moved);
}

static int send_signal(struct dtn_transport *tp)
{
    static const struct dtn_signal s;

    return tp->ops->signal(tp, 0, &s, NULL);
}

/* ---------------------------------------------------------------- plans --- */

static void test_parse(void)
{
    static const struct { const char *text; const char *why; } bad[] = {
        { "kil_signal=3", "fault: there is no \"kil_signal\" (did you mean "
                          "kill_signal)" },
        { "fail_put", "fault: \"fail_put\" has no value (write "
                      "key=value,key=value)" },
        { "fail_put=-1", "fault: fail_put cannot be \"-1\" (write a number up "
                         "to 1000000000)" },
        { "fail_put=", NULL }, { "fail_put=1x", NULL },
        { "code=EWHAT", "fault: code cannot be \"EWHAT\" (write the name of "
                        "an error, such as EPEER)" },
        { "=1", NULL }, { "fail_put=99999999999999999999", NULL },
    };
    struct dtn_fault_plan p;
    struct dtensor_error err;

    ok(dtn_fault_parse("fail_put=1,fail_signal=2,fail_connect=3,drop_put=4,"
                       "drop_signal=5,kill_signal=6,again_every=7,delay_us=8,"
                       "code=ETIME", &p, &err) == 0 && p.fail_put == 1 &&
       p.fail_signal == 2 && p.fail_connect == 3 && p.drop_put == 4 &&
       p.drop_signal == 5 && p.kill_signal == 6 && p.again_every == 7 &&
       p.delay_us == 8 && p.code == DTENSOR_ETIME, "every key is read");
    ok(dtn_fault_parse("", &p, &err) == 0 && p.fail_put == 0 &&
       p.code == DTENSOR_ESYS, "no text is no fault");
    p.fail_put = 77;
    for (size_t i = 0; i < DTN_COUNT(bad); i++)
        ok(dtn_fault_parse(bad[i].text, &p, &err) == DTENSOR_ECONF &&
           (!bad[i].why || strcmp(err.text, bad[i].why) == 0) &&
           p.fail_put == 77, "%s", err.text);
}

static void test_fail(void)
{
    struct dtn_transport *tp = faulty("fail_put=2,code=EPEER");
    struct dtn_blob blob = { .fd = -1 };
    struct dtensor_error err;

    moved = 99;
    ok(put(tp) == 0 && moved == 2 && put(tp) == DTENSOR_EPEER && moved == 2 &&
       put(tp) == 0 && puts_made == 2, "fail_put=2 fails the second put only");
    tp->ops->close(tp);
    ok(closes_made == 1 && tp->ops == &count_ops, "close() is passed on");
    tp = faulty("fail_signal=1");
    ok(send_signal(tp) == DTENSOR_ESYS && send_signal(tp) == 0 &&
       signals_made == 1, "fail_signal=1 fails the first signal only");
    tp->ops->close(tp);
    tp = faulty("fail_connect=1,code=EPEER");
    ok(tp->ops->connect(tp, 3, &blob, &err) == DTENSOR_EPEER && err.rank == 3 &&
       tp->ops->connect(tp, 3, &blob, &err) == 0 && connects_made == 1,
       "fail_connect=1: %s", err.text);
    tp->ops->close(tp);
}

static void test_drop(void)
{
    struct dtn_transport *tp = faulty("drop_put=1,drop_signal=2");

    ok(put(tp) == 0 && moved == 4 && puts_made == 0 && put(tp) == 0 &&
       puts_made == 1, "drop_put=1 says done and moves nothing");
    ok(send_signal(tp) == 0 && signals_made == 1 && send_signal(tp) == 0 &&
       signals_made == 1 && send_signal(tp) == 0 && signals_made == 2,
       "drop_signal=2 loses the second signal");
    tp->ops->close(tp);
}

static void test_again(void)
{
    struct dtn_transport *tp = faulty("again_every=3");

    ok(put(tp) == 0 && send_signal(tp) == 0 && put(tp) == DTENSOR_EAGAIN &&
       put(tp) == 0 && put(tp) == 0 && send_signal(tp) == DTENSOR_EAGAIN &&
       puts_made == 3 && signals_made == 1,
       "again_every=3 puts every third put or signal off");
    tp->ops->close(tp);
}

static void test_delay(void)
{
    struct dtn_transport *tp = faulty("delay_us=2000");
    int64_t began = dtn_now_ns();

    put(tp);
    send_signal(tp);
    ok(dtn_now_ns() - began >= 4000000, "delay_us=2000 delays each by 2 ms");
    tp->ops->close(tp);
}

/* What the transport cannot do, it cannot do with faults. */
static void test_entries(void)
{
    struct dtn_transport *tp = faulty("");

    ok(!tp->ops->map && !tp->ops->fetch && !tp->ops->adopt && !tp->ops->disown,
       "an entry that is NULL stays NULL");
    tp->ops->close(tp);
}

static void rank_killed(int rank, int n, void *arg)
{
    struct dtn_transport *tp = faulty("kill_signal=2");

    send_signal(tp);
    puts("# one signal was sent");
    fflush(stdout);
    send_signal(tp);
    _exit(0);
}

int main(void)
{
    int status = 0;

    test_parse();
    test_fail();
    test_drop();
    test_again();
    test_delay();
    ranks_run(1, 10, rank_killed, NULL, &status);
    ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
       "kill_signal=2 kills the process at the second signal");
    test_entries();
    return done();
}
