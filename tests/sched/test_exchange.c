/* test_exchange.c - pieces between any ranks, proven for random lists
 *
 * OUT of each rank is a matrix cut into random tiles, each filled from a
 * random place of one rank's IN, or summed from several, or left out.  Which
 * pairs of ranks map is random too.  What each element must be is kept beside
 * in the plainest way, and the rest is the checker's.
 *
 * Without this test, the exchange under every redistribute would be tried only
 * with the pieces that redistributes happen to make.
 */
#include "sched/check.h"
#include "sched/exchange.h"
#include "sched/sched.h"
#include "dtensor.h"
#include "tests/support/heap.h"
#include "tests/support/rand.h"
#include "tests/support/tap.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define RANKS 6
#define ROWS 6
#define COLS 12
#define PIECES 200

struct want {
    bool defined;
    uint32_t ranks;
    int64_t index;
};

static struct world {
    int n;
    enum dtensor_dtype dtype;
    bool uses_acc[RANKS];         /* adds up what must be rounded             */
    bool neutral;
    int scale;
    size_t row_bytes;
    size_t window_bytes;
    enum { MIXED, SINGLE, ALL } terms;
    bool mapped[RANKS][RANKS];
    struct want want[RANKS][ROWS * COLS];
    int nreceived[RANKS];
    struct dtn_piece received[RANKS][PIECES];
    int nsent[RANKS];
    struct dtn_piece sent[RANKS][PIECES * RANKS];
    struct dtn_sched scheds[RANKS];
} world;

/* ------------------------------------------------------------------ lists */

static void piece_add(const struct dtn_piece *piece)
{
    int r = piece->receiver;

    world.received[r][world.nreceived[r]++] = *piece;
}

/* Sent lists from the received ones, as who plans an exchange does. */
static void lists_finish(void)
{
    for (int r = 0; r < world.n; r++)
        for (int i = 0; i < world.nreceived[r]; i++) {
            const struct dtn_piece *piece = &world.received[r][i];
            int s = piece->source;

            world.sent[s][world.nsent[s]++] = *piece;
        }
}

static bool row_maps(const void *row, int position)
{
    return ((const bool *)row)[position];
}

static int world_emit(size_t in_count, size_t out_count)
{
    int rc = 0;

    for (int r = 0; rc == 0 && r < world.n; r++) {
        const struct dtn_exchange exchange = {
            .name = "exchange", .n = world.n, .me = r, .dtype = world.dtype,
            .redop = DTENSOR_SUM, .in_count = in_count,
            .out_count = out_count, .neutral = world.neutral,
            .scale = world.scale, .row_bytes = world.row_bytes,
            .window_bytes = world.window_bytes,
            .folds = world.terms != SINGLE,
            .maps = row_maps, .whose = world.mapped[r],
            .nreceived = world.nreceived[r],
            .received = world.received[r], .nsent = world.nsent[r],
            .sent = world.sent[r]
        };

        rc = dtn_emit_exchange(&exchange, &world.scheds[r], NULL);
    }
    return rc;
}

static void world_clear(int n)
{
    for (int r = 0; r < RANKS; r++)
        dtn_sched_fini(&world.scheds[r]);
    memset(&world, 0, sizeof world);
    world.n = n;
    world.dtype = DTENSOR_I32;
}

/* ----------------------------------------------------------------- random */

/* The tile of a receiver at (row, col), rows x cols: one or several pieces. */
static void tile_fill(uint64_t *rng, int receiver, int row, int col, int rows,
                      int cols)
{
    bool turned = rows <= COLS && cols <= ROWS && rand_below(rng, 3) == 0;
    int at_row = rand_below(rng, ROWS - (turned ? cols : rows) + 1);
    int at_col = rand_below(rng, COLS - (turned ? rows : cols) + 1);
    int first = world.terms == ALL ? 0 : rand_below(rng, world.n);
    int nterms = 1;
    struct dtn_piece piece = {
        .receiver = receiver,
        .src_offset = (size_t)(at_row * COLS + at_col),
        .dst_offset = (size_t)(row * COLS + col),
        .box = { 2, { rows, cols }, { COLS, 1 },
                 { turned ? 1 : COLS, turned ? COLS : 1 } }
    };

    if (world.terms == MIXED && (rand_below(rng, 3) == 0 || world.neutral))
        nterms = 1 + rand_below(rng, world.n);
    if (world.terms == ALL)
        nterms = world.n;
    if (world.scale <= 1 && rand_below(rng, 10) == 0)
        nterms = 0;
    for (int t = 0; t < nterms; t++) {
        piece.source = (first + t) % world.n;
        piece.accumulate = t > 0 || world.neutral;
        if (piece.accumulate && world.dtype == DTENSOR_BF16)
            world.uses_acc[receiver] = true;
        piece_add(&piece);
    }
    for (int i = 0; i < rows; i++)
        for (int j = 0; nterms > 0 && j < cols; j++) {
            struct want *want = &world.want[receiver][(row + i) * COLS
                                                      + col + j];

            want->defined = true;
            want->index = (int64_t)piece.src_offset
                        + i * piece.box.src_stride[0]
                        + j * piece.box.src_stride[1];
            for (int t = 0; t < nterms; t++)
                want->ranks |= 1u << (first + t) % world.n;
        }
}

