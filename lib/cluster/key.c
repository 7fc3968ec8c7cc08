/* key.c - the key of a job, from the environment or a file
 *
 * DTN_KEY is 64 hex digits, 32 bytes, or the path of a file with these digits.
 * A key that can be guessed protects nothing, so words are refused.  The
 * environment of a process can be read by its user and by root only; for a file
 * the same is checked, as ssh(1) does with its keys.
 */
#include "cluster/key.h"
#include "base/error.h"
#include "base/seal.h"
#include "dtensor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEY_DIGITS (2 * DTN_SECRET_BYTES)

static int key_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 'a' ^ 'A';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* 64 digits, and after them nothing but a newline. */
static bool key_parse(const char *text, unsigned char key[DTN_SECRET_BYTES])
{
    for (int i = 0; i < KEY_DIGITS; i += 2) {
        int high = key_digit(text[i]);
        int low = high < 0 ? -1 : key_digit(text[i + 1]);

        if (low < 0)
            return false;
        key[i / 2] = (unsigned char)(high << 4 | low);
    }
    return text[KEY_DIGITS] == '\0' || strcmp(text + KEY_DIGITS, "\n") == 0;
}

/* Can only this user and root read and change the file? */
static int key_check(const char *path, int fd, struct dtensor_error *err)
{
    struct stat file;

    if (fstat(fd, &file) != 0)
        return dtn_fail_sys(err, errno, "key: %s: %m", path);
    if (!S_ISREG(file.st_mode))
        return dtn_fail(err, DTENSOR_ECONF, "key: %s is not a regular file",
                        path);
    if (file.st_uid != geteuid() && file.st_uid != 0)
        return dtn_fail(err, DTENSOR_ECONF, "key: %s belongs to uid %u, not to "
                        "uid %u (chown it)", path, (unsigned)file.st_uid,
                        (unsigned)geteuid());
    if (file.st_mode & 077)
        return dtn_fail(err, DTENSOR_ECONF, "key: others may use %s, its mode "
                        "is %04o (chmod 600 it, and make another key)", path,
                        (unsigned)file.st_mode & 07777);
    return 0;
}

static int key_file(const char *path, unsigned char key[DTN_SECRET_BYTES],
                    struct dtensor_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), rc;
    char text[KEY_DIGITS + 3];
    ssize_t n;

    if (fd < 0)
        return dtn_fail(err, DTENSOR_ECONF, "key: cannot open %s: %s (it is "
                        "named by DTN_KEY)", path, strerror(errno));
    rc = key_check(path, fd, err);
    n = rc == 0 ? read(fd, text, sizeof text - 1) : 0;
    close(fd);
    if (rc != 0)
        return rc;
    text[n < 0 ? 0 : n] = '\0';
    if (!key_parse(text, key))
        rc = dtn_fail(err, DTENSOR_ECONF, "key: %s has no key; expected %d hex "
                      "digits (such as from openssl rand -hex %d)", path,
                      KEY_DIGITS, DTN_SECRET_BYTES);
    dtn_secret_forget(text, sizeof text);
    return rc;
}

int dtn_key_read(unsigned char key[DTN_SECRET_BYTES], bool *found,
                 struct dtensor_error *err)
{
    const char *text = getenv("DTN_KEY");

    *found = text && *text;
    if (!*found)
        return 0;
    if (*text == '/')
        return key_file(text, key, err);
    if (!key_parse(text, key))
        return dtn_fail(err, DTENSOR_ECONF, "key: DTN_KEY has %zu characters; "
                        "expected %d hex digits (such as from openssl rand "
                        "-hex %d), or the path of a file", strlen(text),
                        KEY_DIGITS, DTN_SECRET_BYTES);
    return 0;
}
