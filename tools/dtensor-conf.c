/* dtensor-conf - check a cluster file, and explain it
 *
 *   $ dtensor-conf two-nodes.ini
 *   two-nodes.ini: ok: 8 ranks on 2 nodes; meshes world(dp=2,tp=4)
 *
 * Findings go to stderr in the form compilers use, and the exit status is 2;
 * nothing is started and no other machine is contacted.
 */
#include "tools/draw/cluster.h"
#include "tools/draw/write.h"
#include "dtensor.h"

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_GOOD = 0, EXIT_BAD = 2 };

static const char program[] = "dtensor-conf";

/* ------------------------------------------------------------- options --- */

/* One table: getopt_long() reads it, and --help prints it. */
static const struct row {
    const char *name;
    char letter;
    const char *argument;          /* NULL: takes none                        */
    const char *help;
} rows[] = {
    { "show", 's', "VIEW", "show a view of each file (default summary):\n"
      "summary  one line: ranks, nodes, meshes\n"
      "ranks    rank, host, local rank, GPU, device, CPUs\n"
      "hosts    host, address, ranks\n"
      "mesh     every mesh: its dims, and where each rank is\n"
      "seeds    the seed of each rank\n"
      "digest   the meaning as text, and the hash ranks compare\n"
      "plan     for each plan the styles of its modules\n"
      "devices  RDMA devices of this machine; needs no FILE" },
    { "rank", 'r', "N", "only what concerns rank N (default all ranks)" },
    { "fabric", 'f', NULL,
      "under dtensor-run or srun: what every rank sees of\n"
      "the RDMA fabric, and what is wrong" },
    { "draw", 'D', NULL, "draw hosts, ranks, devices and links" },
    { "svg", 'g', NULL, "the same as SVG" },
    { "template", 't', NULL, "print a commented file to start from, and exit" },
    { "help", 'h', NULL, "print this, and exit" },
    { "version", 'V', NULL, "print version, build and licence, and exit" }
};

#define NROWS (sizeof rows / sizeof rows[0])

enum { VIEW_DEVICES = DTENSOR_NSHOWS, NVIEWS };      /* and what we add       */

static const char *const views[NVIEWS] = {
    [VIEW_DEVICES] = "devices",
    [DTENSOR_SHOW_SUMMARY] = "summary", [DTENSOR_SHOW_RANKS] = "ranks",
    [DTENSOR_SHOW_HOSTS] = "hosts", [DTENSOR_SHOW_MESH] = "mesh",
    [DTENSOR_SHOW_SEEDS] = "seeds", [DTENSOR_SHOW_DIGEST] = "digest",
    [DTENSOR_SHOW_PLAN] = "plan"
};

struct request {
    int view;                      /* enum dtensor_show, or VIEW_DEVICES      */
    int rank;                      /* -1: all                                 */
    bool several;                  /* files: say which is which               */
    bool fabric;
    bool draw, svg;                /* a picture instead of a view             */
};

/* Lines after the first stand below it. */
static void print_indented(const char *text)
{
    for (; *text; text++) {
        putchar(*text);
        if (*text == '\n')
            printf("%22s", "");
    }
    putchar('\n');
}

static void print_help(void)
{
    char left[64];

    printf("Usage: %s [OPTION]... FILE...\n"
           "Check cluster files, and show what they mean, or what ranks "
           "see of\nthe RDMA fabric.\n\n", program);
    for (size_t i = 0; i < NROWS; i++) {
        snprintf(left, sizeof left, "-%c, --%s%s%s", rows[i].letter,
                 rows[i].name, rows[i].argument ? "=" : "",
                 rows[i].argument ? rows[i].argument : "");
        printf("  %-20s", left);
        print_indented(rows[i].help);
    }
    printf("\nExit status: 0 all files are good, 2 one is not, or a rank "
           "is not\nfit for the fabric that the file asks for.\n"
           "The files are described in dtensor-cluster(5).\n");
}

static int usage_error(const char *what, const char *value)
{
    fprintf(stderr, "%s: %s%s\nTry '%s --help' for more information.\n",
            program, what, value, program);
    return EXIT_BAD;
}

/* getopt_long() knows the letter, or none when it was a long option. */
static int unknown_option(int letter, const char *word)
{
    const char text[] = { '-', (char)letter, '\0' };

    return usage_error("unknown option: ", letter ? text : word);
}