/* Cut OUT of a rank into bands of rows, and each into tiles. */
static void rank_fill(uint64_t *rng, int receiver)
{
    for (int row = 0, rows; row < ROWS; row += rows) {
        rows = 1 + rand_below(rng, ROWS - row);
        for (int col = 0, cols; col < COLS; col += cols) {
            cols = rand_below(rng, 3) == 0 ? COLS - col
                                           : 1 + rand_below(rng, COLS - col);
            tile_fill(rng, receiver, row, col, rows, cols);
        }
    }
}

/* Mapping: none, all, or by chance. */
static void world_random(uint64_t *rng)
{
    int how;

    world_clear(1 + rand_below(rng, RANKS));
    how = rand_below(rng, 4);
    world.dtype = rand_below(rng, 3) == 0 ? DTENSOR_BF16 : DTENSOR_I32;
    world.neutral = rand_below(rng, 3) == 0;
    world.scale = rand_below(rng, 3) == 0 ? 2 + rand_below(rng, 4) : 0;
    world.row_bytes = (size_t[]){ 0, 4, 8, 20 }[rand_below(rng, 4)];
    world.window_bytes = (size_t[]){ 0, 1, 12, 40 }[rand_below(rng, 4)];
    if (world.window_bytes > 0)              /* terms from sources alike     */
        world.terms = rand_below(rng, 2) ? ALL : SINGLE;
    world.neutral = world.neutral && world.terms != SINGLE;
    for (int r = 0; r < world.n; r++)
        for (int q = 0; q <= r; q++)
            world.mapped[r][q] = world.mapped[q][r] = r == q || how == 1
                              || (how > 1 && rand_below(rng, 2));
    for (int r = 0; r < world.n; r++)
        for (int i = 0; world.neutral && i < ROWS * COLS; i++)
            world.want[r][i] = (struct want){ true, 0, -1 };
    for (int r = 0; r < world.n; r++)
        rank_fill(rng, r);
    lists_finish();
}

static bool expect_want(int rank, size_t elem, const struct dtn_cell *cell,
                        const void *arg)
{
    const struct world *w = arg;
    const struct want *want = &w->want[rank][elem];

    return cell->defined == want->defined
        && (!want->defined
            || (cell->ranks[0] == want->ranks && cell->index == want->index
                && cell->finalised == (w->scale > 1 || w->uses_acc[rank])));
}

static int world_check(struct dtensor_error *err)
{
    return dtn_sched_check(world.scheds, world.n, 2, NULL, expect_want,
                           &world, err);
}

static void test_random(uint64_t seed)
{
    struct dtensor_error err = { .text = "" };
    uint64_t rng = seed;
    int bad = 0, steps = 0;

    for (int i = 0; i < 1000 && bad == 0; i++) {
        world_random(&rng);
        if (world_emit(ROWS * COLS, ROWS * COLS) != 0
            || world_check(&err) != 0) {
            bad++;
            note("case %d, %d ranks: %s", i, world.n, err.text);
            for (int r = 0; r < world.n; r++)
                dtn_sched_print(&world.scheds[r], stdout);
        }
        for (int r = 0; r < world.n; r++)
            steps += world.scheds[r].nsteps;
    }
    ok(bad == 0, "random pieces, mapped and not, summed and not: right "
       "(%d steps, seed 0x%llx)", steps, (unsigned long long)seed);
}

/* Does the step pack what lies packed there already?  Two random pieces may
 * begin with the same element.
 */
static bool packed_already(const struct dtn_sched *sched, int s)
{
    const struct dtn_step *step = &sched->steps[s], *last = NULL;

    for (int i = 0; i < s; i++)
        if (sched->steps[i].op == DTN_OP_COPY
            && sched->steps[i].dst.space == DTN_TMP
            && sched->steps[i].dst.offset == step->dst.offset)
            last = &sched->steps[i];
    return last && step->op == DTN_OP_COPY && step->dst.space == DTN_TMP
        && step->box < 0 && last->box < 0 && step->bytes == last->bytes
        && step->src.offset == last->src.offset;
}

