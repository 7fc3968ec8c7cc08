/* test_foreign_names.c - names of other libraries are answered with ours
 *
 * A user of MPI, NCCL or PyTorch writes "MPI_SUM", "float32" or "all_reduce".
 * Every parser that refuses such a word must name the word to write instead.
 *
 * Without this test, a new parser or a new word could lose that hint, and the
 * error would only say what is wrong.
 */
#include "dtensor.h"
#include "tests/support/tap.h"

#include <string.h>

static const char *const collectives[] = {
    "allreduce", "reduce", "broadcast", "allgather", "allgatherv",
    "reduce_scatter", "all_to_all", "all_to_allv", "gather", "scatter",
    "barrier", "sendrecv", "redistribute", NULL
};

/* "torch.float32 is f32 here" and so on, for words with a space between. */
static void answers_dtype(const char *ours, const char *word)
{
    enum dtensor_dtype dtype = DTENSOR_BOOL;
    struct dtensor_error err;
    char want[120];

    snprintf(want, sizeof want, "dtype: unknown \"%s\"; %s is %s here", word,
             word, ours);
    ok(dtensor_dtype_parse(word, &dtype, &err) == DTENSOR_EINVAL &&
       dtype == DTENSOR_BOOL && strcmp(err.text, want) == 0, "%s", want);
}

static void answers_redop(const char *ours, const char *word)
{
    enum dtensor_redop op = DTENSOR_BXOR;
    struct dtensor_error err;
    char want[120];

    snprintf(want, sizeof want, "reduction: unknown \"%s\"; %s is %s here",
             word, word, ours);
    ok(dtensor_redop_parse(word, &op, &err) == DTENSOR_EINVAL &&
       op == DTENSOR_BXOR && strcmp(err.text, want) == 0, "%s", want);
}

static void answers_collective(const char *ours, const char *word)
{
    char want[120], got[120];

    snprintf(want, sizeof want, "%s is %s here", word, ours);
    ok(strcmp(dtensor_advise(word, collectives, NULL, got, sizeof got), want)
       == 0, "%s", want);
}

static void each(const char *ours, const char *words,
                 void answers(const char *ours, const char *word))
{
    char text[300], *save = NULL;

    snprintf(text, sizeof text, "%s", words);
    for (char *w = strtok_r(text, " ", &save); w; w = strtok_r(NULL, " ",
                                                               &save))
        answers(ours, w);
}

static void test_dtypes(void)
{
    each("f32", "float float32 fp32 torch.float torch.float32 MPI_FLOAT "
         "ncclFloat ncclFloat32 single np.float32 FLOAT F32", answers_dtype);
    each("f64", "double float64 torch.double MPI_DOUBLE ncclDouble",
         answers_dtype);
    each("f16", "half float16 torch.half ncclHalf fp16", answers_dtype);
    each("bf16", "bfloat16 torch.bfloat16 ncclBfloat16 bfloat", answers_dtype);
    each("f8e4m3", "torch.float8_e4m3fn e4m3 ncclFloat8e4m3", answers_dtype);
    each("f8e5m2", "torch.float8_e5m2 ncclFloat8e5m2", answers_dtype);
    each("i8", "int8 char int8_t MPI_CHAR ncclInt8", answers_dtype);
    each("u8", "uint8 byte uint8_t torch.uint8 MPI_BYTE", answers_dtype);
    each("i16", "short int16_t", answers_dtype);
    each("i32", "int int32 int32_t torch.int32 MPI_INT ncclInt",
         answers_dtype);
    each("i64", "long int64_t torch.long MPI_LONG MPI_INT64_T ncclInt64",
         answers_dtype);
    each("u64", "uint64_t size_t MPI_UNSIGNED_LONG ncclUint64",
         answers_dtype);
    each("bool", "boolean torch.bool _Bool MPI_C_BOOL", answers_dtype);
    each("c64", "complex64 torch.cfloat MPI_C_FLOAT_COMPLEX", answers_dtype);
    each("c128", "complex128 torch.complex128", answers_dtype);
}

static void test_redops(void)
{
    each("avg", "mean average ncclAvg ReduceOp.AVG", answers_redop);
    each("sum", "add plus MPI_SUM torch.distributed.ReduceOp.SUM ncclSum",
         answers_redop);
    each("prod", "mul multiply MPI_PROD ncclProd", answers_redop);
    each("max", "maximum MPI_MAX ncclMax amax", answers_redop);
    each("min", "minimum MPI_MIN MIN", answers_redop);
    each("band", "and MPI_BAND bitwise_and", answers_redop);
}

static void test_collectives(void)
{
    each("allreduce", "all_reduce all-reduce MPI_Allreduce ncclAllReduce "
         "AllReduce torch.distributed.all_reduce", answers_collective);
    each("allgather", "all_gather MPI_Allgather all_gather_into_tensor "
         "ncclAllGather", answers_collective);
    each("allgatherv", "MPI_Allgatherv all_gather_v", answers_collective);
    each("reduce_scatter", "reducescatter ncclReduceScatter "
         "reduce_scatter_tensor MPI_Reduce_scatter_block", answers_collective);
    each("all_to_all", "alltoall MPI_Alltoall all-to-all all_to_all_single",
         answers_collective);
    each("all_to_allv", "alltoallv MPI_Alltoallv", answers_collective);
    each("broadcast", "bcast MPI_Bcast ncclBroadcast", answers_collective);
    each("barrier", "MPI_Barrier", answers_collective);
}

/* A synonym counts only where its answer is a word; then come the words that
 * are nearly alike, then the list.
 */
static void test_advice(void)
{
    static const char *const algorithms[] = { "ring", "doubling", NULL };
    static const char *const ops[] = { "sum", "avg", "min", NULL };
    char buf[100], small[8];

    ok(strcmp(dtensor_advise("double", algorithms, NULL, buf, sizeof buf),
              "expected ring or doubling") == 0, "double is no type there: %s",
       buf);
    ok(strcmp(dtensor_advise("sun", ops, NULL, buf, sizeof buf),
              "did you mean \"sum\"?") == 0, "sun: %s", buf);
    ok(strcmp(dtensor_advise("median", ops, NULL, buf, sizeof buf),
              "expected sum, avg or min") == 0, "median: %s", buf);
    ok(strcmp(dtensor_advise("median", ops, "one of three", buf, sizeof buf),
              "expected one of three") == 0, "or as the caller says: %s", buf);
    ok(strcmp(dtensor_advise("mean", ops, NULL, small, sizeof small),
              "mean is") == 0, "cut where there is no more room: %s", small);
    ok(strcmp(dtensor_advise("", ops, NULL, buf, sizeof buf),
              "expected sum, avg or min") == 0
       && strcmp(dtensor_advise("MPI_", ops, NULL, buf, sizeof buf),
                 "expected sum, avg or min") == 0, "no word at all: %s", buf);
}

int main(void)
{
    test_dtypes();
    test_redops();
    test_collectives();
    test_advice();
    return done();
}
