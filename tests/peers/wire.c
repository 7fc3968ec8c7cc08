/* wire.c - a switch with slow links between network namespaces
 *
 *   wire BYTES_PER_S DELAY_US PID...
 *
 * Makes a tap device eth0 in the network namespace of each process, says
 * "ready", and carries frames between them.  A frame leaves its port at the
 * rate of the links, comes DELAY_US later to the port of its receiver, and
 * enters there at that rate, behind the frames that came before.  A frame is
 * taken from a device when its port is free, as a network device does.
 *
 * With 25 MB/s and 1000 us a frame of 9000 bytes that leaves at 0 is read by
 * its receiver at 1360 us, and one that another host sends at the same time at
 * 1720.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { PORTS_MAX = 16, FRAME_MAX = 9200, MAC = 6, FRAMES_MAX = 1 << 16 };

/* How long before its port is free a frame is read: the port is never idle
 * because this process is late.
 */
#define AHEAD_NS 100000

struct frame {
    int64_t due_ns;               /* when its last byte is there              */
    ssize_t bytes;
    unsigned char data[FRAME_MAX];
};

struct port {
    int fd;
    unsigned char mac[MAC];       /* of the last frame that it sent           */
    int64_t out_free_ns;          /* when the port can take the next frame    */
    int64_t in_free_ns;           /* when the last frame has come in          */
    struct frame **queue;         /* [FRAMES_MAX] ring of frames on their way */
    unsigned first, end;
};

static struct port port[PORTS_MAX];
static int nports;
static double byte_ns;
static int64_t delay_ns;

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void must(bool good, const char *what)
{
    if (!good) {
        perror(what);
        exit(1);
    }
}

/* A tap device in the namespace of a process. */
static int tap_open(const char *pid)
{
    struct ifreq ask = { .ifr_flags = IFF_TAP | IFF_NO_PI };
    char path[64];
    int ns, fd;

    snprintf(path, sizeof path, "/proc/%s/ns/net", pid);
    ns = open(path, O_RDONLY | O_CLOEXEC);
    must(ns >= 0 && setns(ns, CLONE_NEWNET) == 0, path);
    close(ns);
    fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    must(fd >= 0, "/dev/net/tun");
    strcpy(ask.ifr_name, "eth0");
    must(ioctl(fd, TUNSETIFF, &ask) == 0, "TUNSETIFF");
    return fd;
}

static int64_t later(int64_t a, int64_t b) { return a > b ? a : b; }

/* A frame whose head is at this port at head_ns. */
static void port_enter(struct port *to, const unsigned char *data,
                       ssize_t bytes, int64_t head_ns)
{
    struct frame *frame = malloc(sizeof *frame);

    must(frame && to->end - to->first < FRAMES_MAX, "frames");
    to->in_free_ns = later(to->in_free_ns, head_ns)
                   + (int64_t)(byte_ns * (double)bytes);
    frame->due_ns = to->in_free_ns;
    frame->bytes = bytes;
    memcpy(frame->data, data, (size_t)bytes);
    to->queue[to->end++ % FRAMES_MAX] = frame;
}

/* Take a frame of a port, if there is one. */
static bool port_leave(struct port *from)
{
    unsigned char data[FRAME_MAX];
    const ssize_t bytes = read(from->fd, data, sizeof data);
    const int64_t start_ns = later(now_ns(), from->out_free_ns);
    struct port *to = port;

    if (bytes < 2 * MAC)
        return false;
    memcpy(from->mac, data + MAC, MAC);
    from->out_free_ns = start_ns + (int64_t)(byte_ns * (double)bytes);
    while (to < port + nports && memcmp(to->mac, data, MAC) != 0)
        to++;
    if (to < port + nports) {
        port_enter(to, data, bytes, start_ns + delay_ns);
        return true;
    }
    for (to = port; to < port + nports; to++)
        if (to != from)
            port_enter(to, data, bytes, start_ns + delay_ns);
    return true;
}

/* Deliver what is due; the time of the next frame. */
static int64_t port_deliver(struct port *to, int64_t until_ns)
{
    while (to->first != to->end) {
        struct frame *frame = to->queue[to->first % FRAMES_MAX];

        if (frame->due_ns > until_ns)
            return frame->due_ns;
        (void)!write(to->fd, frame->data, (size_t)frame->bytes);
        free(frame);
        to->first++;
    }
    return INT64_MAX;
}

/* One look at all ports, and a sleep until there is something to do. */
static void look(void)
{
    struct pollfd fds[PORTS_MAX];
    int64_t next = INT64_MAX, now = now_ns(), due;
    struct timespec rest;

    for (int i = 0; i < nports; i++) {
        const bool is_free = port[i].out_free_ns - AHEAD_NS <= now;

        due = port_deliver(&port[i], now);
        next = due < next ? due : next;
        if (!is_free && port[i].out_free_ns - AHEAD_NS < next)
            next = port[i].out_free_ns - AHEAD_NS;
        fds[i] = (struct pollfd){ is_free ? port[i].fd : -1, POLLIN, 0 };
    }
    now = now_ns();
    next = next > now ? next - now : 0;
    if (next > 1000000000)
        next = 1000000000;
    rest = (struct timespec){ next / 1000000000, next % 1000000000 };
    if (ppoll(fds, (nfds_t)nports, &rest, NULL) <= 0)
        return;
    for (int i = 0; i < nports; i++)
        if (fds[i].revents)
            while (port_leave(&port[i])
                   && port[i].out_free_ns - AHEAD_NS <= now_ns())
                ;
}

int main(int argc, char **argv)
{
    must(argc > 4 && argc - 3 <= PORTS_MAX, "wire BYTES_PER_S DELAY_US PID...");
    byte_ns = 1e9 / atof(argv[1]);
    delay_ns = (int64_t)(atof(argv[2]) * 1e3);
    for (; nports < argc - 3; nports++) {
        port[nports].fd = tap_open(argv[3 + nports]);
        port[nports].queue = calloc(FRAMES_MAX, sizeof(struct frame *));
        must(port[nports].queue != NULL, "queue");
    }
    puts("ready");
    fflush(stdout);
    for (;;)
        look();
}