/* Is every step needed? */
static void test_mutations(uint64_t seed)
{
    uint64_t rng = seed;
    int tried = 0, survived = 0;

    for (int i = 0; i < 40; i++) {
        world_random(&rng);
        world_emit(ROWS * COLS, ROWS * COLS);
        for (int r = 0; r < world.n; r++) {
            struct dtn_sched *sched = &world.scheds[r];

            for (int s = 0; s < sched->nsteps; s++) {
                const bool again = packed_already(sched, s);
                struct dtn_step step = sched->steps[s];
                size_t after = (size_t)(sched->nsteps - s - 1) * sizeof step;

                memmove(&sched->steps[s], &sched->steps[s + 1], after);
                sched->nsteps--;
                tried++;
                survived += !again && world_check(NULL) == 0;
                memmove(&sched->steps[s + 1], &sched->steps[s], after);
                sched->steps[s] = step;
                sched->nsteps++;
            }
        }
    }
    ok(tried > 1000 && survived == 0, "leaving out any of %d steps: refused "
       "(seed 0x%llx)", tried, (unsigned long long)seed);
}

/* ----------------------------------------------------------------- golden */

/* The example at the head of exchange.c: 4 x 4 from rows to columns. */
static void rows_to_columns(bool mapped, size_t row_bytes)
{
    world_clear(2);
    world.row_bytes = row_bytes;
    for (int r = 0; r < 2; r++)
        for (int s = 0; s < 2; s++) {
            struct dtn_piece piece = {
                .source = s, .receiver = r, .src_offset = (size_t)r * 2,
                .dst_offset = (size_t)s * 4,
                .box = { 2, { 2, 2 }, { 2, 1 }, { 4, 1 } }
            };

            world.mapped[r][s] = mapped || r == s;
            piece_add(&piece);
        }
    lists_finish();
    world_emit(8, 8);
}

static bool prints(const struct dtn_sched *sched, const char *golden)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    bool good;

    dtn_sched_print(sched, stream);
    fclose(stream);
    good = strcmp(text, golden) == 0;
    if (!good)
        printf("%s", text);
    free(text);
    return good;
}

static void test_golden(void)
{
    rows_to_columns(true, 8);
    ok(prints(&world.scheds[0],
       "exchange: rank 0 of 2, i32 sum, IN* 32 OUT 32 TMP 0\n"
       "  0 signal  -> 1  READY\n"
       "  1 copy    OUT+0 <- IN+0  box 2x2 (2,1) <- (4,1)\n"
       "  2 wait    <- 1  READY\n"
       "  3 copy    OUT+16 <- 1:IN+0  box 2x2 (2,1) <- (4,1)\n"
       "  4 signal  -> 1  DONE\n"
       "  5 wait    <- 1  DONE\n"), "rows to columns, mapped: each box is "
       "loaded straight into place");
    rows_to_columns(false, 8);
    ok(prints(&world.scheds[0],
       "exchange: rank 0 of 2, i32 sum, IN 32 OUT* 32 TMP 0\n"
       "  0 signal  -> 1  READY\n"
       "  1 wait    <- 1  READY\n"
       "  2 put     -> 1  OUT+0 <- IN+8  box 2x2 (2,1) <- (4,1)\n"
       "  3 signal  -> 1  DATA\n"
       "  4 copy    OUT+0 <- IN+0  box 2x2 (2,1) <- (4,1)\n"
       "  5 wait    <- 1  DATA\n"
       "  6 flush   -> 1\n"), "not mapped: its rows are put straight into "
       "place");
    rows_to_columns(false, 12);
    ok(prints(&world.scheds[0],
       "exchange: rank 0 of 2, i32 sum, IN 32 OUT* 32 TMP 16\n"
       "  0 signal  -> 1  READY\n"
       "  1 copy    TMP+0 <- IN+8  box 2x2 (2,1) <- (4,1)\n"
       "  2 wait    <- 1  READY\n"
       "  3 put     -> 1  OUT+0 <- TMP+0  16 bytes\n"
       "  4 signal  -> 1  DATA\n"
       "  5 copy    OUT+0 <- IN+0  box 2x2 (2,1) <- (4,1)\n"
       "  6 wait    <- 1  DATA\n"
       "  7 flush   -> 1\n"), "rows too short to be put by themselves are "
       "packed, and put straight into place where that is flat");
}

/* Only rank 0 to rank 1. */
static void test_strangers(void)
{
    world_clear(4);
    piece_add(&(struct dtn_piece){ .source = 0, .receiver = 1,
              .box = { 1, { 4 }, { 1 }, { 1 } } });
    piece_add(&(struct dtn_piece){ .source = 2, .receiver = 1,
              .box = { 1, { 0 }, { 1 }, { 1 } } });
    lists_finish();
    world_emit(4, 4);
    ok(world.scheds[2].nsteps == 0 && world.scheds[3].nsteps == 0
       && world.scheds[0].nsteps > 0, "ranks with nothing for each other "
       "exchange not even a signal");
    ok(world.scheds[1].bytes[DTN_TMP] == 0, "what lies flat at both ends needs "
       "no scratch");
    world_clear(0);
}

int main(void)
{
    uint64_t seed = rand_seed(0xc0113c7);

    heap_keep();
    test_golden();
    test_strangers();
    test_random(seed);
    test_mutations(seed + 1);
    world_clear(0);
    return done();
}