static bool read_view(const char *text, int *view)
{
    for (int i = 0; i < NVIEWS; i++) {
        if (strcmp(text, views[i]) != 0)
            continue;
        *view = i;
        return true;
    }
    return false;
}

static bool read_rank(const char *text, int *rank)
{
    char *end;
    long value;

    errno = 0;
    value = strtol(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno || value > 1 << 30)
        return false;
    *rank = (int)value;
    return true;
}

/* ------------------------------------------------------------ template --- */

static const char template[] =
    "; A cluster file.  Every rank reads it; dtensor-cluster(5) describes it.\n"
    "; What begins with ; is a comment.  Check: dtensor-conf FILE\n"
    "\n"
    "[cluster]\n"
    "version     = 1\n"
    "name        = mine\n"
    ";world_size = 4              ; a check: the sum over all [nodes]\n"
    "\n"
    "; One section for each kind of node, any number of them.\n"
    "[nodes \"all\"]\n"
    "hosts      = localhost       ; or node[001-064], or @step under srun\n"
    "ranks      = 4               ; on each host\n"
    ";addresses = node[001-064]-ib0   ; default: the hosts\n"
    ";hca       = mlx5_[0-3]:1    ; as many as divide ranks; a+b: two of each\n"
    ";gid_index = 3               ; on RoCE\n"
    ";cpus      = numa            ; or 0-7 | 8-15 | 16-23 | 24-31\n"
    "\n"
    "[transport]\n"
    ";intra_node      = shm       ; or tcp, rc\n"
    ";inter_node      = tcp       ; or rc, or auto\n"
    ";port            = 17800     ; of the first rank of each host\n"
    ";connect_timeout = 60s\n"
    ";op_timeout      = 10min\n"
    ";stall_after     = 5s        ; DTN_LOG=warn: who waits for whom\n"
    ";heartbeat       = 100ms\n"
    ";dead_after      = 10s\n"
    ";register_limit  = 64G       ; of dtensor_register() in each rank\n"
    ";arena           = 100%      ; of the host's memory, for tensors of a rank\n"
    "\n"
    "; Without it, \"world\" is one dim over all ranks.\n"
    ";[mesh \"world\"]\n"
    ";dims = pp=2, tp=2           ; rightmost fastest\n"
    "\n"
    ";[seed]\n"
    ";base     = 1234\n"
    ";mesh     = world\n"
    ";distinct = pp               ; each stage pp draws its own numbers\n"
    "\n"
    ";[tuning]\n"
    ";allreduce = 0-32K:direct, 32K-inf:ring\n"
    "\n"
    "; How the modules of a model are cut: dtensor_parallelize_plan(3).\n"
    ";[plan \"mlp\"]\n"
    ";mesh = world\n"
    ";dim  = tp\n"
    ";layers.*.up   = colwise\n"
    ";layers.*.down = rowwise\n";

/* --------------------------------------------------------------- files --- */

static void print_finding(const char *text, void *arg)
{
    fprintf(stderr, "%s\n", text);
}

static int show_file(const char *path, const struct dtensor_cluster *cluster,
                     const struct request *request)
{
    struct dtensor_error err;

    if (request->view == DTENSOR_SHOW_SUMMARY && request->rank < 0)
        printf("%s: ok: ", path);
    else if (request->several)
        printf("%s:\n", path);
    if (dtensor_cluster_show(cluster, (enum dtensor_show)request->view,
                             request->rank, stdout, &err) == 0)
        return EXIT_GOOD;
    fprintf(stderr, "%s\n", err.text);
    return EXIT_BAD;
}

static int draw_file(const char *path, const struct dtensor_cluster *cluster,
                     const struct request *request)
{
    const struct draw_room room = draw_room_of(request->svg, "", stdout);
    struct dtensor_cluster_info info;
    struct picture pic;
    int rc;

    dtensor_cluster_info(cluster, &info);
    if (info.nranks == 0) {
        fprintf(stderr, "%s: nothing to draw: its ranks are those of a Slurm "
                "step (run it under srun)\n", path);
        return EXIT_BAD;
    }
    picture_init(&pic);
    draw_cluster(&pic, cluster, room);
    rc = draw_write(&pic, request->svg, path, "", stdout);
    picture_fini(&pic);
    if (rc == 0)
        return EXIT_GOOD;
    fprintf(stderr, "%s: out of memory\n", program);
    return EXIT_BAD;
}

