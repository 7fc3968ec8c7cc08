/* test_settings.c - every key of a cluster file does what its manual says
 *
 * A row changes one key of a small file and says what must then be seen that
 * is not seen without the change: a line of a plan or a job, an error, or a
 * predicted time above a figure.  The keys are those of
 * lib/cluster/sections.c: one without a row is a failure, and so is a row
 * without a key.
 *
 * Without this test, a key could be read and then do nothing.
 */
#include "config.h"
#include "base/compiler.h"
#include "cluster/sections.h"
#include "tests/cluster/settings.h"
#include "tests/support/port.h"
#include "tests/support/standin.h"
#include "tests/support/tap.h"

#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct row {
    const char *section, *key, *value;
    look_f *look;
    const char *expect;           /* what is seen; ">N": a number above N     */
    const char *also;             /* the rest of both files, see file_add()   */
};

#define TWO_HOSTS "nodes a.hosts = h[0-1]; nodes a.addresses = 127.0.0.[2-3]; " \
                  "nodes a.ranks = 1; "
#define EIGHT "nodes a.hosts = h[0-1]; nodes a.addresses = 127.0.0.[2-3]; " \
              "nodes a.ranks = 4; "
#define MANY "nodes a.hosts = h[0-15]; nodes a.ranks = 1; "
#define GRID "nodes a.ranks = 4; mesh world.dims = x=2, y=2; "
#define GPU "mesh other.dims = x=2; mesh other.memory = cuda"
#define RC TWO_HOSTS "transport.inter_node = auto; "

static const char *no_gpu;        /* why there is no driver of GPUs, or NULL  */
static char port[8], next_port[8];    /* of this process's jobs               */
static char port_seen[16];
static char cpu[32];              /* one that this process may use            */
static char cpu_seen[] = "may use 1 CPUs";

