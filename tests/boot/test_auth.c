/* test_auth.c - ranks of several hosts prove that they belong to the job
 *
 * Ranks with another key, with none, of another user, or that repeat what was
 * heard before, are refused in words; so is what comes before the proof.
 * Behind the proof nothing can be read or changed on the way.
 *
 * Without this test, a process of another user could become a rank of a job,
 * give it wrong data, or end it.
 */
#include "base/compiler.h"
#include "base/seal.h"
#include "boot/auth.h"
#include "boot/frame.h"
#include "dtensor.h"
#include "tests/boot/boot_job.h"
#include "tests/boot/relay.h"

#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define OTHER_KEY "ff0102030405060708090a0b0c0d0e0f" \
                  "101112131415161718191a1b1c1d1e1f"

/* ------------------------------------------------------------- wrong keys - */

static bool said_all(const struct boot_job *job, int rank, int code,
                     const char *words)
{
    bool good = true;

    for (int i = 0; i < job->nactors; i++)
        if (rank < 0 || job->actor[i].rank == rank)
            good = good && said[i].rc == code && said[i].leaked_fds == 0 &&
                   strstr(said[i].err.text, words);
    if (!good)
        job_show(job);
    return good;
}

/* Of four hosts, n1 and n2 are below n0, and n3 is below n1. */
static void test_keys(void)
{
    struct boot_job job = job_even(4, 1);

    job.timeout_ms = 3000;
    job.actor[2].key = OTHER_KEY;
    job.actor[3].key = "";
    job_run(&job, NULL);
    ok(said_all(&job, 2, DTENSOR_EMISMATCH, "boot: what answers at port ") &&
       said_all(&job, 2, DTENSOR_EMISMATCH, "refused rank 2 on n2: they have "
                "different keys (give all ranks the same DTN_KEY)"),
       "a rank with another key says so itself");
    ok(said_all(&job, 3, DTENSOR_ECONF, "DTN_KEY is not set"),
       "a rank without a key, too");
    ok(said_all(&job, 0, DTENSOR_ETIME, "ranks 2 on n2, 3 on n3 did not join")
       && said_all(&job, 0, DTENSOR_ETIME, "refused: they have different keys")
       && said_all(&job, 0, DTENSOR_ETIME, "refused: they prove who they are "
                   "in different ways"),
       "... and those that miss them say every reason");
    note("%s", said[0].err.text);
    note("%s", said[3].err.text);
}

static void test_no_keys(void)
{
    struct boot_job job = job_even(2, 2);

    for (int i = 0; i < 4; i++)
        job.actor[i].key = "";
    job_run(&job, NULL);
    ok(said_all(&job, -1, DTENSOR_ECONF, "auth: 2 hosts, and nothing that "
                "proves who belongs to the job") &&
       said_all(&job, -1, DTENSOR_ECONF, "DTN_KEY=$(openssl rand -hex 32)"),
       "several hosts and no key: all ranks say so, with the remedy");
    job = job_even(1, 3);
    for (int i = 0; i < 3; i++)
        job.actor[i].key = "";
    job_run(&job, NULL);
    ok(job_good(&job), "one host needs no key");
    job = job_even(2, 1);
    job.actor[0].no_auth = job.actor[1].no_auth = true;
    job_run(&job, NULL);
    ok(job_good(&job), "auth = none needs no key");
    job.timeout_ms = 3000;
    job.actor[1].no_auth = false;
    job_run(&job, NULL);
    ok(said_all(&job, 1, DTENSOR_EMISMATCH, "rank 0 on n0 has auth none, "
                "rank 1 on n1 auth key"), "auth = none on one host only is refused");
    job = job_even(2, 1);
    for (int i = 0; i < 2; i++)
        job.actor[i].key = "secret";
    job_run(&job, NULL);
    ok(said_all(&job, -1, DTENSOR_ECONF, "key: DTN_KEY has 6 characters; "
                "expected 64 hex digits"), "a word is no key");
}

/* --------------------------------------------------- before the proof ----- */

/* What a stranger sends first, and whether he is answered. */
static const struct early {
    const char *what;
    unsigned type;
    uint32_t claims, sends;       /* bytes of a body                          */
} earlies[] = {
    { "a HELLO", DTN_FRAME_HELLO, 40, 40 },
    { "a FAIL", DTN_FRAME_FAIL, 40, 40 },
    { "ENTRIES", DTN_FRAME_ENTRIES, 20, 20 },
    { "an IDENTITY of 1 MiB", DTN_FRAME_IDENTITY, 1 << 20, 1000 },
    { "a PROOF for nothing", DTN_FRAME_PROOF, 32, 32 },
    { "a KNOCK that is too short", DTN_FRAME_KNOCK, 10, 10 },
    { "a KNOCK that is too long", DTN_FRAME_KNOCK, 480, 480 },
    { "a KNOCK of 4 GiB", DTN_FRAME_KNOCK, UINT32_MAX, 1000 },
    { "a KNOCK of zeros", DTN_FRAME_KNOCK, 70, 70 },
};

