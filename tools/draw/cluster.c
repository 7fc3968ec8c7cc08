/* cluster.c - the picture of a cluster file: hosts, ranks, devices, links
 *
 * A host is a box.  In it is a box for each rank, with its GPU and CPUs, and
 * below them the host's RDMA devices, each connected to the ranks that use it.
 * Lines that leave a host lead down to the network, a line below each row of
 * hosts.  If a host is too wide, only its first ranks and their devices are
 * drawn.
 */
#include "tools/draw/cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLUSTER_ROWS_MAX = 4, CLUSTER_RANKS_MAX = 16, CLUSTER_RANK = 12,
       CLUSTER_GAP = 2, CLUSTER_EDGE = 4, CLUSTER_NAME = 40 };

/* The ranks of one host, and the names of its devices. */
struct cluster_host {
    int first, n;                 /* ranks                                    */
    struct dtensor_cluster_rank rank[CLUSTER_RANKS_MAX];   /* the first       */
    int shown;                    /* of these                                 */
    int ndevices;
    char device[CLUSTER_RANKS_MAX][CLUSTER_NAME];
    bool uses[CLUSTER_RANKS_MAX][CLUSTER_RANKS_MAX];
};

struct cluster_drawing {
    struct picture *pic;
    const struct dtensor_cluster *cluster;
    struct dtensor_cluster_info info;
    struct cluster_host host;
    int most;                     /* ranks, or devices, that a host has room  */
                                  /* for                                      */
    int cell, lines;              /* of a rank: width, lines of words         */
    int width, height;            /* of a host                                */
};

/* ------------------------------------------------------------- reading --- */

static int host_device(struct cluster_drawing *d, const char *name, size_t n)
{
    struct cluster_host *host = &d->host;

    for (int i = 0; i < host->ndevices; i++)
        if (strncmp(host->device[i], name, n) == 0 && !host->device[i][n])
            return i;
    if (host->ndevices == d->most || n >= CLUSTER_NAME)
        return -1;
    memcpy(host->device[host->ndevices], name, n);
    host->device[host->ndevices][n] = '\0';
    return host->ndevices++;
}

/* "mlx5_0:1+mlx5_1:1" are two devices. */
static void host_devices(struct cluster_drawing *d, int local, const char *hca)
{
    while (hca && *hca) {
        size_t n = strcspn(hca, "+");
        int device = host_device(d, hca, n);

        if (device >= 0)
            d->host.uses[local][device] = true;
        hca += n;
        hca += *hca == '+';
    }
}

/* The host that rank `first` is the first rank of. */
static void host_read(struct cluster_drawing *d, int first)
{
    struct cluster_host *host = &d->host;
    struct dtensor_cluster_rank rank;

    memset(host, 0, sizeof *host);
    host->first = first;
    while (dtensor_cluster_rank(d->cluster, first + host->n, &rank, NULL) == 0
           && rank.local == host->n) {
        if (host->n < d->most) {
            host_devices(d, host->n, rank.hca);
            host->rank[host->shown++] = rank;
        }
        host->n++;
    }
}

/* ------------------------------------------------------------- drawing --- */

/* The middle of one of n things in a row across a host at x. */
static int host_middle(const struct cluster_drawing *d, int x, int i, int n)
{
    return x + 2 + (d->width - 4) * (2 * i + 1) / (2 * n);
}

static void cluster_rank(struct cluster_drawing *d, int i, int x, int y)
{
    const struct dtensor_cluster_rank *rank = &d->host.rank[i];
    const double middle = x + d->cell / 2.0;

    picture_box(d->pic, (struct draw_box){ x, y, d->cell, d->lines + 1,
                                           d->host.first + i, false });
    picture_words(d->pic, middle, y + 1, DRAW_CENTRE, DRAW_PLAIN, "rank %d",
                  d->host.first + i);
    if (rank->gpu >= 0)
        picture_words(d->pic, middle, y + 2, DRAW_CENTRE, DRAW_PLAIN, "gpu %d",
                      rank->gpu);
    if (rank->cpus)
        picture_words(d->pic, middle, y + 2 + (rank->gpu >= 0), DRAW_CENTRE,
                      DRAW_PLAIN, "%s%.*s", strcmp(rank->cpus, "numa") == 0
                      ? "cpus " : "cpu ", d->cell - 6, rank->cpus);
}


/* The devices below the ranks, and who uses which. */
static void cluster_devices(struct cluster_drawing *d, int x, int ranks_y,
                            int y)
{
    for (int k = 0; k < d->host.ndevices; k++) {
        const int at = host_middle(d, x, k, d->host.ndevices);
        const int half = ((int)strlen(d->host.device[k]) + 4) / 2;

        for (int i = 0; i < d->host.shown; i++)
            if (d->host.uses[i][k])
                picture_line(d->pic, (struct draw_line){
                    host_middle(d, x, i, d->host.shown), ranks_y + d->lines + 1,
                    at, y, k, false, false });
        picture_box(d->pic, (struct draw_box){ at - half, y, 2 * half, 2,
                                               DRAW_NO_COLOUR, false });
        picture_words(d->pic, at, y + 1, DRAW_CENTRE, DRAW_PLAIN, "%s",
                      d->host.device[k]);
    }
}