static const struct row rows[] = {
    { "cluster", "version", "2", look_read, "this is format 2", NULL },
    { "cluster", "name", "pair", look_job, "in pair\n", NULL },
    { "cluster", "world_size", "3", look_read, "add up to 2 ranks", NULL },
    { "cluster", "auth", "munge", look_job, "munge: ",
      TWO_HOSTS },
    { "cluster", "repro", "yes", look_job, "sums 1 1 1 ", "nodes a.ranks = 3; "
      "tuning.allreduce = 0-inf:ring" },

    { "nodes a", "hosts", "h[0-1]", look_job, "rank 3 of 4, local rank 1 on "
      "h1", "nodes a.hosts = h0; nodes a.addresses = 127.0.0.[2-3]" },
    { "nodes a", "addresses", "127.0.0.[4-5]", look_job,
      "connected at 127.0.0.4:", TWO_HOSTS },
    { "nodes a", "ranks", "3", look_job, "[rank 2] in cluster", NULL },
    { "nodes a", "gpus", "7", look_job, "names GPU 7, but localhost has",
      GPU },
    { "nodes a", "hca", "made1", look_job, "cannot use rc: verbs: no RDMA "
      "device made1", RC },
    { "nodes a", "gid_index", "9", look_job, "cannot use rc: verbs: "
      "made0:1 has no GID 9", RC },
    { "nodes a", "cpus", cpu, look_job, cpu_seen, NULL },

    { "transport", "intra_node", "tcp", look_job, "by allreduce eager tcp",
      NULL },
    { "transport", "inter_node", "auto", look_job, "inter_node = auto: rc",
      TWO_HOSTS },
    { "transport", "port", next_port, look_job, port_seen, TWO_HOSTS },
    { "transport", "mtu", "1024", look_queue, "mtu 1024,", NULL },
    { "transport", "traffic_class", "106", look_queue, "class 106,", NULL },
    { "transport", "service_level", "3", look_queue, "sl 3,", NULL },
    { "transport", "pkey", "0x8123", look_job, "cannot use rc: verbs: "
      "made0:1 is no full member of partition 0x8123", RC },
    { "transport", "qp_per_peer", "4", look_queue, "4 queue pairs,", NULL },
    { "transport", "retry_count", "3", look_queue, "retry 3,", NULL },
    { "transport", "rnr_retry", "5", look_queue, "rnr 5\n", NULL },
    { "transport", "timeout", "14", look_queue, "timeout 14,", NULL },
    { "transport", "gpu_flush", "never", look_queue, "0 reads back,", NULL },
    { "transport", "dead_after", "100s", look_queue, "timeout 19,", NULL },
    { "transport", "connect_timeout", "100ms", look_started,
      "did not join within 100.0 ms", NULL },
    { "transport", "op_timeout", "100ms", look_called,
      "ms for rank 1 on localhost, which is alive", NULL },
    { "transport", "stall_after", "100ms", look_called, "stall: allreduce of 3 "
      "f32 sum, no. 1 over 2 ranks, has waited", "transport.heartbeat = 10ms" },
    { "transport", "heartbeat", "3s", look_job, "a heartbeat every 3.0 s",
      NULL },
    { "transport", "dead_after", "20s", look_job, "lost after 20.0 s without",
      NULL },
    { "transport", "register_limit", "4K", look_job, "exceed 4.0 KiB", NULL },
    { "transport", "arena", "16M", look_job, "as [transport] arena says",
      NULL },

    { "mesh world", "dims", "x=2, y=2", look_meshes, "world(x=2,y=2)",
      "nodes a.ranks = 4; mesh world.dims = x=4" },
    { "mesh world", "ranks", "1,0", look_meshes, "ranks 1 0\n",
      "mesh world.dims = x=2" },
    { "mesh part", "parent", "other", look_meshes, "part(z=2), ranks 2 3\n",
      GRID
      "mesh other.dims = x=2, z=2; mesh part.parent = world; "
      "mesh part.select = x=1" },
    { "mesh part", "select", "y=1", look_meshes, "ranks 1 3\n", GRID
      "mesh part.parent = world; mesh part.select = x=1" },

    { "mesh other", "memory", "cuda", look_job, "gpu: GPU ",
      "mesh other.dims = x=2" },

    { "seed", "base", "8", look_job, "seed 8,", NULL },
    { "seed", "mesh", "m", look_job, "seed 7, offset 10004, first 240a8434",
      "mesh m.dims = x=1, y=2; "
      "mesh n.dims = x=2, y=1; seed.mesh = n; seed.base = 7; "
      "seed.distinct = x" },
    { "seed", "distinct", "x", look_job, "seed 8,", "mesh m.dims = x=2; "
      "seed.mesh = m; seed.base = 7" },
    { "seed", "stride", "100", look_job, "seed 107,", "mesh m.dims = x=2; "
      "seed.mesh = m; seed.base = 7; seed.distinct = x" },
    { "seed", "tracker", "local", look_job, "offset 5000, first f4607a2d",
      "seed.base = 7" },
    { "seed", "compat", "pytorch", look_job, "offset 10004,", "seed.base = 7; "
      "seed.tracker = offset" },
    { "seed", "fill", "cuda", look_job, "offset 4,", "seed.base = 7" },
    { "seed", "sms", "1", look_job, "offset 8,", "seed.base = 7; "
      "seed.fill = cuda" },
    { "seed", "threads_per_sm", "256", look_job, "offset 8,", "seed.base = 7; "
      "seed.fill = cuda; seed.sms = 8" },

    { "tuning", "allreduce", "0-inf:tree", look_ways, "allreduce by tree",
      EIGHT },
    { "tuning", "allgather", "0-inf:bruck", look_ways, "allgather by bruck",
      EIGHT },
    { "tuning", "reduce_scatter", "0-inf:halving", look_ways,
      "reduce_scatter by halving", EIGHT },
    { "tuning", "all_to_all", "0-inf:bruck", look_ways, "all_to_all by bruck",
      EIGHT },
    { "tuning", "broadcast", "0-inf:tree", look_ways, "broadcast by tree",
      EIGHT },
    { "tuning", "reduce", "0-inf:tree", look_ways, "reduce by tree", EIGHT },
    { "tuning", "intra_latency_ns", "100000000", look_allreduce_ns,
      ">100000000", NULL },
    { "tuning", "inter_latency_ns", "100000000", look_allreduce_ns,
      ">100000000", TWO_HOSTS },
    { "tuning", "intra_message_ns", "100000000", look_allreduce_ns,
      ">100000000", NULL },
    { "tuning", "inter_message_ns", "100000000", look_allreduce_ns,
      ">100000000", TWO_HOSTS },
    { "tuning", "intra_bandwidth", "1M", look_allreduce_ns, ">500000000",
      NULL },
    { "tuning", "inter_bandwidth", "1M", look_allreduce_ns, ">500000000",
      TWO_HOSTS },
    { "tuning", "fold_bandwidth", "1M", look_allreduce_ns, ">500000000", NULL },
    { "tuning", "copy_bandwidth", "1M", look_allgather_ns, ">500000000", NULL },
    { "tuning", "cache_size", "4K", look_allreduce_ns, ">1000000",
      "tuning.uncached_percent = 10000" },
    { "tuning", "uncached_percent", "10000", look_allreduce_ns, ">1000000",
      "tuning.cache_size = 4K" },
    { "tuning", "congestion_percent", "1000", look_all_to_all_ns,
      ">100000000", MANY
      "tuning.all_to_all = 0-inf:direct" },

    { "redistribute", "max_scratch", "4K", look_ways, "allreduce by twotree",
      EIGHT },
    { "redistribute", "pipeline", "4K", look_job, "16 slabs", NULL },
    { "redistribute", "planner", "greedy", look_plan, "all-to-all:", GRID },

    { "device", "direct", "required", look_read, "inter_node = tcp stages",
      TWO_HOSTS },

    { "plan a", "mesh", "other", look_parallel, "cut on other(x=2)",
      "mesh other.dims = x=2; plan a.up = sequence" },
    { "plan a", "dim", "y", look_parallel, "cut on mesh(y=2)", GRID
      "plan a.mesh = world; plan a.up = sequence" },
    { "plan a", "up", "prepare input=R", look_parallel, "up: relu  (prepare "
      "input=R)", "mesh other.dims = x=2; plan a.mesh = other; plan a.up = "
      "sequence" }
};

