/* test_verbs_words.c - what verbs computes and says without a peer
 *
 * Paths, MTUs, timeouts, what is locked, and the words for events and failures
 * are pure functions of facts.  Opening needs a device: it runs where there is
 * one.
 *
 * Without this test, the figures of dtensor-rdma(7) could stop being true, and
 * a timeout could be longer than dead_after.
 */
#include "config.h"
#include "base/compiler.h"
#include "base/log.h"
#include "base/wait.h"
#include "cluster/cluster.h"
#include "cluster/defaults.h"
#include "transport/arena.h"
#include "transport/device.h"
#include "transport/memlock.h"
#include "transport/transport.h"
#include "dtensor.h"
#include "tests/support/tap.h"

#ifdef HAVE_VERBS
#include "transport/verbs/verbs.h"
#include "transport/verbs/device.h"
#include "transport/verbs/events.h"
#include "transport/verbs/fail.h"
#include "transport/verbs/lane.h"
#include "transport/verbs/meet.h"
#include "transport/verbs/put.h"
#include "transport/verbs/queue.h"
#include "transport/verbs/words.h"
#endif

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static struct dtensor_error err;

static void test_words(void)
{
    static const struct { unsigned speed, width; const char *text; } rates[] = {
        { 1, 1, "2.5 Gb/s" }, { 4, 2, "40 Gb/s" }, { 16, 2, "56 Gb/s" },
        { 32, 2, "100 Gb/s" }, { 64, 2, "200 Gb/s" }, { 128, 2, "400 Gb/s" },
        { 32, 16, "50 Gb/s" }, { 128, 4, "800 Gb/s" }, { 3, 2, "-" },
        { 32, 0, "-" }
    };
    unsigned char v4[16] = { [10] = 0xff, 0xff, 192, 168, 0, 1 };
    char text[64];

    for (size_t i = 0; i < DTN_COUNT(rates); i++)
        ok(strcmp(dtn_rate_text(dtn_rate_mbps(rates[i].speed, rates[i].width),
                                text, sizeof text), rates[i].text) == 0,
           "speed %u, width %u is %s", rates[i].speed, rates[i].width,
           rates[i].text);
    ok(strcmp(dtn_gid_text(v4, text, sizeof text), "192.168.0.1") == 0,
       "an IPv4 GID is written as such");
    ok(strcmp(dtn_port_state_name(4), "ACTIVE") == 0
       && strcmp(dtn_port_state_name(9), "?") == 0
       && strcmp(dtn_port_physical_name(-1), "?") == 0,
       "unknown states are no harm");
}

static void test_memlock(void)
{
    const struct rlimit small = { 65536, 65536 };
    uint64_t before = dtn_memlock_bytes();
    char text[32];

    ok(strcmp(dtn_memlock_text(DTN_MEMLOCK_UNLIMITED, text, sizeof text),
              "unlimited") == 0, "no limit is \"unlimited\"");
    setrlimit(RLIMIT_MEMLOCK, &small);
    ok(dtn_memlock_bytes() == 65536
       || dtn_memlock_bytes() == DTN_MEMLOCK_UNLIMITED,
       "the limit is the process's, or it is exempt (was %llu)",
       (unsigned long long)before);
}

/* ------------------------------------------------------ with libibverbs --- */

#ifdef HAVE_VERBS
/* Whoever changes one of these changes the page, too. */
static void test_page(void)
{
    ok(dtn_verbs_lane_bytes(1) == 137600 &&
           dtn_verbs_lane_bytes(2) == 137600 + 8192 &&
           DTN_VERBS_STAGE_BYTES == 1 << 20 && DTN_VERBS_DEPTH == 128,
       "the sizes in dtensor-rdma(7) hold: a lane has %zu bytes",
       dtn_verbs_lane_bytes(1));
    ok(dtn_memlock_need(16, 1) == 2 * 137600 + (1 << 20) + (20 << 10),
       "and its formula for what is locked to begin with");
    ok(dtn_memlock_need(16, 2) == 2 * 2 * 145792 + 8192 + (1 << 20)
                                  + (20 << 10), "and on two rails");
}

