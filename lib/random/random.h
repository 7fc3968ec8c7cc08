/* random.h - L5: random numbers for what a rank holds
 *
 * philox.c    blocks of four random words, by counter
 * values.c    words to values of a distribution, for each vector width
 * quantile.c  the normal distribution function and its inverse
 * dist.c      distributions: parameters, and values of any element type
 * fill.c      which block and lane an element gets: sequential, cuda
 * rows.c      the runs of a rank's part and their global indices
 * tracker.c   where in the stream a rank's part begins, and the next operation
 * permute.c   random permutations, element by element
 * generator.c seed, offset and rule
 */
#ifndef DTN_RANDOM_H
#define DTN_RANDOM_H

#include "spec/spec.h"

/* ----------------------------------------------------------- philox.c --- */

/* The first of some blocks.  The counter moves along; with along_stream the
 * counter stays and the stream does.
 */
struct dtn_blocks {
    uint64_t counter;
    uint64_t stream;
    bool along_stream;
};

/* Write `nblocks` blocks, four words each, under the key `seed`. */
void dtn_philox(int width, uint64_t seed, const struct dtn_blocks *at,
                size_t nblocks, uint32_t *out);

/* Vector widths of this CPU, by number, narrowest first: how many there are,
 * and a name.  Every width gives the same bits.
 */
int dtn_random_widths(void);
const char *dtn_random_width_name(int width);

/* ------------------------------------------------------------- dist.c --- */

enum dtn_dist_kind {
    DTN_UNIFORM, DTN_NORMAL, DTN_LOG_NORMAL, DTN_EXPONENTIAL, DTN_BERNOULLI,
    DTN_TRUNC_NORMAL, DTN_INTEGERS, DTN_NDISTS
};

/* A distribution of elements of a type, made by one of the functions below. */
struct dtn_dist {
    enum dtn_dist_kind kind;
    enum dtensor_dtype dtype;
    int words;                    /* of 32 bits that an element takes: 1 or 2  */
    double mul, add;              /* range, from; std, mean; -1/lambda, ; p, . */
    double from, to;              /* UNIFORM, TRUNC_NORMAL: the bounds         */
    double p_low, p_range;        /* TRUNC_NORMAL: probabilities               */
    bool mirrored;                /* of the interval from -to to -from         */
    int64_t low;                  /* INTEGERS                                  */
    uint64_t range;               /* 0: 2^64                                   */
    bool remainder;               /* as CUDA's kernels do: x mod range         */
    int vector;                   /* > 1: dropout's, of so many elements       */
};

/* Parameters as in dtensor.h; `what` names the caller in messages.
 * Errors: EINVAL  a parameter, or a type that the distribution does not have
 */
int dtn_dist_uniform(struct dtn_dist *dist, enum dtensor_dtype dtype,
                     double from, double to, struct dtensor_error *err);
int dtn_dist_normal(struct dtn_dist *dist, enum dtn_dist_kind kind,
                    enum dtensor_dtype dtype, double mean, double std,
                    struct dtensor_error *err);
int dtn_dist_exponential(struct dtn_dist *dist, enum dtensor_dtype dtype,
                         double lambda, struct dtensor_error *err);
int dtn_dist_bernoulli(struct dtn_dist *dist, enum dtensor_dtype dtype,
                       double p, struct dtensor_error *err);
int dtn_dist_trunc_normal(struct dtn_dist *dist, enum dtensor_dtype dtype,
                          const double param[4], struct dtensor_error *err);
int dtn_dist_integers(struct dtn_dist *dist, enum dtensor_dtype dtype,
                      int64_t low, int64_t high, struct dtensor_error *err);
int dtn_dist_bits(struct dtn_dist *dist, enum dtensor_dtype dtype,
                  struct dtensor_error *err);
/* Which elements of a tensor of `dtype` a dropout keeps, as bool. */
int dtn_dist_keep(struct dtn_dist *dist, enum dtensor_dtype dtype, double p,
                  struct dtensor_error *err);

/* Values from the words of `nblocks` blocks, at most DTN_CHUNK_BLOCKS and
 * 4 / dist->words from each, to an array of dist->dtype.
 */
#define DTN_CHUNK_BLOCKS 512
void dtn_dist_blocks(const struct dtn_dist *dist, int width,
                     const uint32_t *words, size_t nblocks, void *out);

/* ----------------------------------------------------------- values.c --- */

void dtn_values_f32(int width, const struct dtn_dist *dist,
                    const uint32_t *words, size_t n, float *out);