/* ------------------------------------------------------------- the file --- */

struct setting {
    char section[32], key[32], value[128];
};

static struct setting file[32];
static int settings;

/* The value a key has that was given before is replaced. */
static void file_set(const char *section, const char *key, const char *value)
{
    int i = 0;

    while (i < settings && (strcmp(file[i].section, section) != 0
                            || strcmp(file[i].key, key) != 0))
        i++;
    settings += i == settings;
    snprintf(file[i].section, sizeof file[i].section, "%s", section);
    snprintf(file[i].key, sizeof file[i].key, "%s", key);
    snprintf(file[i].value, sizeof file[i].value, "%s", value);
}

/* "nodes a.ranks = 4; seed.base = 7" */
static void file_add(const char *text)
{
    char section[32], key[32], value[128];
    int n = 0;

    while (sscanf(text, " %31[^.].%31[^ =] = %127[^;]%n", section, key, value,
                  &n) == 3) {
        file_set(section, key, value);
        text += n + (text[n] == ';');
    }
}

static void file_begin(const char *also)
{
    settings = 0;
    file_set("cluster", "version", "1");
    file_set("nodes a", "hosts", "localhost");
    file_set("nodes a", "ranks", "2");
    file_set("transport", "port", port);
    file_set("transport", "connect_timeout", "20s");
    file_set("transport", "op_timeout", "20s");
    file_add(also ? also : "");
}

/* Section by section, as each is first named; a key "" is no line. */
static void file_write(FILE *stream)
{
    char kind[32];

    for (int i = 0, first; i < settings; i++) {
        for (first = 0; strcmp(file[first].section, file[i].section) != 0;)
            first++;
        if (first < i)
            continue;
        sscanf(file[i].section, "%31s", kind);
        if (strcmp(kind, file[i].section) == 0)
            fprintf(stream, "[%s]\n", kind);
        else
            fprintf(stream, "[%s \"%s\"]\n", kind,
                    file[i].section + strlen(kind) + 1);
        for (int k = i; k < settings; k++)
            if (strcmp(file[k].section, file[i].section) == 0 && file[k].key[0])
                fprintf(stream, "%s = %s\n", file[k].key, file[k].value);
    }
}

static void see(look_f *look, char said[SAID])
{
    int fd = memfd_create("settings", MFD_CLOEXEC);
    FILE *stream = fd < 0 ? NULL : fdopen(fd, "w");
    char path[32];

    if (!stream || fchmod(fd, 0600) != 0)
        exit(99);
    file_write(stream);
    fflush(stream);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    look(path, said);
    fclose(stream);
}