static void test_events(void)
{
    struct dtn_verbs_device device = { .name = "mlx5_0", .port = 1 };
    char words[240];
    const int64_t now = dtn_now_ns();

    ok(!dtn_verbs_events_words(&device, words, sizeof words),
       "a device that said nothing has no words");
    dtn_verbs_events_take(&device, IBV_EVENT_COMM_EST, -1, now);
    ok(!dtn_verbs_events_words(&device, words, sizeof words),
       "what does not matter has none");
    dtn_verbs_events_take(&device, IBV_EVENT_PORT_ERR, -1, now - 2000000000);
    ok(dtn_verbs_events_words(&device, words, sizeof words)
       && strcmp(words, "port 1 of mlx5_0 went down 2.0 s ago (is the cable "
                 "in, and the interface and switch port up?)") == 0,
       "a port that went down: %s", words);
    dtn_verbs_events_take(&device, IBV_EVENT_SM_CHANGE, -1, now);
    ok(device.events.last == IBV_EVENT_PORT_ERR,
       "what weighs less does not displace it");
    dtn_verbs_events_take(&device, IBV_EVENT_PORT_ACTIVE, -1, now);
    ok(!dtn_verbs_events_words(&device, words, sizeof words),
       "once the port is up again it is forgotten");
    dtn_verbs_events_take(&device, IBV_EVENT_QP_FATAL, 3, now);
    ok(dtn_verbs_events_words(&device, words, sizeof words)
       && strncmp(words, "the queue pair for rank 3 on mlx5_0 failed", 42)
          == 0, "a queue pair that failed: %s", words);
    dtn_verbs_events_take(&device, IBV_EVENT_DEVICE_FATAL, -1, now);
    ok(dtn_verbs_events_words(&device, words, sizeof words)
       && strncmp(words, "mlx5_0 failed altogether", 24) == 0,
       "a device that failed: %s", words);
}

static struct dtn_verbs nowhere;  /* a transport without devices or peers */

/* By LID, or by GID: where packets go. */
static void test_path(void)
{
    static const struct {
        const char *claim;
        int here, there, global;  /* the row of a GID, or -1; a GID there     */
    } rows[] = {
        { "where neither has a GID the LID is enough", -1, 0, 0 },
        { "a GID of one alone is no use", 2, 0, 0 },
        { "nor is the other's", -1, 1, 0 },
        { "of two GIDs both are used", 2, 1, 1 }
    };
    struct dtn_transport_conf conf;
    struct ibv_ah_attr way;

    dtn_transport_defaults(&conf);
    conf.service_level = 3;
    conf.traffic_class = 96;
    nowhere.args.conf = &conf;
    for (size_t i = 0; i < DTN_COUNT(rows); i++) {
        struct dtn_verbs_device device = { .port = 2,
                                           .gid_index = rows[i].here };
        struct dtn_verbs_end end = { .lid = 7 };

        end.gid.raw[15] = (uint8_t)rows[i].there;
        dtn_verbs_path(&nowhere, &device, &end, &way);
        ok(way.dlid == 7 && way.port_num == 2 && way.sl == 3
           && way.is_global == rows[i].global
           && way.grh.sgid_index == (way.is_global ? 2 : 0)
           && way.grh.hop_limit == (way.is_global ? 64 : 0)
           && way.grh.traffic_class == (way.is_global ? 96 : 0),
           "%s", rows[i].claim);
    }
}

static void test_mtu(void)
{
    static const struct { int here, there, file, used; } rows[] = {
        { IBV_MTU_4096, IBV_MTU_4096, -1, 4096 },
        { IBV_MTU_4096, IBV_MTU_1024, -1, 1024 },
        { IBV_MTU_1024, IBV_MTU_4096, -1, 1024 },
        { IBV_MTU_4096, IBV_MTU_4096, 2048, 2048 },
        { IBV_MTU_4096, IBV_MTU_4096, 256, 256 },
        { IBV_MTU_1024, IBV_MTU_4096, 2048, 1024 }
    };
    struct dtn_transport_conf conf;

    dtn_transport_defaults(&conf);
    nowhere.args.conf = &conf;
    for (size_t i = 0; i < DTN_COUNT(rows); i++) {
        struct dtn_verbs_device device = { .mtu = (enum ibv_mtu)rows[i].here };
        struct dtn_verbs_end end = { .mtu = (uint8_t)rows[i].there };

        conf.mtu = rows[i].file;
        ok(128 << dtn_verbs_path_mtu(&nowhere, &device, &end) == rows[i].used,
           "MTU %d here, %d there, %d in the file: %d", 128 << rows[i].here,
           128 << rows[i].there, rows[i].file, rows[i].used);
    }
}

