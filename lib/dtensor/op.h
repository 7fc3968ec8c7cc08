/* dtensor/op.h - operators: computing with tensors
 *
 * An operator can run on tensors in the placements that they have, or after
 * some of them were redistributed.  A matrix product of S(0) by R runs at once
 * and gives S(0); for S(0) by S(1) one operand has to be gathered first.  The
 * library has a table of the placements that operators accept, with a row for
 * each family.  From it these functions infer, without tensors and without
 * peers, the placements that the inputs need, those that the outputs get, and
 * the cost of redistributing the inputs.  dtensor_op() does all of it:
 * it redistributes the inputs, and computes on each rank.
 */
#ifndef DTENSOR_OP_H
#define DTENSOR_OP_H

#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------ operators --- */

/* All in this section: Collective: no.   Blocks: no. */

/* How a loss of several elements becomes a result. */
enum dtensor_op_reduction {
    DTENSOR_OP_NONE,           /* one loss for each element                   */
    DTENSOR_OP_SUM,            /* their sum                                   */
    DTENSOR_OP_MEAN            /* their mean                                  */
};

/* The arguments of an operator that are not tensors.  Set all other fields to
 * zero: an operator reads only those that the table of dtensor_op_infer(3)
 * names.
 */
struct dtensor_op_args {
    int ndims;                 /* entries of dim                              */
    int dim[DTENSOR_MAX_DIMS]; /* tensor dimensions that it works along;      */
                               /* negative counts from the end                */
    int keep;                  /* 1: reduced dimensions stay, with size 1     */
    int ndim;                  /* entries of shape                            */
    int64_t shape[DTENSOR_MAX_DIMS]; /* of the result, in elements; of repeat */
                               /* the number of copies                        */
    int64_t count;             /* elements of a piece; how many largest ones; */
                               /* rows of a table; dimensions to normalise    */
    int64_t start;             /* first element; pad: elements before         */
    int64_t end;               /* after the last element; pad: elements after */
    int64_t step;              /* between elements; 0 is 1                    */
    double p;                  /* order of a norm, INFINITY: the largest;     */
                               /* exponent of pow; probability of a 0 in      */
                               /* dropout                                     */
    double value;              /* that pad and fill write; factor of          */
                               /* scale, addcmul, addcdiv; addend of shift;   */
                               /* factor of the scores of attention, 0 is     */
                               /* 1 / sqrt(elements of a key)                 */
    int causal;                /* 1: query i of attention sees keys 0 to i    */
    double low;                /* least result of clamp                       */
    double high;               /* largest; if one is NaN, all results are NaN */
    double eps;                /* added under the root of layer_norm and      */
                               /* rms_norm; 0 is 1e-5                         */
    enum dtensor_dtype dtype;  /* of the result of cast                       */
    enum dtensor_op_reduction reduction; /* of a loss                         */
};

/* One operator with the specs of its inputs and its arguments. */
struct dtensor_op_call {
    const char *op;            /* its name, such as "matmul"                  */
    int nin;                   /* number of inputs                            */
    const struct dtensor_spec *in; /* [nin] their specs, all on one mesh      */
    struct dtensor_op_args args; /* its arguments                             */
};

/* The result of dtensor_op_infer(). */
struct dtensor_op_info {
    int nout;                  /* number of outputs                           */
    double predicted_us;       /* time to redistribute all inputs, and of the */
                               /* allreduces that the operator itself makes   */
    unsigned reduces;          /* mesh dimensions along which the operator    */
                               /* itself makes allreduces; a bit set          */
    uint64_t scratch_bytes;    /* memory that a run needs on this rank, in    */
                               /* addition to inputs and outputs: for         */
                               /* redistributed inputs, and between two       */
                               /* passes; 0 if it is not computed             */
    int kernels;               /* for tensors in memory of a GPU: 1: kernels  */
                               /* compute it; 0: the CPU, on copies           */
    const char *why;           /* why these placements; static storage        */
};

/* Read "dim=0+1,keep=1" into *args, which is zeroed first.  The words are the
 * names of the fields; dim and shape have several numbers, dim=0+1 and
 * shape=4x6, and p may be inf.
 *
 * Errors: EINVAL  a wrong word or number: says which was meant, or expected
 * Semantics: its own.
 */
