/* test_frame.c - frames are read whole, in pieces, with descriptors, and from
 * noise
 *
 * A frame is what ranks send each other while they join.  Every cut of a frame
 * and random bytes are fed to the reader.
 *
 * Without this test, a slow or hostile peer could make a rank read beyond a
 * buffer, or lose a descriptor.
 */
#include "base/compiler.h"
#include "boot/fail.h"
#include "boot/frame.h"
#include "boot/table.h"
#include "boot/state.h"
#include "dtensor.h"
#include "tests/support/rand.h"
#include "tests/support/tap.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVERYTHING 0x1feu         /* all types                                */

static struct dtn_frame_stream left, right;

static void pair_open(bool local, size_t entries_max, int fds_max)
{
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0,
                   fds) != 0)
        exit(99);
    dtn_frame_init(&left, fds[0], local);
    dtn_frame_init(&right, fds[1], local);
    right.accepts = EVERYTHING;
    right.entries_max = entries_max;
    right.fds_max = fds_max;
}

static void pair_close(void)
{
    dtn_frame_close(&left);
    dtn_frame_close(&right);
}

static int open_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;

    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

/* Sender and receiver in turn until the frame is there. */
static enum dtn_frame_got pass(struct dtn_frame *in)
{
    enum dtn_frame_got got;

    do {
        dtn_frame_flush(&left);
        got = dtn_frame_recv(&right, in);
    } while (got == DTN_FRAME_MORE && left.out);
    return got == DTN_FRAME_MORE ? dtn_frame_recv(&right, in) : got;
}

static void test_sizes(void)
{
    static const size_t sizes[] = { 0, 1, 19, 1000, 100000, 3000000 };
    static unsigned char body[3000000];
    struct dtn_frame in, out = { .type = DTN_FRAME_ENTRIES, .body = body };
    bool good = true;

    for (size_t i = 0; i < sizeof body; i++)
        body[i] = (unsigned char)(i * 7 + i / 256);
    pair_open(true, sizeof body, 0);
    for (int borrow = 0; borrow < 2; borrow++)
        for (size_t i = 0; i < DTN_COUNT(sizes); i++) {
            out.size = (uint32_t)sizes[i];
            out.seq = (uint32_t)i;
            dtn_frame_post(&left, &out, borrow);
            good = good && pass(&in) == DTN_FRAME_READY && in.seq == i &&
                   in.type == DTN_FRAME_ENTRIES && in.size == sizes[i] &&
                   in.version == DTN_FRAME_VERSION && in.nfds == 0 &&
                   memcmp(in.body, body, sizes[i]) == 0;
        }
    ok(good, "frames of 0 to 3000000 bytes arrive as sent");
    pair_close();
}

/* What one frame is on the wire. */
static size_t wire_of(const struct dtn_frame *frame, unsigned char *wire,
                      size_t size)
{
    ssize_t n;

    dtn_frame_post(&left, frame, false);
    dtn_frame_flush(&left);
    n = recv(right.fd, wire, size, MSG_DONTWAIT);
    return n > 0 ? (size_t)n : 0;
}

static void test_pieces(void)
{
    static const unsigned char text[] = "in pieces";
    struct dtn_frame in, out = { .type = DTN_FRAME_FAIL, .size = sizeof text,
                                 .body = text };
    unsigned char wire[100];
    size_t n;
    bool good = true;

    pair_open(true, 0, 0);
    n = wire_of(&out, wire, sizeof wire);
    ok(n == DTN_FRAME_HEAD_BYTES + sizeof text, "a frame is its head of %d bytes "
       "and its body", DTN_FRAME_HEAD_BYTES);
    for (size_t cut = 0; cut < n; cut++) {
        send(left.fd, wire, cut, 0);
        good = good && dtn_frame_recv(&right, &in) == DTN_FRAME_MORE;
        send(left.fd, wire + cut, n - cut, 0);
        good = good && dtn_frame_recv(&right, &in) == DTN_FRAME_READY &&
               in.size == sizeof text &&
               memcmp(in.body, text, sizeof text) == 0;
    }
    ok(good, "a frame cut anywhere is put together again");
    dtn_frame_close(&left);
    ok(dtn_frame_recv(&right, &in) == DTN_FRAME_CLOSED,
       "the end of a stream is told");
    pair_close();
}

/* ---------------------------------------------------------- descriptors --- */