/* Within dead_after even on a device that takes four times as long. */
static void test_timeout(void)
{
    static const struct { int64_t dead_after_s; int retries,
                          timeout; } rows[] = {
        { 10, 6, 16 }, { 30, 6, 17 }, { 10, 1, 18 }, { 1, 6, 13 },
        { 600, 6, 20 }, { 0, 6, 12 }
    };
    struct dtn_transport_conf conf;
    char text[80];

    dtn_transport_defaults(&conf);
    ok(strcmp(dtn_verbs_give_up_text(&conf, text, sizeof text),
              "1.88 s = 7 x 4.096 us x 2^16") == 0,
       "by default a silent peer is given up after %s", text);
    for (size_t i = 0; i < DTN_COUNT(rows); i++) {
        conf.dead_after_ns = rows[i].dead_after_s * 1000000000;
        conf.retry_count = rows[i].retries;
        ok(dtn_verbs_timeout(&conf) == rows[i].timeout, "dead_after %d s, "
           "retry_count %d: timeout %d", (int)rows[i].dead_after_s,
           rows[i].retries, dtn_verbs_timeout(&conf));
    }
    conf.timeout = 9;
    ok(dtn_verbs_timeout(&conf) == 9, "the cluster file comes first");
}

static void test_register_words(void)
{
    const struct dtn_verbs_device device = { .name = "mlx5_0" };

    setenv("SLURM_JOB_ID", "12", 1);
    ok(dtn_verbs_fail_register(&device, (size_t)1 << 32, ENOMEM, &err)
       == DTENSOR_ENOMEM && strstr(err.text, "cannot register 4.0 GiB on "
                                   "mlx5_0: Cannot allocate memory"),
       "memory that cannot be registered: %s", err.text);
    ok(dtn_memlock_bytes() == DTN_MEMLOCK_UNLIMITED
       || (strstr(err.text, "64.0 KiB")
           && strstr(err.text, "PropagateResourceLimitsExcept=MEMLOCK")),
       "with the limit and, under Slurm, its keys, if there is a limit");
    unsetenv("SLURM_JOB_ID");
}

/* Open the device there is, if there is one. */
static void test_open(void)
{
    struct dtn_arena arena = { .backing = { .size = 4096 } };
    struct dtn_transport_conf conf;
    struct dtn_log log;
    struct dtn_open_args args = { .nranks = 2, .arena = &arena, .conf = &conf,
                                  .log = &log, .gid_index = -1 };
    struct dtn_verbs_device device;
    int rc;

    dtn_log_init(&log);
    dtn_transport_defaults(&conf);
    rc = dtn_verbs_device_open(&args, args.device, &device, &err);
    if (rc == DTENSOR_ENODEV) {
        skip("the device that was chosen is opened", err.text);
        return;
    }
    ok(rc == 0 && device.context && device.port > 0,
       "the device that was chosen is opened%s", rc ? err.text : "");
    if (rc != 0)
        return;
    dtn_verbs_device_close(&device);
    args.device = "nosuch";
    ok(dtn_verbs_device_open(&args, args.device, &device, &err) ==
               DTENSOR_ENODEV &&
           strstr(err.text, "no RDMA device nosuch here"),
       "one that is not there is not");
    args.device = NULL;
    args.gid_index = 255;
    ok(dtn_verbs_device_open(&args, args.device, &device, &err) ==
           DTENSOR_ENODEV,
       "nor a GID that is not there: %s", err.text);
}
#endif

static void test_look(void)
{
    struct dtn_devices here;

    ok(dtn_devices_look(&here, &err) == 0, "the devices here are looked at");
    note("%d devices with %d ports", here.ndevices, here.nports);
    dtn_devices_fini(&here);
    ok(here.port == NULL && here.nports == 0, "and forgotten");
}

int main(void)
{
    test_words();
    test_look();
#ifdef HAVE_VERBS
    test_page();
    test_events();
    test_path();
    test_mtu();
    test_open();
#endif
    test_memlock();
#ifdef HAVE_VERBS
    test_timeout();
    test_register_words();
#endif
    return done();
}
