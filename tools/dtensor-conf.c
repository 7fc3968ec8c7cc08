/* dtensor-conf - check a cluster file, and explain it
 *
 *   $ dtensor-conf two-nodes.ini
 *   two-nodes.ini: ok: 8 ranks on 2 nodes; meshes world(dp=2,tp=4)
 *
 * Findings go to stderr in the form compilers use, and the exit status is 2;
 * nothing is started and no other machine is contacted.
 */
#include "tools/cli.h"
#include "tools/draw/cluster.h"
#include "tools/draw/write.h"
#include "tools/conf/conf.h"
#include "dtensor.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_GOOD = 0, EXIT_BAD = 2,
       EXIT_UNREAD = 141,       /* stdout has no reader: 128 + SIGPIPE      */
       GO_ON = -1 };            /* no exit status: more is to be done       */

static const char program[] = "dtensor-conf";

/* ------------------------------------------------------------- options --- */

/* One table: cli.c reads the command line by it, and --help prints it. */
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
    { "doctor", 'd', NULL,
      "check names, ports, limits, devices and Slurm here,\n"
      "a line each; FILE is optional" },
    { "env", 'e', NULL, "print the environment variables that are read" },
    { "topology", 'o', NULL,
      "print NUMA nodes, GPUs and network cards, and the\n"
      "way between them" },
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
    bool doctor;
    bool draw, svg;                /* a picture instead of a view             */
    const struct row *shown;       /* the option that chose one of these      */
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

static int unknown_view(const char *word)
{
    const char *names[NVIEWS + 1] = { NULL };
    char advice[300], text[500];

    memcpy(names, views, sizeof views);
    dtensor_advise(word, names, NULL, advice, sizeof advice);
    snprintf(text, sizeof text, "%s; %s", word, advice);
    return usage_error("no such view: ", text);
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

/* A full disk must not pass for success; head and the like are no error. */
static int finish(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    if (errno == EPIPE)
        return EXIT_UNREAD;
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

/* -------------------------------------------------------------- doctor --- */

/* The file is the given one, or that in DTN_CLUSTER; or there is none. */
static int show_doctor(char *const paths[], int n)
{
    const char *named = getenv("DTN_CLUSTER");
    const char *path = n ? paths[0] : named && *named ? named : NULL;
    struct dtensor_cluster *cluster = NULL;
    struct dtensor_error err;
    bool good;

    if (n > 1)
        return usage_error("--doctor takes one file, not also ", paths[1]);
    if (path &&
        dtensor_cluster_read(path, print_finding, NULL, &cluster, &err) < 0)
        printf("bad   file      %s is wrong: see above, and "
               "dtensor-cluster(5)\n", path);
    else if (path)
        printf("ok    file      %s is good\n", path);
    else
        printf("ok    file      none is given: the cluster is what is "
               "started\n");
    good = conf_doctor(cluster) && (!path || cluster);
    dtensor_cluster_destroy(cluster);
    return finish(good ? EXIT_GOOD : EXIT_BAD);
}

/* ---------------------------------------------------------------- main --- */

/* What needs no file. */
static int print_words(int letter, int nfiles)
{
    if (nfiles > 0)
        return usage_error("--env, --topology and --template are of no file: ",
                           "leave it out");
    if (letter == 'o')
        return finish(conf_topology() ? EXIT_GOOD : EXIT_BAD);
    if (letter == 'e')
        conf_env();
    else if (letter == 't')
        fputs(conf_template, stdout);
    else if (letter == 'h')
        print_help();
    else
        printf("%s %s (%s)\nLicence: BSD-3-Clause\n", program,
               dtensor_version(), dtensor_build());
    return finish(EXIT_GOOD);
}

/* What is shown is chosen once.  GO_ON, or the exit status. */
static int choose(const struct row *row, struct request *request)
{
    char text[80];

    if (request->shown && request->shown != row) {
        snprintf(text, sizeof text, "--%s and --%s do not go together",
                 request->shown->name, row->name);
        return usage_error(text, "");
    }
    request->shown = row;
    request->fabric = row->letter == 'f';
    request->doctor = row->letter == 'd';
    request->draw = row->letter == 'D';
    request->svg = row->letter == 'g';
    return GO_ON;
}

/* Take one option.  GO_ON, or the exit status. */
static int take_option(const struct row *row, const char *text,
                       struct request *request)
{
    switch (row->letter) {
    case 's':
        return read_view(text, &request->view) ? choose(row, request)
                                               : unknown_view(text);
    case 'r':
        return read_rank(text, &request->rank)
             ? GO_ON : usage_error("not a rank: ", text);
    case 'f': case 'd': case 'D': case 'g': case 'e': case 'o': case 't':
        return choose(row, request);
    default:
        return print_words(row->letter, 0);
    }
}

/* All options: GO_ON, or the exit status. */
static int take_options(int argc, char **argv, struct request *request)
{
    struct cli cli = { .n = 0 };
    char said[300], letter[3];
    int row, status = GO_ON;

    for (size_t i = 0; i < NROWS; i++)
        cli_add(&cli, rows[i].name, rows[i].letter, rows[i].argument != NULL);
    while (status == GO_ON && (row = cli_next(&cli, argc, argv)) != CLI_END)
        if (row == CLI_MISSING)
            status = usage_error("an argument is missing: ", argv[optind - 1]);
        else if (row == CLI_UNKNOWN)
            status = usage_error(cli_advise(&cli, cli_word(&cli, argv, letter),
                                            said, sizeof said), "");
        else
            status = take_option(&rows[row], optarg, request);
    if (status == GO_ON && request->rank >= 0 &&
        (request->view == VIEW_DEVICES ||
         (request->shown && request->shown->letter != 's')))
        status = usage_error("--rank goes with a view of a file", "");
    return status;
}

int main(int argc, char **argv)
{
    struct request request = { .view = DTENSOR_SHOW_SUMMARY, .rank = -1 };
    int status;

    cli_files();
    status = take_options(argc, argv, &request);
    if (status != GO_ON)
        return status;
    if (request.doctor)
        return show_doctor(argv + optind, argc - optind);
    if (request.fabric)
        return show_fabric(argv + optind, argc - optind);
    if (request.view == VIEW_DEVICES)
        return show_devices(argc - optind);
    if (request.shown && strchr("eot", request.shown->letter))
        return print_words(request.shown->letter, argc - optind);
    return check_files(argv + optind, argc - optind, &request);
}
