/* words.c - suggestions for unknown names
 *
 * Users know the names of other libraries: PyTorch's mean, MPI's MPI_DOUBLE,
 * NCCL's ncclAvg.  These are not accepted, so that a program or a file has one
 * spelling, but the error names ours: "mean is avg here".  A word is first
 * compared without case, "_", "-" and its library's prefix, so
 * torch.distributed.all_reduce and MPI_Allreduce are both "allreduce".  Then it
 * is looked up in the table of synonyms; a synonym counts only if our name is
 * valid in this place.  Last come names with a similar spelling, because "mean"
 * differs from "min" in two letters and means something else.
 */
#include "base/words.h"
#include "base/compiler.h"
#include "dtensor.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#define WORD_MAX 48               /* longer words are not looked up           */

/* The other library's name, in small letters without "_" and "-"; our name. */
static const struct {
    const char *theirs, *ours;
} synonyms[] = {
    /* element types */
    { "float", "f32" }, { "single", "f32" }, { "float32", "f32" },
    { "fp32", "f32" }, { "real", "f32" }, { "real4", "f32" },
    { "double", "f64" }, { "float64", "f64" }, { "fp64", "f64" },
    { "real8", "f64" }, { "doubleprecision", "f64" },
    { "half", "f16" }, { "float16", "f16" }, { "fp16", "f16" },
    { "bfloat", "bf16" }, { "bfloat16", "bf16" }, { "brain", "bf16" },
    { "float8e4m3", "f8e4m3" }, { "float8e4m3fn", "f8e4m3" },
    { "fp8e4m3", "f8e4m3" }, { "e4m3", "f8e4m3" }, { "f8e4m3fn", "f8e4m3" },
    { "float8e5m2", "f8e5m2" }, { "fp8e5m2", "f8e5m2" },
    { "e5m2", "f8e5m2" },
    { "char", "i8" }, { "signedchar", "i8" }, { "int8", "i8" },
    { "byte", "u8" }, { "unsignedchar", "u8" }, { "uchar", "u8" },
    { "uint8", "u8" },
    { "short", "i16" }, { "int16", "i16" },
    { "ushort", "u16" }, { "unsignedshort", "u16" }, { "uint16", "u16" },
    { "int", "i32" }, { "int32", "i32" }, { "integer", "i32" },
    { "unsigned", "u32" }, { "uint", "u32" }, { "unsignedint", "u32" },
    { "uint32", "u32" },
    { "long", "i64" }, { "longlong", "i64" }, { "longint", "i64" },
    { "longlongint", "i64" }, { "int64", "i64" },
    { "ulong", "u64" }, { "unsignedlong", "u64" },
    { "unsignedlonglong", "u64" }, { "uint64", "u64" }, { "size", "u64" },
    { "boolean", "bool" }, { "cbool", "bool" }, { "logical", "bool" },
    { "cxxbool", "bool" },
    { "complex", "c64" }, { "complex64", "c64" }, { "cfloat", "c64" },
    { "cfloatcomplex", "c64" }, { "ccomplex", "c64" },
    { "complex128", "c128" }, { "cdouble", "c128" },
    { "cdoublecomplex", "c128" }, { "doublecomplex", "c128" },

    /* reductions */
    { "add", "sum" }, { "plus", "sum" }, { "addition", "sum" },
    { "total", "sum" }, { "mean", "avg" }, { "average", "avg" },
    { "mul", "prod" }, { "multiply", "prod" }, { "product", "prod" },
    { "times", "prod" }, { "minimum", "min" }, { "amin", "min" },
    { "maximum", "max" }, { "amax", "max" }, { "and", "band" },
    { "bitand", "band" }, { "bitwiseand", "band" }, { "or", "bor" },
    { "bitor", "bor" }, { "bitwiseor", "bor" }, { "xor", "bxor" },
    { "bitxor", "bxor" }, { "bitwisexor", "bxor" },

    /* operators */
    { "mm", "matmul" }, { "bmm", "matmul" }, { "gemm", "matmul" },
    { "sgemm", "matmul" }, { "dgemm", "matmul" }, { "pdgemm", "matmul" },
    { "baddbmm", "addmm" }, { "concat", "cat" }, { "concatenate", "cat" },
    { "sdpa", "attention" }, { "scaleddotproductattention", "attention" },
    { "vectornorm", "norm" }, { "mulscalar", "scale" },
    { "crossentropy", "nll_loss" },

    /* collectives */
    { "bcast", "broadcast" }, { "alltoallsingle", "all_to_all" },
    { "allgatherintotensor", "allgather" }, { "allgatherbase", "allgather" },
    { "reducescattertensor", "reduce_scatter" },
    { "reducescatterblock", "reduce_scatter" },
    { "reducescatterbase", "reduce_scatter" },
    { "alltoallw", "all_to_allv" }, { "synchronize", "barrier" },
    { "fence", "barrier" }, { "pingpong", "sendrecv" }, { "p2p", "sendrecv" },
    { "reshard", "redistribute" },

    /* placements */
    { "shard", "S" }, { "sharded", "S" }, { "split", "S" },
    { "stridedshard", "SS" }, { "blockcyclic", "C" }, { "cyclic", "C" },
    { "replicate", "R" }, { "replicated", "R" }, { "replica", "R" },
    { "duplicate", "R" }, { "broadcast", "R" }, { "partial", "P" },
    { "partialsum", "P" }, { "pending", "P" },

    /* algorithms, routes, styles, wires, switches */
    { "linear", "direct" }, { "flat", "direct" }, { "binomial", "tree" },
    { "binomialtree", "tree" }, { "doubletree", "twotree" },
    { "doublebinarytree", "twotree" }, { "recursivedoubling", "doubling" },
    { "recursivehalving", "halving" }, { "rabenseifner", "halving" },
    { "dijkstra", "min-cost" }, { "optimal", "min-cost" },
    { "colwise", "column" }, { "colwiseparallel", "column" },
    { "columnparallel", "column" }, { "rowwise", "row" },
    { "rowwiseparallel", "row" }, { "rowparallel", "row" },
    { "replicated", "replicate" },
    { "verbs", "rc" }, { "rdma", "rc" }, { "ib", "rc" },
    { "infiniband", "rc" }, { "roce", "rc" }, { "ethernet", "tcp" },
    { "socket", "tcp" }, { "sockets", "tcp" }, { "ip", "tcp" },
    { "sharedmemory", "shm" }, { "sm", "shm" }, { "vader", "shm" },
    { "true", "yes" }, { "on", "yes" }, { "1", "yes" }, { "false", "no" },
    { "off", "no" }, { "0", "no" }, { "off", "none" }, { "no", "none" },
    { "torch", "pytorch" },

    /* sections and keys of the cluster file */
    { "nodes", "hosts" }, { "hostnames", "hosts" }, { "machines", "hosts" },
    { "nodelist", "hosts" }, { "hostlist", "hosts" }, { "hosts", "nodes" },
    { "host", "nodes" }, { "machine", "nodes" }, { "machines", "nodes" },
    { "ips", "addresses" }, { "ip", "addresses" }, { "addrs", "addresses" },
    { "procs", "ranks" }, { "processes", "ranks" }, { "nproc", "ranks" },
    { "nprocpernode", "ranks" }, { "slots", "ranks" }, { "tasks", "ranks" },
    { "ntasks", "ranks" }, { "ntaskspernode", "ranks" }, { "ppn", "ranks" },
    { "ngpus", "gpus" }, { "cudavisibledevices", "gpus" },
    { "nic", "hca" }, { "nics", "hca" }, { "device", "hca" },
    { "devices", "hca" }, { "ibdevice", "hca" }, { "ibhca", "hca" },
    { "gid", "gid_index" }, { "ibgidindex", "gid_index" },
    { "cores", "cpus" }, { "affinity", "cpus" }, { "cpuset", "cpus" },
    { "network", "transport" }, { "net", "transport" },
    { "comm", "transport" }, { "communication", "transport" },
    { "devicemesh", "mesh" }, { "rng", "seed" }, { "random", "seed" },
    { "worldsize", "world_size" }, { "nranks", "world_size" },
    { "deterministic", "repro" }, { "reproducible", "repro" },
    { "masterport", "port" }, { "tc", "traffic_class" },
    { "ibtc", "traffic_class" }, { "tos", "traffic_class" },
    { "dscp", "traffic_class" }, { "sl", "service_level" },
    { "ibsl", "service_level" }, { "ibpkey", "pkey" },
    { "ibqpsperconnection", "qp_per_peer" }, { "ibretrycnt", "retry_count" },
    { "ibtimeout", "timeout" }, { "shape", "dims" }, { "meshshape", "dims" },
    { "dimnames", "dims" }, { "meshdimnames", "dims" }, { "seed", "base" },
    { "alltoall", "all_to_all" }, { "chunksize", "pipeline" },
    { "scratch", "max_scratch" }, { "route", "planner" },
};