void dtn_values_f64(int width, const struct dtn_dist *dist,
                    const uint32_t *words, size_t n, double *out);
void dtn_values_int(const struct dtn_dist *dist, const uint32_t *words,
                    size_t n, int64_t *out);

/* --------------------------------------------------------- quantile.c --- */

/* The probability of a normal value up to z; z of p, for p in (0, 1/2]. */
double dtn_normal_cdf(double z);
double dtn_normal_quantile(double p);

/* -------------------------------------------------------- generator.c --- */

struct dtensor_generator {
    uint64_t seed;
    int64_t offset;               /* a multiple of 4                           */
    struct dtensor_random_rule rule;
    bool kept;                    /* by a context                              */
    bool from_file;               /* the seed is still what [seed] says        */
};

/* Give the context its default generator, and take it away.   Errors: ENOMEM */
int dtn_generator_init(struct dtensor_ctx *ctx, struct dtensor_error *err);
void dtn_generator_fini(struct dtensor_ctx *ctx);

/* `gen`, or the context's when it is NULL. */
struct dtensor_generator *dtn_generator_of(const struct dtensor_mesh *mesh,
                                           struct dtensor_generator *gen);

/* ------------------------------------------------------------- fill.c --- */

/* The numbers of one operation on `numel` elements. */
struct dtn_stream {
    uint64_t seed;
    uint64_t block;               /* its first: offset / 4                     */
    int64_t numel;
    int64_t threads;              /* of the CUDA grid; 0: sequential           */
};

struct dtn_stream dtn_stream_of(const struct dtensor_random_rule *rule,
                                uint64_t seed, int64_t offset, int64_t numel);

/* Make the distribution what it is under the rule's fill: before the others. */
void dtn_fill_adapt(const struct dtensor_random_rule *rule,
                    struct dtn_dist *dist);

/* By how much an operation on `numel` elements advances the offset. */
int64_t dtn_fill_need(const struct dtensor_random_rule *rule,
                      const struct dtn_dist *dist, int64_t numel);

/* Write elements first .. first + count - 1 to `out`. */
void dtn_fill(const struct dtn_stream *stream, const struct dtn_dist *dist,
              int64_t first, int64_t count, void *out);

/* ------------------------------------------------------------- rows.c --- */

struct dtn_rows {
    struct dtn_part part;
    int last;                     /* the last dimension that is cut            */
    int64_t stride[DTENSOR_MAX_DIMS], at[DTENSOR_MAX_DIMS];
    int64_t inner;                /* elements of an index of `last`            */
    int64_t count, done;          /* elements of the part                      */
};

/* Elements local .. local + count - 1 of the part are global .. of the whole. */
struct dtn_row {
    int64_t local, global, count;
};

/* Of position `index` of the mesh; next() is false at the end. */
void dtn_rows_init(struct dtn_rows *rows, const struct dtensor_spec *spec,
                   int index);
bool dtn_rows_next(struct dtn_rows *rows, struct dtn_row *row);

/* ---------------------------------------------------------- tracker.c --- */

/* What the tracker says of one operation on one position of the mesh. */
struct dtn_draw {
    uint64_t seed;
    int64_t offset;               /* where its numbers begin                   */
    int64_t after;                /* the generator's offset afterwards         */
    int64_t numel;                /* of the tensor that is filled: the part,   */
    bool global;                  /* or the whole, of which the part is taken  */
};

/* index -1: a rank outside the mesh.   Errors: EINVAL  past the last offset */
int dtn_draw_of(const struct dtensor_generator *gen,
                const struct dtn_dist *dist, const struct dtensor_spec *spec,
                int index, struct dtn_draw *draw, struct dtensor_error *err);

/* Tracker `offset`: where a position's part begins, and where the operation
 * ends, from the generator's offset.  Sums that are too large are INT64_MAX.
 */
void dtn_offsets(const struct dtensor_random_rule *rule,
                 const struct dtn_dist *dist, const struct dtensor_spec *spec,
                 int index, int64_t *startp, int64_t *endp);

/* ---------------------------------------------------------- permute.c --- */

struct dtn_permute {
    uint64_t seed, block;
    int64_t n;
    int half_bits;
    int64_t *sorted;              /* of a small one: all of it                 */
};

/* Uses four words of every stream from `offset` on.   Errors: ENOMEM */
int dtn_permute_init(struct dtn_permute *permute, uint64_t seed,
                     int64_t offset, int64_t n, struct dtensor_error *err);
void dtn_permute_fini(struct dtn_permute *permute);
int64_t dtn_permute_at(const struct dtn_permute *permute, int64_t i);

#endif