static int early_answered;        /* strangers that were told more than KNOCK */

static void early_come(void)
{
    for (size_t i = 0; i < DTN_COUNT(earlies); i++) {
        unsigned char wire[DTN_FRAME_HEAD_BYTES + 1000] = "DTNB";
        unsigned char back[2000];
        int fd = knock_tcp();
        size_t n = 0;
        ssize_t more;

        dtn_frame_put32(wire + 4, DTN_FRAME_VERSION | earlies[i].type << 16);
        dtn_frame_put32(wire + 16, earlies[i].claims);
        send(fd, wire, DTN_FRAME_HEAD_BYTES + earlies[i].sends, MSG_NOSIGNAL);
        while ((more = recv(fd, back + n, sizeof back - n, 0)) > 0)
            n += (size_t)more;
        if (n > 0 && dtn_frame_get32(back + 4) >> 16 != DTN_FRAME_KNOCK) {
            note("%s: %zu bytes came back", earlies[i].what, n);
            early_answered++;
        }
        close(fd);
    }
}

static void test_early(void)
{
    struct boot_job job = job_even(2, 2);

    for (int r = 2; r < 4; r++)
        job.actor[r].late = true;
    job_run(&job, early_come);
    ok(job_good(&job) && early_answered == 0, "what comes before the proof, "
       "HELLO, FAIL and oversized frames among it, is dropped");
}

/* ----------------------------------------------------------- on the way --- */

static void test_way(void)
{
    struct boot_job job = relay_job();
    size_t whole;

    relay_open();
    job_run(&job, relay_run);
    ok(job_good(&job) && relay_n > 700, "a relay between two hosts hears %zu "
       "bytes", relay_n);
    whole = relay_n;
    ok(!memmem(relay_heard, relay_n, "\x1f\x20\x21\x22\x23", 5),
       "... and cannot read the blob that rank 1 sent");
    job = relay_job();
    job.actor[0].no_auth = job.actor[1].no_auth = true;
    job_run(&job, relay_run);
    ok(job_good(&job) &&
       memmem(relay_heard, relay_n, "\x1f\x20\x21\x22\x23", 5),
       "... which with auth = none it can");
    job = relay_job();
    job_run(&job, relay_run);
    job = job_even(2, 1);
    job.actor[1].late = true;
    job_run(&job, relay_repeat);
    ok(job_good(&job) && relay_refused == DTN_REFUSED_KEY,
       "the same bytes again are refused, and the next job starts (reason %d)",
       relay_refused);
    job = relay_job();
    job.timeout_ms = 1500;
    relay_flip = 400;
    job_run(&job, relay_run);
    ok(said[0].rc != 0 && said[1].rc != 0 && job_crashed == 0,
       "byte 400 of %zu changed on the way: no job", whole);
    note("%s", said[1].err.text);
    relay_close();
}

/* Each of two libraries takes the other for one of version 99. */
static void test_versions(void)
{
    struct boot_job job = relay_job();

    relay_open();
    job.timeout_ms = 3000;
    relay_version = 99;
    job_run(&job, relay_all);
    relay_version = 0;
    relay_close();
    ok(said_all(&job, 1, DTENSOR_EMISMATCH, "boot: rank 0 on n0 speaks version "
                "99 of the bootstrap, rank 1 on n1 version 10 (install the "
                "same libdtensor on all hosts)"),
       "a host with another version of the protocol is named by who connects");
    ok(said_all(&job, 0, DTENSOR_ETIME, "refused: they speak another version "
                "of the bootstrap (install the same libdtensor"),
       "... and who misses it says that it refused another version");
    note("%s", said[0].err.text);
}

static void test_cost(void)
{
    struct boot_job job = job_even(2, 2);
    int64_t sealed = job_joins_ns(&job), plain;

    for (int i = 0; i < job.nactors; i++)
        job.actor[i].no_auth = true;
    plain = job_joins_ns(&job);
    ok(sealed > 0 && plain > 0, "a second host joins with a key and without");
    note("it takes %.2f ms with a key, %.2f ms without", (double)sealed / 1e6,
         (double)plain / 1e6);
}

int main(void)
{
    job_init();
    setenv("DTN_MUNGE_SOCKET", "/nonexistent", 1);
    if (!dtn_seal_present()) {
        skip("ranks of several hosts", "this build has no libsodium");
        return done();
    }
    test_keys();
    test_no_keys();
    test_early();
    test_way();
    test_versions();
    test_cost();
    return done();
}
