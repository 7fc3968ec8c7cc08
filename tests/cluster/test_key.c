/* test_key.c - the key of a job, from the environment or a file
 *
 * Without this test, a mistyped key could become a key that is easily guessed,
 * or a file that others can read could be taken for a secret.
 */
#include "base/compiler.h"
#include "cluster/key.h"
#include "dtensor.h"
#include "tests/support/tap.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HALF "000102030405060708090a0b0c0d0e0f"
#define GOOD HALF "F0f1F2f3F4f5F6f7F8f9FafBfCfdfEff"

static unsigned char key[DTN_SECRET_BYTES];
static struct dtensor_error err;

/* Does reading this DTN_KEY come to this code and these words? */
static bool reads(const char *text, int code, const char *words)
{
    bool found = false;
    int rc;

    setenv("DTN_KEY", text, 1);
    err.text[0] = '\0';
    rc = dtn_key_read(key, &found, &err);
    if (rc == code && found == (*text != '\0') && strstr(err.text, words))
        return true;
    note("%d, found %d: %s", rc, found, err.text);
    return false;
}

static void file_write(const char *path, const char *text, mode_t mode)
{
    FILE *file = fopen(path, "w");

    if (!file || fputs(text, file) < 0 || fclose(file) != 0 ||
        chmod(path, mode) != 0)
        exit(99);
}

static void test_digits(void)
{
    static const char *const bad[] = {
        "secret", HALF, GOOD "0", GOOD "\n\n", &(HALF HALF)[1],
        HALF "g0f1F2f3F4f5F6f7F8f9FafBfCfdfEff", " " GOOD
    };
    bool good = true;

    ok(reads(GOOD, 0, "") && key[1] == 1 && key[15] == 15 && key[16] == 0xf0 &&
       key[31] == 0xff, "64 hex digits are a key");
    ok(reads("", 0, ""), "an empty variable is no key");
    for (size_t i = 0; i < DTN_COUNT(bad); i++)
        good = good && reads(bad[i], DTENSOR_ECONF, "expected 64 hex digits");
    ok(good, "anything else is refused");
}

static void test_file(void)
{
    char path[32], link[64], words[100];

    snprintf(path, sizeof path, "/tmp/dtn-key.%d", (int)getpid());
    snprintf(link, sizeof link, "%s.link", path);
    ok(reads(path, DTENSOR_ECONF, "cannot open"), "no such file is refused");
    file_write(path, GOOD "\n", 0600);
    ok(reads(path, 0, "") && key[31] == 0xff, "a file that has a key");
    file_write(path, GOOD "\n", 0640);
    snprintf(words, sizeof words, "others may use %s, its mode is 0640", path);
    ok(reads(path, DTENSOR_ECONF, words), "one that others can read");
    file_write(path, "word\n", 0600);
    ok(reads(path, DTENSOR_ECONF, "has no key"), "one that has no key");
    ok(symlink(path, link) == 0 && reads(link, DTENSOR_ECONF, "cannot open"),
       "a symbolic link");
    ok(reads("/tmp", DTENSOR_ECONF, "is not a regular file"), "a folder");
    file_write(path, GOOD "\n", 0600);
    if (geteuid() != 0)
        skip("the file of another user", "needs root");
    else
        ok(chown(path, 12345, 0) == 0 &&
           reads(path, DTENSOR_ECONF, "belongs to uid 12345, not to uid 0"),
           "the file of another user is refused");
    unlink(link);
    unlink(path);
}

int main(void)
{
    test_digits();
    test_file();
    return done();
}