static int check_file(const char *path, const struct request *request)
{
    struct dtensor_cluster *cluster;
    struct dtensor_error err;
    int rc, status;

    rc = dtensor_cluster_read(path, print_finding, NULL, &cluster, &err);
    if (rc == DTENSOR_ENOMEM)                      /* the only one unreported */
        fprintf(stderr, "%s\n", err.text);
    if (rc < 0)
        return EXIT_BAD;
    status = request->draw || request->svg ? draw_file(path, cluster, request)
                                           : show_file(path, cluster, request);
    dtensor_cluster_destroy(cluster);
    return status;
}

/* A full disk must not pass for success. */
static int finish(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    fprintf(stderr, "%s: cannot write: %s\n", program, strerror(errno));
    return EXIT_BAD;
}

static int check_files(char *const paths[], int n, struct request *request)
{
    int status = EXIT_GOOD;

    if (n == 0)
        return usage_error("no file to check", "");
    if (request->svg && n > 1)
        return usage_error("--svg draws one file, not also ", paths[1]);
    request->several = n > 1;
    for (int i = 0; i < n; i++)
        if (check_file(paths[i], request) != EXIT_GOOD)
            status = EXIT_BAD;
    return finish(status);
}

/* -------------------------------------------------------------- fabric --- */

static int show_devices(int nfiles)
{
    struct dtensor_error err;

    if (nfiles > 0)
        return usage_error("devices are this machine's, not a file's: ",
                           "leave the file out");
    if (dtensor_devices_show(stdout, &err) == 0)
        return finish(EXIT_GOOD);
    fprintf(stderr, "%s: %s\n", program, err.text);
    return EXIT_BAD;
}

/* Every rank comes here; rank 0 writes.  Without a file it is the one that
 * DTN_CLUSTER names, or the ranks that were started.
 */
static int show_fabric(char *const paths[], int n)
{
    struct dtensor_error err;
    int unfit;

    if (n > 1)
        return usage_error("--fabric takes one file, not also ", paths[1]);
    if (dtensor_fabric_show(n ? paths[0] : NULL, stdout, &unfit, &err) != 0) {
        fprintf(stderr, "%s: %s\n", program, err.text);
        return EXIT_BAD;
    }
    return finish(unfit ? EXIT_BAD : EXIT_GOOD);
}

/* ---------------------------------------------------------------- main --- */

static void options_make(struct option options[NROWS + 1],
                         char letters[3 * NROWS + 2])
{
    *letters++ = ':';              /* we word the errors ourselves            */
    for (size_t i = 0; i < NROWS; i++) {
        options[i] = (struct option){ rows[i].name, rows[i].argument ?
                                      required_argument : no_argument, NULL,
                                      rows[i].letter };
        *letters++ = rows[i].letter;
        if (rows[i].argument)
            *letters++ = ':';
    }
    *letters = '\0';
    options[NROWS] = (struct option){ NULL, 0, NULL, 0 };
}

int main(int argc, char **argv)
{
    struct request request = { .view = DTENSOR_SHOW_SUMMARY, .rank = -1 };
    struct option options[NROWS + 1];
    char letters[3 * NROWS + 2];
    int c;

    options_make(options, letters);
    while ((c = getopt_long(argc, argv, letters, options, NULL)) != -1) {
        switch (c) {
        case 's':
            if (!read_view(optarg, &request.view))
                return usage_error("no such view: ", optarg);
            break;
        case 'r':
            if (!read_rank(optarg, &request.rank))
                return usage_error("not a rank: ", optarg);
            break;
        case 'f':
            request.fabric = true;
            break;
        case 'D':
            request.draw = true;
            break;
        case 'g':
            request.svg = true;
            break;
        case 't':
            fputs(template, stdout);
            return finish(EXIT_GOOD);
        case 'h':
            print_help();
            return finish(EXIT_GOOD);
        case 'V':
            printf("%s %s (%s)\nLicence: BSD-3-Clause\n", program,
                   dtensor_version(), dtensor_build());
            return finish(EXIT_GOOD);
        case ':':
            return usage_error("an argument is missing: ", argv[optind - 1]);
        default:
            return unknown_option(optopt, argv[optind - 1]);
        }
    }
    if (request.fabric)
        return show_fabric(argv + optind, argc - optind);
    if (request.view == VIEW_DEVICES)
        return show_devices(argc - optind);
    return check_files(argv + optind, argc - optind, &request);
}
