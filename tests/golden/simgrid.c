/* simgrid.c - MPI programs that send the messages of our algorithms
 *
 *   simgrid PATTERN BYTES
 *
 * make_simgrid.sh compiles it with smpicc, and takes the longest of the times
 * in us that the ranks print; all start at once.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAG = 7 };

static int n, me, bytes;
static char *mine, *theirs;
static MPI_Request *requests;
static int nrequests;

static void post(int to)
{
    MPI_Isend(mine, bytes, MPI_BYTE, to, TAG, MPI_COMM_WORLD,
              &requests[nrequests++]);
}

static void expect(int from)
{
    MPI_Irecv(theirs, bytes, MPI_BYTE, from, TAG, MPI_COMM_WORLD,
              &requests[nrequests++]);
}

static void finish(void)
{
    MPI_Waitall(nrequests, requests, MPI_STATUSES_IGNORE);
    nrequests = 0;
}

/* One step in which all send `ahead` ranks on. */
static void shift(int ahead)
{
    expect((me + n - ahead) % n);
    post((me + ahead) % n);
    finish();
}

/* From rank 0; to the largest subtree first. */
static void broadcast(void)
{
    int bit = 1;

    while (bit < n && !(me & bit))
        bit <<= 1;
    if (me > 0) {
        expect(me - bit);
        finish();
    }
    for (bit >>= 1; bit > 0; bit >>= 1)
        if (me + bit < n)
            post(me + bit);
    finish();
}

/* n is a power of two. */
static void doubling(void)
{
    for (int bit = 1; bit < n; bit <<= 1) {
        expect(me ^ bit);
        post(me ^ bit);
        finish();
    }
}

static void ring(void)
{
    for (int step = 1; step < n; step++)
        shift(1);
}

static void pairwise(void)
{
    for (int step = 1; step < n; step++)
        shift(step);
}

static void all_to_all(void)
{
    for (int step = 1; step < n; step++)
        expect((me + n - step) % n);
    for (int step = 1; step < n; step++)
        post((me + step) % n);
    finish();
}

/* To rank 0. */
static void gather(void)
{
    for (int from = 1; me == 0 && from < n; from++)
        expect(from);
    if (me > 0)
        post(0);
    finish();
}

static const struct {
    const char *name;
    void (*run)(void);
} patterns[] = {
    { "broadcast", broadcast }, { "doubling", doubling }, { "ring", ring },
    { "pairwise", pairwise }, { "all_to_all", all_to_all },
    { "gather", gather }, { NULL, NULL }
};

int main(int argc, char **argv)
{
    double start_s;
    int p = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    bytes = argc > 2 ? atoi(argv[2]) : 0;
    mine = calloc((size_t)bytes + 1, 1);
    theirs = calloc((size_t)bytes + 1, 1);
    requests = calloc(2 * (size_t)n, sizeof *requests);
    while (argc > 1 && patterns[p].name && strcmp(patterns[p].name, argv[1]))
        p++;
    if (argc < 3 || !patterns[p].name || !mine || !theirs || !requests)
        MPI_Abort(MPI_COMM_WORLD, 2);
    start_s = MPI_Wtime();
    patterns[p].run();
    printf("%.3f\n", 1e6 * (MPI_Wtime() - start_s));
    MPI_Finalize();
    return 0;
}
