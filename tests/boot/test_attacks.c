/* test_attacks.c - strangers who know all of a job but its key
 *
 * They knock as a rank of the job would, and then say something else than a
 * proof: nothing of it is answered but by a refusal, and the job starts.  Or
 * they sit between two hosts: they say a sealed frame twice, or send all back
 * to who said it.
 *
 * Without this test, who has read the name of a job in its log could stop its
 * start, repeat what ranks said, or have a rank take itself for another.
 */
#include "base/compiler.h"
#include "base/seal.h"
#include "boot/frame.h"
#include "dtensor.h"
#include "tests/boot/boot_job.h"
#include "tests/boot/relay.h"
#include "tests/boot/stranger.h"

#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ------------------------------------------------- instead of a proof ----- */

static const struct second {
    const char *what;
    unsigned type;
    uint32_t claims, sends;       /* bytes of a body                          */
    unsigned count;               /* of such frames                           */
} seconds[] = {
    { "a proof of zeros", DTN_FRAME_PROOF, 32, 32, 1 },
    { "an empty proof", DTN_FRAME_PROOF, 0, 0, 1 },
    { "a long proof", DTN_FRAME_PROOF, DTN_FRAME_EARLY, DTN_FRAME_EARLY, 1 },
    { "a proof of 4 GiB", DTN_FRAME_PROOF, UINT32_MAX, 900, 1 },
    { "half a proof", DTN_FRAME_PROOF, 32, 16, 1 },
    { "a hundred proofs", DTN_FRAME_PROOF, 32, 32, 100 },
    { "another KNOCK", DTN_FRAME_KNOCK, 70, 70, 1 },
    { "a HELLO, not sealed", DTN_FRAME_HELLO, 40, 40, 1 },
    { "ENTRIES of 1 MiB", DTN_FRAME_ENTRIES, 1 << 20, 900, 1 },
    { "a FAIL", DTN_FRAME_FAIL, 40, 40, 1 },
    { "a FAILURE", DTN_FRAME_FAILURE, DTN_FRAME_FAILURE_BYTES,
      DTN_FRAME_FAILURE_BYTES, 1 },
    { "a WELCOME", DTN_FRAME_WELCOME, 4, 4, 1 },
};
static int told;                  /* strangers that heard more than a refusal */
static int answered;              /* by a KNOCK                               */

/* What came back: a KNOCK, and a REFUSED or nothing more. */
static bool heard_little(const unsigned char *back, size_t n)
{
    size_t at;

    if (n < DTN_FRAME_HEAD_BYTES
        || dtn_frame_get32(back + 4) >> 16 != DTN_FRAME_KNOCK)
        return n == 0;
    answered++;
    at = DTN_FRAME_HEAD_BYTES + dtn_frame_get32(back + 16);
    return n == at
        || (n == at + DTN_FRAME_HEAD_BYTES + DTN_FRAME_REFUSED_BYTES
            && dtn_frame_get32(back + at + 4) >> 16 == DTN_FRAME_REFUSED);
}

static void second_say(int fd, const struct second *second)
{
    unsigned char wire[DTN_FRAME_HEAD_BYTES + 1000] = "DTNB";

    dtn_frame_put32(wire + 4, DTN_FRAME_VERSION | second->type << 16);
    dtn_frame_put32(wire + 16, second->claims);
    for (unsigned k = 0; k < second->count; k++)
        send(fd, wire, DTN_FRAME_HEAD_BYTES + second->sends, MSG_NOSIGNAL);
}

/* The rank that they pretend to be joins after them. */
static void seconds_come(void)
{
    unsigned char knock[256], back[2000];
    int fds[DTN_COUNT(seconds)];

    for (size_t i = 0; i < DTN_COUNT(seconds); i++) {
        fds[i] = knock_tcp();
        send(fds[i], knock, stranger_knock(knock), MSG_NOSIGNAL);
        second_say(fds[i], &seconds[i]);
    }
    for (size_t i = 0; i < DTN_COUNT(seconds); i++) {
        size_t n = 0;
        ssize_t more;

        while ((more = recv(fds[i], back + n, sizeof back - n, 0)) > 0)
            n += (size_t)more;
        if (!heard_little(back, n)) {
            note("%s: %zu bytes came back", seconds[i].what, n);
            told++;
        }
        close(fds[i]);
    }
}

static void test_seconds(void)
{
    struct boot_job job = job_even(2, 2);

    for (int r = 2; r < 4; r++)
        job.actor[r].late = true;
    job_run(&job, seconds_come);
    ok(job_good(&job) && told == 0 && answered > 0, "who knows the job and "
       "proves nothing is refused or dropped, and the job starts: %d kinds",
       (int)DTN_COUNT(seconds));
}

/* -------------------------------------------------------- in between ------ */

/* The KNOCK, the proof with HELLO, and what comes sealed after it, if that is
 * read apart; it may be the last that rank 0 needs.
 */
static void test_twice(void)
{
    for (int after = 0; after < 3; after++) {
        struct boot_job job = relay_job();
        bool none;

        job.timeout_ms = 1000;
        relay_open();
        relay_twice = after;
        job_run(&job, relay_run);
        relay_close();
        none = relay_twice < 0 && said[0].rc != 0 && said[1].rc != 0;
        ok(job_crashed == 0 && (none || (after == 2 && job_good(&job))),
           "rank 1's message %d comes twice: no job%s", after,
           after == 2 ? ", or it was not needed" : "");
        note("%s", said[1].err.text);
    }
}

static void test_mirror(void)
{
    struct boot_job job = relay_job();

    job.timeout_ms = 1000;
    relay_open();
    job_run(&job, relay_mirror);
    relay_close();
    ok(said[0].rc != 0 && said[1].rc != 0 && job_crashed == 0 && relay_n > 0,
       "rank 1 hears itself in place of rank 0: no job");
    note("%s", said[1].err.text);
}

int main(void)
{
    job_init();
    if (!dtn_seal_present())
        return skip_all("this build has no libsodium");
    test_seconds();
    test_twice();
    test_mirror();
    return done();
}