/* Prefixes of the names of libraries. */
static const char *const prefixes[] = { "mpi_", "nccl", "rccl", "hccl" };

/* The word in the form of the synonyms: the part after the last ".", without
 * prefix, "_t", "_" and "-", in small letters.  False: it is too long.
 */
static bool word_plain(const char *word, char plain[WORD_MAX])
{
    const char *dot = strrchr(word, '.');
    size_t n, used = 0;

    word = dot ? dot + 1 : word;
    for (size_t i = 0; i < DTN_COUNT(prefixes); i++)
        if (strncasecmp(word, prefixes[i], strlen(prefixes[i])) == 0) {
            word += strlen(prefixes[i]);
            break;
        }
    n = strlen(word);
    if (n > 2 && strcasecmp(word + n - 2, "_t") == 0)
        n -= 2;
    if (n >= WORD_MAX)
        return false;
    for (size_t i = 0; i < n; i++)
        if (word[i] != '_' && word[i] != '-')
            plain[used++] = (char)tolower((unsigned char)word[i]);
    plain[used] = '\0';
    return used > 0;
}

const char *dtn_synonym(const char *word, const char *const known[])
{
    char theirs[WORD_MAX], ours[WORD_MAX];

    if (!word_plain(word, theirs))
        return NULL;
    for (size_t i = 0; known[i]; i++)
        if (word_plain(known[i], ours) && strcmp(theirs, ours) == 0)
            return known[i];
    for (size_t s = 0; s < DTN_COUNT(synonyms); s++)
        for (size_t i = 0; strcmp(synonyms[s].theirs, theirs) == 0 && known[i];
             i++)
            if (strcmp(synonyms[s].ours, known[i]) == 0)
                return known[i];
    return NULL;
}