static void test_fds(void)
{
    static const int counts[] = { 1, 2, 249, 250, 251, 600 };
    static unsigned char body[8 * 600];
    int fds[600];
    struct rlimit limit;
    struct dtn_frame in;
    int before;

    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    before = open_fds();
    if (limit.rlim_cur < 1500) {
        skip("descriptors travel with frames", "the limit is below 1500");
        return;
    }
    for (int i = 0; i < 600; i++)
        fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    for (size_t i = 0; i < DTN_COUNT(counts); i++) {
        struct dtn_frame out = { .type = DTN_FRAME_ALL,
                                 .body = body,
                                 .fds = fds,
                                 .size = (uint32_t)(8 * counts[i]),
                                 .nfds = counts[i] };
        bool good;

        pair_open(true, sizeof body, 600);
        dtn_frame_post(&left, &out, true);
        good = pass(&in) == DTN_FRAME_READY && in.nfds == counts[i] &&
               in.size == out.size;
        for (int k = 0; good && k < in.nfds; k++)
            good = fcntl(in.fds[k], F_GETFD) == FD_CLOEXEC;
        ok(good, "%d descriptors travel with a frame", counts[i]);
        pair_close();
        right.fd = -1;
    }
    pair_open(true, sizeof body, 3);
    dtn_frame_post(&left,
                   &(struct dtn_frame) { .type = DTN_FRAME_ALL,
                                         .body = body,
                                         .size = 80,
                                         .nfds = 4,
                                         .fds = fds },
                   false);
    ok(pass(&in) == DTN_FRAME_GARBAGE, "more descriptors than may come are "
       "refused");
    pair_close();
    for (int i = 0; i < 600; i++)
        close(fds[i]);
    ok(open_fds() == before, "descriptors nobody took are closed");
}

/* ------------------------------------------------------------- refusals --- */

static void put_head(unsigned char *head, const char *magic, unsigned version,
                     unsigned type, uint32_t nfds, uint32_t size)
{
    memcpy(head, magic, 4);
    dtn_frame_put32(head + 4, version | type << 16);
    dtn_frame_put32(head + 8, 0);
    dtn_frame_put32(head + 12, nfds);
    dtn_frame_put32(head + 16, size);
}

static const struct {
    const char *what;
    const char *magic;
    unsigned version, type;
    uint32_t nfds, size;
    enum dtn_frame_got got;
} heads[] = {
    { "a HELLO", "DTNB", DTN_FRAME_VERSION, DTN_FRAME_HELLO, 0, 24,
      DTN_FRAME_READY },
    { "a HELLO of another version", "DTNB", 99, DTN_FRAME_HELLO, 0, 24,
      DTN_FRAME_READY },
    { "a FAIL of another version", "DTNB", 99, DTN_FRAME_FAIL, 0, 24,
      DTN_FRAME_READY },
    { "ALL of another version", "DTNB", 99, DTN_FRAME_ALL, 0, 24,
      DTN_FRAME_GARBAGE },
    { "another magic", "DTNC", DTN_FRAME_VERSION, DTN_FRAME_HELLO, 0, 24,
      DTN_FRAME_GARBAGE },
    { "type 0", "DTNB", DTN_FRAME_VERSION, 0, 0, 0, DTN_FRAME_GARBAGE },
    { "a type too high", "DTNB", DTN_FRAME_VERSION, DTN_FRAME_NTYPES, 0, 0,
      DTN_FRAME_GARBAGE },
    { "type 40", "DTNB", DTN_FRAME_VERSION, 40, 0, 0, DTN_FRAME_GARBAGE },
    { "a long HELLO", "DTNB", DTN_FRAME_VERSION, DTN_FRAME_HELLO, 0, 360,
      DTN_FRAME_GARBAGE },
    { "an identity of 1 MiB", "DTNB", DTN_FRAME_VERSION, DTN_FRAME_IDENTITY,
      0, 4 + (1 << 20), DTN_FRAME_READY },
    { "an identity of a byte more", "DTNB", DTN_FRAME_VERSION,
      DTN_FRAME_IDENTITY, 0, 5 + (1 << 20), DTN_FRAME_GARBAGE },
    { "entries that fit", "DTNB", DTN_FRAME_VERSION, DTN_FRAME_ENTRIES, 0,
      100, DTN_FRAME_READY },
    { "entries that do not", "DTNB", DTN_FRAME_VERSION, DTN_FRAME_ENTRIES, 0,
      101, DTN_FRAME_GARBAGE },
    { "4 GiB", "DTNB", DTN_FRAME_VERSION, DTN_FRAME_ALL, 0, 0xffffffff,
      DTN_FRAME_GARBAGE },
    { "two descriptors", "DTNB", DTN_FRAME_VERSION, DTN_FRAME_ALL, 2, 0,
      DTN_FRAME_READY },
    { "three descriptors", "DTNB", DTN_FRAME_VERSION, DTN_FRAME_ALL, 3, 0,
      DTN_FRAME_GARBAGE },
    { "2^32 - 1 descriptors", "DTNB", DTN_FRAME_VERSION, DTN_FRAME_ALL,
      0xffffffff, 0, DTN_FRAME_GARBAGE },
};