int dtensor_op_args_parse(const char *text, struct dtensor_op_args *args,
                          struct dtensor_error *err);

/* Infer how the operator should run: want[i] is the spec that input i needs,
 * out[i] the spec of output i, 0 <= i < info->nout.  `out` has room for `nout`.
 * The predicted time is that of redistributing the inputs from `in` to `want`,
 * one after the other, and of the allreduces that the operator itself makes,
 * such as softmax of sharded rows; it is 0 if nothing is sent.  An output
 * becomes a Partial, though no input is one, if the inputs lie so already, or
 * if this is cheapest together with the reduce-scatter that is left to do.
 * Results are cached, so a second call is cheap.  All get the same one, except
 * scratch_bytes, which excludes the scratch of the plans of redistributes.
 *
 * Errors: EINVAL  no such operator: names similar ones; the number, shapes,
 *                 dtypes or meshes of the inputs do not fit it; `args`; more
 *                 outputs than `nout`; placements that it cannot take as they
 *                 are, such as of a view that would split uneven parts: says
 *                 which redistribute would help;  ENOMEM
 * Semantics: DTensor's sharding propagation (op strategies, least cost).
 */
int dtensor_op_infer(const struct dtensor_op_call *call,
                     struct dtensor_spec want[], int nout,
                     struct dtensor_spec out[], struct dtensor_op_info *info,
                     struct dtensor_error *err);

/* Print what dtensor_op_infer() decides and from what: the rows that the
 * operator accepts along one mesh dimension, the cheapest combinations of them
 * with their costs, and why one was taken.
 *
 * Errors: as dtensor_op_infer();  ESYS  cannot write to `stream`
 * Semantics: its own.
 */
int dtensor_op_print(const struct dtensor_op_call *call, FILE *stream,
                     struct dtensor_error *err);

/* The name of operator `i`, 0 and up; NULL after the last.
 *
 * Owns:   static storage.
 */
const char *dtensor_op_name(int i);

/* ---------------------------------------------------------- computing --- */

/* Run an operator on the tensors in[0] to in[nin - 1] and make its first `nout`
 * outputs out[0] to out[nout - 1], with the specs of dtensor_op_infer().
 * Inputs that need other placements are redistributed into memory that the
 * context keeps; the tensors of the caller do not change.  Then each rank
 * computes its part of the outputs.  `args` NULL is all zero.  Floats of 16 and
 * 8 bits are computed as f32.  If the tensors are in memory of a GPU, kernels
 * compute the operators and types for which dtensor_op_info.kernels is 1, with
 * the bits of the CPU; the CPU computes all others, on copies.
 *
 * Collective: yes - all ranks of the mesh, in the same order, if an input has
 *         to be redistributed, or the operator reduces over the ranks (see
 *         dtensor_op_info.reduces); else nothing is sent.
 * Blocks: until that is done.
 * Owns:   out[0] to out[nout - 1] are the caller's, for dtensor_destroy();
 *         untouched on failure.
 * Errors: EINVAL  as dtensor_op_infer(); an operator that works in place, or is
 *                 not computed here; more outputs than there are; an element of
 *                 an index that is out of range, on the ranks that hold it;
 *                 dtensor_op_implied()
 *         and those of dtensor_allreduce()
 * Semantics: the dispatch of DTensor.
 */
int dtensor_op(const char *op, int nin, const struct dtensor *const in[],
               const struct dtensor_op_args *args, int nout,
               struct dtensor *out[], struct dtensor_error *err);

/* The same into the existing tensors out[0] to out[nout - 1], whose specs must
 * be those of the results.  After the first call of a kind nothing is
 * allocated.  out[0] may be an input if the operator works element by element
 * and both have the same spec, or if the input is redistributed.  For an
 * operator that works in place, such as add_, out[0] must be in[0].
 *
 * Collective, blocks: as dtensor_op().
 * Errors: EINVAL  an output has another spec, or is an input that is still
 *                 read;  and those of dtensor_op(), after which the outputs
 *                 may have any content if the cause was an index or a peer
 * Semantics: the out= variants of PyTorch; Tensor.add_ and its like.
 */
int dtensor_op_into(const char *op, int nin, const struct dtensor *const in[],
                    const struct dtensor_op_args *args, int nout,
                    struct dtensor *const out[], struct dtensor_error *err);