/* Levenshtein distance of two words shorter than 63; else a large number. */
static int edit_distance(const char *a, const char *b)
{
    size_t na = strlen(a), nb = strlen(b);
    int row[64], diagonal, above;

    if (na > 62 || nb > 62)
        return 1000;
    for (size_t j = 0; j <= nb; j++)
        row[j] = (int)j;
    for (size_t i = 1; i <= na; i++) {
        diagonal = row[0];
        row[0] = (int)i;
        for (size_t j = 1; j <= nb; j++) {
            int best = diagonal + (a[i - 1] != b[j - 1]);

            above = row[j];
            if (above + 1 < best)
                best = above + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
            diagonal = above;
        }
    }
    return row[nb];
}

const char *dtn_nearest(const char *word, const char *const known[])
{
    int limit = 1 + (int)strlen(word) / 4;
    const char *best = NULL;

    for (size_t i = 0; known[i]; i++) {
        int distance = edit_distance(word, known[i]);

        if (distance <= limit && distance < (int)strlen(known[i])) {
            best = known[i];
            limit = distance - 1;
        }
    }
    return best;
}

/* "a, b or c" */
static void words_list(const char *const known[], char *buf, size_t size)
{
    size_t used = 0;

    buf[0] = '\0';
    for (size_t i = 0; known[i] && used < size; i++)
        used += (size_t)snprintf(buf + used, size - used, "%s%s",
                                 i == 0 ? "" : known[i + 1] ? ", " : " or ",
                                 known[i]);
}

char *dtensor_advise(const char *word, const char *const known[],
                     const char *expected, char *buf, size_t size)
{
    const char *meant = dtn_synonym(word, known);
    char list[400];

    if (meant) {
        snprintf(buf, size, "%s is %s here", word, meant);
        return buf;
    }
    meant = dtn_nearest(word, known);
    if (!expected)
        words_list(known, list, sizeof list);
    if (meant)
        snprintf(buf, size, "did you mean \"%s\"?", meant);
    else
        snprintf(buf, size, "expected %s", expected ? expected : list);
    return buf;
}
