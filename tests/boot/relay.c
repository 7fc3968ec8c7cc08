/* relay.c - who hears all that rank 1 and rank 0 say to each other
 *
 * Rank 1 has the port after the job's in its cluster file, where the relay
 * listens.  It passes everything on, keeps the way up, and may change a byte,
 * say something twice, or send all back to who said it.
 */
#include "boot/frame.h"
#include "tests/boot/relay.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

enum { VERSION_AT = 4, LAST_MS = 1500 };

long relay_flip = -1;
int relay_twice = -1;
unsigned char relay_version;
unsigned char relay_heard[1 << 16];
size_t relay_n;
int relay_refused;
static int relay_fd = -1;

void relay_open(void)
{
    struct sockaddr_in at = { .sin_family = AF_INET };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

    at.sin_port = htons((uint16_t)(job_port + 1));
    inet_pton(AF_INET, "127.0.0.2", &at.sin_addr);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&at, sizeof at) != 0 || listen(fd, 8) != 0)
        note("no place for the relay");
    relay_fd = fd;
    relay_flip = relay_twice = -1;
}

void relay_close(void)
{
    close(relay_fd);
    relay_fd = -1;
}

/* Pass on what has come; false: that side has closed. */
static bool relay_pass(int from, int to, bool up, bool *began)
{
    unsigned char bytes[4096];
    ssize_t n = recv(from, bytes, sizeof bytes, 0);
    bool again;

    if (n <= 0)
        return false;
    if (relay_version > 0 && !*began && n > VERSION_AT)
        bytes[VERSION_AT] = relay_version;
    *began = true;
    again = up && relay_twice >= 0 && relay_twice-- == 0;
    for (ssize_t i = 0; up && i < n; i++) {
        if (relay_n < sizeof relay_heard)
            relay_heard[relay_n] = bytes[i];
        if ((long)relay_n++ == relay_flip)
            bytes[i] ^= 1;
    }
    if (again)
        send(to, bytes, (size_t)n, MSG_NOSIGNAL);
    return send(to, bytes, (size_t)n, MSG_NOSIGNAL) == n;
}

void relay_run(void)
{
    struct pollfd p[2] = { { accept(relay_fd, NULL, NULL), POLLIN, 0 },
                           { knock_tcp(), POLLIN, 0 } };
    bool good = true, began[2] = { false, false };

    relay_n = 0;
    while (good && poll(p, 2, 20000) > 0) {
        if (p[0].revents)
            good = relay_pass(p[0].fd, p[1].fd, true, &began[0]);
        if (good && p[1].revents)
            good = relay_pass(p[1].fd, p[0].fd, false, &began[1]);
    }
    close(p[0].fd);
    close(p[1].fd);
}

void relay_all(void)
{
    struct pollfd p = { relay_fd, POLLIN, 0 };

    while (poll(&p, 1, LAST_MS) > 0)
        relay_run();
}

void relay_mirror(void)
{
    struct pollfd p = { relay_fd, POLLIN, 0 };

    relay_n = 0;
    while (poll(&p, 1, LAST_MS) > 0) {
        const int fd = accept(relay_fd, NULL, NULL);
        bool began = false;

        while (relay_pass(fd, fd, true, &began))
            ;
        close(fd);
    }
}

/* Say again what rank 1 of the last job said. */
void relay_repeat(void)
{
    int fd = knock_tcp();
    unsigned char back[1000];
    size_t n = 0, at;
    ssize_t more;

    relay_refused = -1;
    send(fd, relay_heard, relay_n, MSG_NOSIGNAL);
    while ((more = recv(fd, back + n, sizeof back - n, 0)) > 0)
        n += (size_t)more;
    at = n < DTN_FRAME_HEAD_BYTES ? 0
       : DTN_FRAME_HEAD_BYTES + dtn_frame_get32(back + 16);
    if (at > 0 && at + DTN_FRAME_HEAD_BYTES + 4 <= n &&
        dtn_frame_get32(back + at + 4) >> 16 == DTN_FRAME_REFUSED)
        relay_refused = (int)dtn_frame_get32(back + at + DTN_FRAME_HEAD_BYTES);
    close(fd);
}

struct boot_job relay_job(void)
{
    struct boot_job job = job_even(2, 1);

    job.actor[1].other_port = 1;
    return job;
}