/* The operators that most programs use, as functions; each is dtensor_op() with
 * one output.  Only arguments for which that is said may be NULL.
 *
 *   matmul         the product of the last two dimensions; the others are
 *                  broadcast
 *   linear         x times the transpose of `weight`, plus `bias` or NULL
 *   add, mul       a + b, a b element by element, broadcast
 *   scale          x times a number
 *   cast           the same elements as another dtype
 *   softmax        along dimension `dim`; negative counts from the end
 *   layer_norm     over the last dimensions, as many as `weight` has.  `bias`
 *                  may be NULL: 0; `weight` and `bias` may be NULL: 1 and 0,
 *                  over the last dimension.  `eps` 0 is 1e-5
 *   rms_norm       the same without mean and bias
 *   embedding      the rows of `table` (2-D) that `index`, i64 or i32, names
 *   cross_entropy  for each row of `scores`, whose last dimension is the
 *                  classes: minus the logarithm of the softmax at the class
 *                  `target`; or the sum or mean of these
 *
 * Collective, blocks: as dtensor_op().
 * Owns:   *tp is the caller's, for dtensor_destroy().
 * Errors: as dtensor_op()
 * Semantics: torch.matmul, torch.nn.functional.linear and so on, of DTensors.
 */
int dtensor_matmul(const struct dtensor *a, const struct dtensor *b,
                   struct dtensor **tp, struct dtensor_error *err);
int dtensor_linear(const struct dtensor *x, const struct dtensor *weight,
                   const struct dtensor *bias, struct dtensor **tp,
                   struct dtensor_error *err);
int dtensor_add(const struct dtensor *a, const struct dtensor *b,
                struct dtensor **tp, struct dtensor_error *err);
int dtensor_mul(const struct dtensor *a, const struct dtensor *b,
                struct dtensor **tp, struct dtensor_error *err);
int dtensor_scale(const struct dtensor *x, double factor, struct dtensor **tp,
                  struct dtensor_error *err);
int dtensor_cast(const struct dtensor *x, enum dtensor_dtype dtype,
                 struct dtensor **tp, struct dtensor_error *err);
int dtensor_softmax(const struct dtensor *x, int dim, struct dtensor **tp,
                    struct dtensor_error *err);
int dtensor_layer_norm(const struct dtensor *x, const struct dtensor *weight,
                       const struct dtensor *bias, double eps,
                       struct dtensor **tp, struct dtensor_error *err);
int dtensor_rms_norm(const struct dtensor *x, const struct dtensor *weight,
                     double eps, struct dtensor **tp,
                     struct dtensor_error *err);
int dtensor_embedding(const struct dtensor *table, const struct dtensor *index,
                      struct dtensor **tp, struct dtensor_error *err);
int dtensor_cross_entropy(const struct dtensor *scores,
                          const struct dtensor *target,
                          enum dtensor_op_reduction reduction,
                          struct dtensor **tp, struct dtensor_error *err);

/* What a context does if an operator has to redistribute an input and a rank
 * must send data for that.  All ranks must set the same.  Initially ALLOWED.
 *
 * Collective: no.   Blocks: no.
 * Errors: EINVAL  no such value;  ENOMEM
 * Semantics: its own.
 */
enum dtensor_implied {
    DTENSOR_IMPLIED_ALLOWED,   /* redistributes it                            */
    DTENSOR_IMPLIED_WARNED,    /* the same, and warns once for each kind of   */
                               /* call, if DTN_LOG is warn or more            */
    DTENSOR_IMPLIED_REFUSED    /* EINVAL, before anything is sent             */
};
int dtensor_op_implied(struct dtensor_ctx *ctx, enum dtensor_implied implied,
                       struct dtensor_error *err);

/* Statistics of the LRU cache of decisions of a context. */
struct dtensor_op_cache {
    uint64_t hits;             /* calls that found their decision             */
    uint64_t misses;           /* decisions made                              */
    uint64_t dropped;          /* decisions dropped to keep within the limit, */
                               /* the least recently used first               */
    int entries;               /* decisions in the cache                      */
    int limit;                 /* most decisions that it keeps                */
};
void dtensor_op_cache(const struct dtensor_ctx *ctx,
                      struct dtensor_op_cache *cache);

#ifdef __cplusplus
}
#endif
#endif