static void test_heads(void)
{
    struct dtn_frame_stream s;
    unsigned char head[DTN_FRAME_HEAD_BYTES];
    struct dtn_frame frame;

    dtn_frame_init(&s, -1, true);
    s.accepts = EVERYTHING;
    s.entries_max = 100;
    s.fds_max = 2;
    for (size_t i = 0; i < DTN_COUNT(heads); i++) {
        put_head(head, heads[i].magic, heads[i].version, heads[i].type,
                 heads[i].nfds, heads[i].size);
        ok(dtn_frame_parse(&s, head, &frame) == heads[i].got, "%s is %s",
           heads[i].what, heads[i].got == DTN_FRAME_READY ? "taken" : "refused");
    }
    s.accepts = DTN_FRAME_BIT(DTN_FRAME_HELLO);
    put_head(head, "DTNB", 1, DTN_FRAME_FAIL, 0, 24);
    ok(dtn_frame_parse(&s, head, &frame) == DTN_FRAME_GARBAGE,
       "a type that may not come now is refused");
}

/* ---------------------------------------------------------------- noise --- */

/* Bytes that look right in part: more than pure noise they get somewhere. */
static size_t noise_fill(uint64_t *seed, unsigned char *p, size_t size)
{
    size_t n = 1 + (size_t)rand_below(seed, (int)size - 1);

    rand_bytes(seed, p, n);
    if (n >= DTN_FRAME_HEAD_BYTES && rand_below(seed, 8) > 0)
        put_head(p, "DTNB", 1, 1 + (unsigned)rand_below(seed, 8),
                 rand_below(seed, 4) == 0, (uint32_t)rand_below(seed, 300));
    return n;
}

static void test_noise(void)
{
    uint64_t first = rand_seed(20240607), seed = first;
    int whole = 0, refused = 0, entries = 0, fails = 0, before = open_fds();
    unsigned char wire[400];

    for (int turn = 0; turn < 20000; turn++) {
        struct dtensor_error error;
        enum dtn_frame_got got = DTN_FRAME_READY;
        struct dtn_frame frame;

        pair_open(true, 200, 0);
        for (int i = 0; i < 4; i++)
            send(left.fd, wire, noise_fill(&seed, wire, sizeof wire), 0);
        dtn_frame_close(&left);
        while ((got = dtn_frame_recv(&right, &frame)) == DTN_FRAME_READY) {
            const unsigned char *p = frame.body;
            size_t n = frame.size;
            struct dtn_boot_entry entry;

            whole++;
            while (dtn_boot_entry_next(&p, &n, &entry))
                entries += entry.bytes + entry.size <= frame.body + frame.size;
            if (dtn_boot_fail_parse(&frame, &error))
                fails += strlen(error.text) < sizeof error.text;
        }
        refused += got == DTN_FRAME_GARBAGE || got == DTN_FRAME_CLOSED;
        pair_close();
    }
    ok(refused == 20000 && whole > 1000 && entries > 10, "20000 streams of "
       "noise (seed %llu): %d frames, %d entries, no harm",
       (unsigned long long)first, whole, entries);
    note("%d of them could be read as failures", fails);
    ok(open_fds() == before, "... and no descriptor left");
}

static void test_entries(void)
{
    unsigned char mem[64] = { 0 };
    const unsigned char *p = mem;
    size_t n = DTN_BOOT_ENTRY_HEAD + 5;
    struct dtn_boot_entry entry;

    dtn_frame_put32(mem, 7);
    dtn_frame_put32(mem + 4, 5 | DTN_ENTRY_HAS_FD << 16);
    ok(dtn_boot_entry_next(&p, &n, &entry) && entry.rank == 7 &&
           entry.size == 5 && entry.flags == DTN_ENTRY_HAS_FD &&
           entry.bytes == mem + 8 && n == 0 && p == mem + 13,
       "an entry is taken apart");
    for (size_t cut = 0; cut < DTN_BOOT_ENTRY_HEAD + 5; cut++) {
        p = mem;
        n = cut;
        if (dtn_boot_entry_next(&p, &n, &entry))
            break;
        if (cut == DTN_BOOT_ENTRY_HEAD + 4)
            ok(true, "an entry cut anywhere is refused");
    }
}

static void test_numbers(void)
{
    unsigned char mem[8];

    dtn_frame_put64(mem, UINT64_C(0x0102030405060708));
    ok(mem[0] == 8 && mem[7] == 1 &&
           dtn_frame_get64(mem) == UINT64_C(0x0102030405060708) &&
           dtn_frame_get32(mem) == 0x05060708,
       "numbers are little-endian on the wire");
}

int main(void)
{
    test_numbers();
    test_sizes();
    test_pieces();
    test_fds();
    test_heads();
    test_noise();
    test_entries();
    return done();
}
