/* test_munge.c - ranks of several hosts know each other by munge
 *
 * A munged of this test's own makes and decodes the credentials.  Those of
 * another user, those that were used before, old ones, and a munged that does
 * not answer are refused in words.
 *
 * Without this test, auth = munge could be a word that lets everybody in.
 */
#include "base/seal.h"
#include "base/wait.h"
#include "boot/auth.h"
#include "boot/munge.h"
#include "dtensor.h"
#include "tests/boot/boot_job.h"
#include "tests/boot/relay.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[] = "/tmp/dtn-munge.XXXXXX";   /* munged wants open parents   */
static pid_t munged;

static void munge_key(void)
{
    char path[64], key[128];
    FILE *file;

    snprintf(path, sizeof path, "%s/key", dir);
    file = fopen(path, "w");
    if (!file || !dtn_secret_random(key, sizeof key) ||
        fwrite(key, sizeof key, 1, file) != 1 || fclose(file) != 0 ||
        chmod(path, 0600) != 0)
        exit(99);
}

static void munge_exec(void)
{
    static const char *const names[] = {
        "--key-file=%s/key", "--socket=%s/socket", "--pid-file=%s/pid",
        "--log-file=%s/log", "--seed-file=%s/seed"
    };
    static char options[5][64];

    for (int i = 0; i < 5; i++)
        snprintf(options[i], sizeof options[i], names[i], dir);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    umask(022);
    if (!freopen("/dev/null", "w", stderr) ||
        !freopen("/dev/null", "w", stdout))
        _exit(1);
    setenv("PATH", "/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin", 1);
    execlp("munged", "munged", "--foreground", "--num-threads=2", options[0],
           options[1], options[2], options[3], options[4], (char *)NULL);
    _exit(127);
}

/* Start munged; false: there is none. */
static bool munge_start(void)
{
    char path[64], cred[DTN_MUNGE_MAX];
    struct dtensor_error err;

    if (!mkdtemp(dir) || chmod(dir, 0755) != 0)
        return false;
    munge_key();
    snprintf(path, sizeof path, "%s/socket", dir);
    setenv("DTN_MUNGE_SOCKET", path, 1);
    fflush(stdout);
    munged = fork();
    if (munged == 0)
        munge_exec();
    for (int i = 0; i < 3000 && waitpid(munged, NULL, WNOHANG) == 0; i++) {
        if (access(path, F_OK) == 0 &&
            dtn_munge_encode(cred, "", 0, &err) == 0)
            return true;
        usleep(10000);
    }
    munged = 0;
    return false;
}

static void munge_stop(void)
{
    static const char *const left[] = { "key", "socket", "socket.lock", "pid",
                                        "log", "seed" };
    char path[64];

    if (munged > 0) {
        kill(munged, SIGKILL);
        waitpid(munged, NULL, 0);
    }
    for (size_t i = 0; i < sizeof left / sizeof left[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, left[i]);
        unlink(path);
    }
    rmdir(dir);
}

static struct boot_job munge_job(int nhosts, int each)
{
    struct boot_job job = job_even(nhosts, each);

    job.timeout_ms = 30000;
    for (int i = 0; i < job.nactors; i++)
        job.actor[i].munge = true;
    return job;
}

static void test_jobs(void)
{
    struct boot_job job = munge_job(3, 2);

    job_run(&job, NULL);
    ok(job_good(&job), "a job of three hosts joins by munge");
    job = munge_job(2, 2);
    note("the second host joins in %.2f ms",
         (double)job_joins_ns(&job) / 1e6);
    job = job_even(2, 1);
    job.actor[0].key = job.actor[1].key = "";
    job_run(&job, NULL);
    ok(job_good(&job), "auth = auto without a key takes munge");
}

