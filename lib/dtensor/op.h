/* dtensor/op.h - operators: computing with tensors
 *
 * An operator on tensors that are spread over a mesh can run where the tensors
 * lie, or after some of them were redistributed.  A matrix product of S(0) by R
 * runs at once and gives S(0); of S(0) by S(1) one operand has to be gathered
 * first.  What an operator accepts is known to the library as data, one row for
 * a family of operators; from it these functions infer, without any tensor and
 * without peers, how the inputs should lie, how the outputs will lie, and what
 * it costs to bring the inputs there.  dtensor_op() then does all of it:
 * redistributes what has to move, and computes on each rank.
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

/* What an operator is told beside its tensors.  All zero is a good start; an
 * operator reads the fields that the table of dtensor_op_infer(3) names, and no
 * others.
 */
struct dtensor_op_args {
    int ndims;                 /* entries of dim                              */
    int dim[DTENSOR_MAX_DIMS]; /* tensor dimensions that it works along;      */
                               /* negative counts from the end                */
    int keep;                  /* 1: reduced dimensions stay, with size 1     */
    int ndim;                  /* entries of shape                            */
    int64_t shape[DTENSOR_MAX_DIMS]; /* of the result, in elements; of repeat */
                               /* the number of copies                        */
    int64_t count;             /* elements of a piece, of the largest, rows   */
                               /* of a table, dimensions that are normalised  */
    int64_t start;             /* first element; pad: elements before         */
    int64_t end;               /* after the last element; pad: elements after */
    int64_t step;              /* between elements; 0 is 1                    */
    double p;                  /* of a norm; INFINITY for the largest; the    */
                               /* exponent of pow; of dropout the probability */
                               /* of a 0                                      */
    double value;              /* of what is padded or filled; factor of      */
                               /* scale, addcmul, addcdiv; addend of shift;   */
                               /* factor of the scores of attention, 0 is     */
                               /* 1 / sqrt(elements of a key)                 */
    int causal;                /* 1: query i of attention sees keys 0 to i    */
    double low;                /* least result of clamp                       */
    double high;               /* largest result of clamp                     */
    double eps;                /* added under the root of layer_norm and      */
                               /* rms_norm; 0 is 1e-5                         */
    enum dtensor_dtype dtype;  /* of the result of cast                       */
    enum dtensor_op_reduction reduction; /* of a loss                         */
};

/* One operator, its inputs and what else it is told. */
struct dtensor_op_call {
    const char *op;            /* its name, such as "matmul"                  */
    int nin;                   /* number of inputs                            */
    const struct dtensor_spec *in; /* [nin] how they lie, all on one mesh     */
    struct dtensor_op_args args; /* what else it is told                      */
};

/* What was decided. */
struct dtensor_op_info {
    int nout;                  /* number of outputs                           */
    double predicted_us;       /* of bringing all inputs where they should    */
                               /* be, and of what it reduces by itself        */
    unsigned reduces;          /* mesh dimensions along which the operator    */
                               /* reduces over the ranks by itself; a bit set */
    uint64_t scratch_bytes;    /* memory of this rank that a run works with   */
                               /* beside inputs and outputs: inputs where     */
                               /* they should be, and what is kept between    */
                               /* two passes; 0 if it is not computed         */
    int kernels;               /* 1: of tensors in memory of a GPU its        */
                               /* kernels compute it; 0: the CPU, on copies   */
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

/* Infer how the operator should run: *want[i] is how input i should lie, out[i]
 * how output i will lie, for i up to info->nout.  `out` has room for `nout`.
 * What is predicted is the time to redistribute the inputs from `in` to `want`,
 * one after the other, and of allreduces that the operator makes itself, such
 * as softmax of rows that are cut; it is 0 if nothing is sent.  Decisions are
 * kept, so that asking again is cheap.  All ranks get the same answer, but for
 * scratch_bytes; what the plans of redistributes need is not among these.
 *
 * Errors: EINVAL  no such operator: names similar ones; the number, shapes,
 *                 dtypes or meshes of the inputs do not fit it; `args`; more
 *                 outputs than `nout`; placements that it cannot take as they
 *                 are, such as of a view that would cut uneven parts: says
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

/* Run an operator on the tensors in[0] to in[nin - 1] and make its outputs
 * out[0] to out[nout - 1], which lie as dtensor_op_infer() says; if it has
 * more, the last ones are not made.  Inputs that have to lie otherwise are
 * redistributed, into memory that the context keeps; they are unchanged.  Then
 * each rank computes its part of the outputs.  `args` NULL is all zero.  Floats
 * of 16 and 8 bits are computed as f32.  Of tensors in memory of a GPU kernels
 * compute the operators and types of dtensor_op_info.kernels, with the bits of
 * the CPU; for others the CPU computes, on copies.
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

/* The same into the existing tensors out[0] to out[nout - 1], whose specs are
 * those of the results.  After the first call of a kind nothing is allocated.
 * out[0] may be an input if the operator works element by element and they have
 * one spec, or if the input has to be redistributed; of an operator that works
 * in place, such as add_, it is in[0].
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
 * one output.  What may be NULL is said, and is left out then.
 *
 *   matmul         the product of the last two dimensions; the others are
 *                  broadcast
 *   linear         x times the transpose of `weight`, plus `bias` or NULL
 *   add, mul       a + b, a b element by element, broadcast
 *   scale          x times a number
 *   cast           the same elements as another dtype
 *   softmax        along dimension `dim`; negative counts from the end
 *   layer_norm     over the last dimensions, as many as `weight` has; `weight`
 *                  and `bias`, or `bias`, may be NULL: 1 and 0, and the last
 *                  dimension.  `eps` 0 is 1e-5
 *   rms_norm       the same without mean and bias
 *   embedding      the rows of `table` (2-D) that `index`, i64 or i32, names
 *   cross_entropy  of scores, whose last dimension are the classes, and the
 *                  index of the right one: minus the logarithm of its softmax,
 *                  for each row, or their sum or mean
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

/* What a context does when an operator has to redistribute an input and some
 * rank has to send for it.  All ranks must say the same.  ALLOWED at first.
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
