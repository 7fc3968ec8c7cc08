/* attention.c - how much of its messages ring attention hides
 *
 * In turn, many times: attention by the ring; the arithmetic of it alone, each
 * rank with as many keys of its own; and its messages alone.  What is hidden is
 * (arithmetic + messages - ring) / messages.  Medians of the differences of one
 * round, so that the load of the machine falls on all three.
 *
 *     dtensor-run -n 4 ./attention ROWS ROUNDS     rows of a rank
 */
#include <dtensor.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { HEADS = 4, WIDTH = 64, MOST = 1000 };

static struct dtensor_error err;

static void must(int rc)
{
    if (rc == 0)
        return;
    fprintf(stderr, "attention: %s\n", err.text);
    exit(1);
}

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(const double list[], int n)
{
    double sorted[MOST];

    for (int i = 0; i < n; i++)
        sorted[i] = list[i];
    qsort(sorted, (size_t)n, sizeof sorted[0], compare);
    return sorted[n / 2];
}

struct setting {
    const struct dtensor_mesh *all, *own;      /* all ranks; this one         */
    struct dtensor *q, *k;                     /* cut over all                */
    struct dtensor *here, *keys;               /* of this rank: queries, and  */
                                               /* as many keys as all have    */
    char *pass[2];                             /* keys and values of a rank   */
    size_t bytes;
};

static struct dtensor *ones(const struct dtensor_mesh *mesh,
                            const char *placements, int64_t rows)
{
    struct dtensor_spec spec;
    struct dtensor *t = NULL;

    must(dtensor_spec_on(&spec, mesh, placements, DTENSOR_F32, 4,
                         (int64_t[]){ 1, HEADS, rows, WIDTH }, &err));
    must(dtensor_ones(&spec, &t, &err));
    return t;
}

static void ring(const struct setting *s)
{
    const struct dtensor_attention_options how = {
        .method = DTENSOR_ATTENTION_RING };
    struct dtensor *out = NULL;

    must(dtensor_attention(s->q, s->k, s->k, &how, &out, &err));
    dtensor_destroy(out);
}

static void arithmetic(const struct setting *s)
{
    struct dtensor *out = NULL;

    must(dtensor_op("attention", 3, (const struct dtensor *[]){ s->here,
                    s->keys, s->keys }, NULL, 1, &out, &err));
    dtensor_destroy(out);
}

static void messages(struct dtensor_ctx *ctx, const struct setting *s)
{
    const int n = dtensor_world_size(ctx), me = dtensor_rank(ctx);

    for (int i = 0; i < n - 1; i++) {
        must(dtensor_group_begin(ctx, &err));
        must(dtensor_send(s->all, (me + 1) % n, s->pass[i & 1], s->bytes,
                          DTENSOR_U8, &err));
        must(dtensor_recv(s->all, (me + n - 1) % n, s->pass[!(i & 1)],
                          s->bytes, DTENSOR_U8, &err));
        must(dtensor_group_end(ctx, &err));
    }
}

static struct setting setting_make(struct dtensor_ctx *ctx, int64_t rows)
{
    const int n = dtensor_world_size(ctx), me = dtensor_rank(ctx), one = 1;
    struct setting s = { .bytes = (size_t)rows * HEADS * WIDTH * 8 };

    must(dtensor_mesh_find(ctx, "world", &s.all, &err));
    must(dtensor_mesh_create(ctx, 1, &one, NULL, &me, &s.own, &err));
    s.q = ones(s.all, "S(2)", rows * n);
    s.k = ones(s.all, "S(2)", rows * n);
    s.here = ones(s.own, "R", rows);
    s.keys = ones(s.own, "R", rows * n);
    for (int i = 0; i < 2; i++)
        must(dtensor_alloc(ctx, s.bytes, (void **)&s.pass[i], &err));
    return s;
}

static void setting_free(struct dtensor_ctx *ctx, struct setting *s)
{
    dtensor_destroy(s->q);
    dtensor_destroy(s->k);
    dtensor_destroy(s->here);
    dtensor_destroy(s->keys);
    for (int i = 0; i < 2; i++)
        dtensor_free(ctx, s->pass[i]);
}

static double timed(struct dtensor_ctx *ctx, const struct setting *s, int what)
{
    double start;

    must(dtensor_barrier(s->all, &err));
    start = now_ms();
    if (what == 0)
        ring(s);
    else if (what == 1)
        arithmetic(s);
    else
        messages(ctx, s);
    must(dtensor_barrier(s->all, &err));
    return now_ms() - start;
}

int main(int argc, char *argv[])
{
    const int64_t rows = argc > 1 ? atoll(argv[1]) : 512;
    const int asked = argc > 2 ? atoi(argv[2]) : 21;
    const int rounds = asked < 1 ? 1 : asked > MOST ? MOST : asked;
    double ms[3][MOST], hidden[MOST];
    struct dtensor_ctx *ctx = NULL;
    struct setting s;

    must(dtensor_init(NULL, &ctx, &err));
    s = setting_make(ctx, rows);
    for (int i = -1; i < rounds; i++) {
        for (int what = 0; what < 3; what++)
            ms[what][i < 0 ? 0 : i] = timed(ctx, &s, what);
        if (i >= 0)
            hidden[i] = (ms[1][i] + ms[2][i] - ms[0][i]) / ms[2][i];
    }
    if (dtensor_rank(ctx) == 0)
        printf("%d ranks, %lld rows each: ring %.3f ms, arithmetic %.3f, "
               "messages %.3f, of which %.2f is hidden\n",
               dtensor_world_size(ctx), (long long)rows, median(ms[0], rounds),
               median(ms[1], rounds), median(ms[2], rounds),
               median(hidden, rounds));
    setting_free(ctx, &s);
    dtensor_fini(ctx);
    return 0;
}