static void test_user(void)
{
    struct boot_job job = munge_job(2, 1);
    bool good;

    if (geteuid() != 0) {
        skip("a rank of another user", "needs root");
        return;
    }
    job.timeout_ms = 2500;
    job.actor[1].uid = 12345;
    job_run(&job, NULL);
    good = said[1].rc == DTENSOR_EMISMATCH &&
           strstr(said[1].err.text, "refused rank 1 on n1: the munge credential"
                  " is of another user") &&
           said[0].rc == DTENSOR_ETIME &&
           strstr(said[0].err.text, "refused: the munge credential is of");
    ok(good, "a rank of another user is refused, and both sides say so");
    if (!good)
        job_show(&job);
}

static void test_replayed(void)
{
    struct boot_job job = relay_job();

    relay_open();
    job.actor[0].munge = job.actor[1].munge = true;
    job_run(&job, relay_run);
    ok(job_good(&job), "a relay hears %zu bytes", relay_n);
    job = munge_job(2, 1);
    job.actor[1].late = true;
    job_run(&job, relay_repeat);
    ok(job_good(&job) && relay_refused == DTN_REFUSED_REPLAYED,
       "the same bytes again are refused as replayed (reason %d)",
       relay_refused);
    relay_close();
}

/* A credential that munge(1) makes. */
static bool munge_make(const char *options, char cred[DTN_MUNGE_MAX])
{
    char command[200];
    FILE *out;
    bool good;

    snprintf(command, sizeof command, "munge -S %s/socket -s x %s", dir,
             options);
    out = popen(command, "r");
    good = out && fgets(cred, DTN_MUNGE_MAX, out);
    if (out)
        pclose(out);
    cred[strcspn(cred, "\n")] = '\0';
    return good;
}

static void test_credentials(void)
{
    char cred[DTN_MUNGE_MAX] = "", first[DTN_MUNGE_MAX], byte;
    struct dtensor_error err;

    ok(dtn_munge_encode(cred, "y", 1, &err) == 0 &&
       dtn_munge_decode(cred, &byte, 1) == DTN_MUNGE_GOOD && byte == 'y',
       "a credential is decoded (%zu bytes)", strlen(cred));
    ok(dtn_munge_decode(cred, &byte, 1) == DTN_MUNGE_REPLAYED, "... once");
    ok(munge_make("-t 1", first), "one that is good for a second");
    ok(munge_make("-u 12345", cred) &&
       dtn_munge_decode(cred, &byte, 1) == DTN_MUNGE_USER,
       "one for another user is refused");
    ok(dtn_munge_encode(cred, "long", 4, &err) == 0 &&
       dtn_munge_decode(cred, &byte, 1) == DTN_MUNGE_BAD,
       "one with other bytes than expected is refused");
    cred[20] ^= 1;
    ok(dtn_munge_decode(cred, &byte, 1) == DTN_MUNGE_BAD &&
       dtn_munge_decode("", &byte, 1) == DTN_MUNGE_BAD,
       "a changed one and an empty one are refused");
    usleep(3100000);                 /* munge counts whole seconds           */
    ok(dtn_munge_decode(first, &byte, 1) == DTN_MUNGE_EXPIRED,
       "after three seconds it has expired");
}

static void test_absent(void)
{
    struct boot_job job = munge_job(2, 1);
    bool good = true;

    job_run(&job, NULL);
    for (int i = 0; i < 2; i++)
        good = good && said[i].rc == DTENSOR_ECONF &&
               strstr(said[i].err.text, "munge: no credential: ") &&
               strstr(said[i].err.text, "does munged run here?");
    ok(good, "no munged: all ranks say so");
    if (!good)
        job_show(&job);
}

int main(void)
{
    struct dtensor_error err;
    char cred[DTN_MUNGE_MAX];

    job_init();
    setenv("DTN_MUNGE_SOCKET", "/nonexistent", 1);
    dtn_munge_encode(cred, "", 0, &err);
    if (!strstr(err.text, "no credential")) {
        skip("ranks of several hosts by munge", err.text);
        return done();
    }
    if (munge_start()) {
        test_jobs();
        test_user();
        test_replayed();
        test_credentials();
    } else {
        skip("ranks of several hosts by munge", "no munged starts here");
    }
    munge_stop();
    test_absent();
    return done();
}