static void cluster_host(struct cluster_drawing *d, int x, int y)
{
    const struct cluster_host *host = &d->host;
    const struct dtensor_cluster_rank *rank = &host->rank[0];

    picture_box(d->pic, (struct draw_box){ x, y, d->width, d->height,
                                           DRAW_NO_COLOUR, false });
    picture_words(d->pic, x + 2, y + 1, DRAW_LEFT, DRAW_STRONG, "%.*s",
                  d->width - 3, rank->host);
    if (strcmp(rank->host, rank->address) != 0)
        picture_words(d->pic, x + 3 + (int)strlen(rank->host), y + 1,
                      DRAW_LEFT, DRAW_FAINT, "%.*s", d->width - 4
                      - (int)strlen(rank->host), rank->address);
    for (int i = 0; i < host->shown; i++)
        cluster_rank(d, i, host_middle(d, x, i, host->shown) - d->cell / 2,
                     y + 2);
    if (host->n > 1)
        picture_words(d->pic, x + 2, y + d->lines + 4, DRAW_LEFT, DRAW_FAINT,
                      host->n > host->shown ? "%s, and %d more ranks" : "%s",
                      d->info.intra_node, host->n - host->shown);
    cluster_devices(d, x, y + 2, y + d->lines + 6);
}

/* The size of a host with most ranks, so that all have the same. */
static void cluster_measure(struct cluster_drawing *d, int columns)
{
    int most = 0, devices = 0;

    d->cell = CLUSTER_RANK;
    d->most = (columns - CLUSTER_EDGE - 1) / (d->cell + CLUSTER_GAP);
    d->most = d->most < 1 ? 1 : d->most < CLUSTER_RANKS_MAX ? d->most
            : CLUSTER_RANKS_MAX;
    d->lines = 1;
    for (int first = 0; first < d->info.nranks; first += d->host.n) {
        host_read(d, first);
        for (int i = 0; i < d->host.shown; i++) {
            const struct dtensor_cluster_rank *rank = &d->host.rank[i];
            int lines = 1 + (rank->gpu >= 0) + (rank->cpus != NULL);

            d->lines = lines > d->lines ? lines : d->lines;
        }
        most = d->host.shown > most ? d->host.shown : most;
        devices = d->host.ndevices > devices ? d->host.ndevices : devices;
    }
    most = devices > most ? devices : most;
    d->width = most * (d->cell + CLUSTER_GAP) + CLUSTER_EDGE;
    d->height = d->lines + 5 + (devices ? 4 : 0);
}

/* From the devices of a host, or the host, down to the line. */
static void cluster_links(struct cluster_drawing *d, int x, int y, int line)
{
    const int n = d->host.ndevices;

    for (int k = 0; k < n; k++)
        picture_line(d->pic, (struct draw_line){
            host_middle(d, x, k, n), y + d->lines + 8,
            host_middle(d, x, k, n), line, k, false, false });
    if (n == 0)
        picture_line(d->pic, (struct draw_line){
            x + d->width / 2, y + d->height, x + d->width / 2, line,
            DRAW_NO_COLOUR, false, false });
}

static void cluster_network(struct cluster_drawing *d, int width, int y)
{
    picture_line(d->pic, (struct draw_line){ 0, y, width, y, DRAW_NO_COLOUR,
                                             false, false });
    picture_words(d->pic, 0, y + 1, DRAW_LEFT, DRAW_FAINT,
                  "between hosts: %s", d->info.inter_node);
}

/* Hosts in rows; returns the line below them. */
static int cluster_hosts(struct cluster_drawing *d, int across, int y)
{
    const int most = across * CLUSTER_ROWS_MAX;
    int drawn = 0, first = 0;

    while (first < d->info.nranks && drawn < most) {
        const int column = drawn % across, x = column * (d->width + 3);

        host_read(d, first);
        cluster_host(d, x, y);
        if (d->info.nhosts > 1)
            cluster_links(d, x, y, y + d->height + 2);
        first += d->host.n;
        drawn++;
        if (column < across - 1 && first < d->info.nranks &&
            drawn < most)
            continue;
        if (d->info.nhosts > 1)
            cluster_network(d, (column + 1) * (d->width + 3) - 3,
                            y + d->height + 2);
        y += d->height + (d->info.nhosts > 1 ? 5 : 2);
    }
    if (drawn < d->info.nhosts)
        picture_words(d->pic, 0, y++, DRAW_LEFT, DRAW_FAINT,
                      "... and %d more hosts", d->info.nhosts - drawn);
    return y;
}

void draw_cluster(struct picture *pic, const struct dtensor_cluster *cluster,
                  struct draw_room room)
{
    struct cluster_drawing *d = calloc(1, sizeof *d);
    char title[200];
    int across, y;

    if (!d) {
        pic->failed = true;
        return;
    }
    d->pic = pic;
    d->cluster = cluster;
    dtensor_cluster_info(cluster, &d->info);
    snprintf(title, sizeof title, "%s: %d rank%s on %d host%s", d->info.name,
             d->info.nranks, d->info.nranks == 1 ? "" : "s", d->info.nhosts,
             d->info.nhosts == 1 ? "" : "s");
    y = picture_wrapped(pic, 0, 0, room.columns, DRAW_STRONG, title) + 1;
    cluster_measure(d, room.columns);
    across = (room.columns + 2) / (d->width + 3);
    cluster_hosts(d, across < 1 ? 1 : across, y);
    free(d);
}