/* ------------------------------------------------------------- the rows --- */

static bool seen(const char *expect, const char *said)
{
    return expect[0] == '>' ? strtod(said, NULL) > strtod(expect + 1, NULL)
                            : strstr(said, expect) != NULL;
}

static void show(const char *title, char *said)
{
    note("%s", title);
    for (char *line = strtok(said, "\n"); line; line = strtok(NULL, "\n"))
        note("  %s", line);
}

#ifdef HAVE_VERBS
enum { HAS_QUEUES = true };
#else
enum { HAS_QUEUES = false };
#endif

/* What is seen without the change is kept for rows that have it in common. */
static void row_run(const struct row *row)
{
    static char before[SAID], after[SAID], shown[SAID];
    static const struct row *kept;

    if (no_gpu && (strcmp(row->key, "gpus") == 0
                   || strcmp(row->key, "memory") == 0)) {
        skip(row->key, no_gpu);
        return;
    }
    if (row->look == look_queue && !HAS_QUEUES) {
        skip(row->key, "a build without verbs");
        return;
    }
    file_begin(row->also);
    if (!kept || kept->look != row->look || kept->also != row->also)
        see(row->look, before);
    kept = row;
    file_set(row->section, row->key, row->value);
    see(row->look, after);
    if (ok(!seen(row->expect, before) && seen(row->expect, after),
           "[%s] %s = %s: %.*s", row->section, row->key, row->value,
           (int)strcspn(row->expect, "\n"), row->expect))
        return;
    strcpy(shown, before);
    show("without it:", shown);
    show("with it:", after);
}

/* ------------------------------------------------------------- the keys --- */

static bool row_is(const struct row *row, const struct dtn_section_kind *kind,
                   const char *key)
{
    size_t n = strlen(kind->name);

    return strncmp(row->section, kind->name, n) == 0
        && (row->section[n] == '\0' || row->section[n] == ' ')
        && strcmp(row->key, key) == 0;
}

static bool has_row(const struct dtn_section_kind *kind, const char *key)
{
    for (size_t i = 0; i < DTN_COUNT(rows); i++)
        if (row_is(&rows[i], kind, key))
            return true;
    note("[%s] %s has no row", kind->name, key);
    return false;
}

static bool kind_has_rows(const struct dtn_section_kind *kind)
{
    bool all = kind->keys->name || has_row(kind, "");

    for (const struct dtn_key *key = kind->keys; key->name; key++)
        all = has_row(kind, key->name) && all;
    return all;
}

static void choose(void)
{
    cpu_set_t set;
    int number = port_own(), first = 0;

    snprintf(port, sizeof port, "%d", number);
    snprintf(next_port, sizeof next_port, "%d", number + 1);
    snprintf(port_seen, sizeof port_seen, ":%d,", number + 1);
    sched_getaffinity(0, sizeof set, &set);
    while (!CPU_ISSET(first, &set))
        first++;
    snprintf(cpu, sizeof cpu, "%d | %d", first, first);
    if (CPU_COUNT(&set) == 1)
        strcpy(cpu_seen, "cpus: bound");
}

/* A word that DTN_LOG does not have is told by one rank, and what is valid. */
static void log_word(void)
{
    static const char words[] = "log: DTN_LOG is \"loud\"; expected off, "
                                "stall, warn, info or debug";
    static char said[SAID];
    const char *first;

    setenv("DTN_LOG", "loud", 1);
    file_begin(NULL);
    see(look_job, said);
    first = strstr(said, words);
    if (!ok(first && !strstr(first + 1, words), "one rank of two: %s", words))
        show("said:", said);
}

int main(void)
{
    no_gpu = standin_use();
    setenv("DTN_LOG", "info", 1);
    setenv("DTN_MUNGE_SOCKET", "/nonexistent", 1);
    choose();
    for (int i = 0; i < DTN_NKINDS; i++)
        ok(kind_has_rows(&dtn_section_kinds[i]), "every key of [%s] has a row",
           dtn_section_kinds[i].name);
    for (size_t i = 0; i < DTN_COUNT(rows); i++)
        row_run(&rows[i]);
    log_word();
    return done();
}
