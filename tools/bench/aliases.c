/* aliases.c - the names that nccl-tests and OSU use for our tests and options
 *
 * "all_reduce_perf", "osu_allreduce" and "all-reduce" all mean allreduce: the
 * prefixes and suffixes of their programs are dropped, and dashes are ignored.
 */
#include "tools/bench/aliases.h"
#include "tools/bench/tests.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

struct alias {
    const char *theirs, *ours;
};

static const struct alias alias_dtypes[] = {
    { "float", "f32" }, { "double", "f64" }, { "half", "f16" },
    { "bfloat16", "bf16" }, { "float16", "f16" }, { "float32", "f32" },
    { "float64", "f64" }, { "int8", "i8" }, { "uint8", "u8" },
    { "char", "i8" }, { "int32", "i32" }, { "int", "i32" },
    { "uint32", "u32" }, { "int64", "i64" }, { "uint64", "u64" },
    { "f8e4m3fn", "f8e4m3" }, { "fp8_e4m3", "f8e4m3" },
    { "fp8_e5m2", "f8e5m2" }, { NULL, NULL }
};

static const struct alias alias_redops[] = {
    { "mean", "avg" }, { "average", "avg" }, { "product", "prod" },
    { NULL, NULL }
};

static const struct alias alias_tests[] = {
    { "bcast", "broadcast" }, { "alltoall", "all_to_all" },
    { NULL, NULL }
};

static const char to_start[] = "ranks are processes here: start them by "
    "--local N, srun or dtensor-run";

static const struct alias alias_options[] = {
    { "-x", "warm-up iterations are -w N here" },
    { "--warmup_iters", "that is -w N here" },
    { "--agg_iters", "iterations are -n N here" },
    { "-t", to_start }, { "--nthreads", to_start },
    { "-g", to_start }, { "--ngpus", to_start },
    { "-J", "that is --json FILE here" },
    { "--output_file", "that is --json FILE here" },
    { "-N", "that is --loop N here" },
    { "--run_cycles", "that is --loop N here" },
    { "-z", "calls block unless --nonblocking is given" },
    { "--blocking", "calls block unless --nonblocking is given" },
    { "-G", "that is --persistent here" },
    { "--cudagraph", "that is --persistent here" },
    { "-T", "that is [transport] op_timeout of the cluster file here" },
    { "--timeout", "that is [transport] op_timeout of the cluster file here" },
    { "-a", "the slowest rank of each iteration counts here" },
    { "--average", "the slowest rank of each iteration counts here" },
    { NULL, NULL }
};

static const char *alias_find(const struct alias *alias, const char *word,
                              const char *otherwise)
{
    for (; alias->theirs; alias++)
        if (strcasecmp(alias->theirs, word) == 0)
            return alias->ours;
    return otherwise;
}

const char *alias_dtype(const char *word)
{
    return alias_find(alias_dtypes, word, word);
}

const char *alias_redop(const char *word)
{
    return alias_find(alias_redops, word, word);
}

const char *alias_option(const char *word)
{
    char name[40];

    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    for (const struct alias *alias = alias_options; alias->theirs; alias++)
        if (strcmp(alias->theirs, name) == 0)
            return alias->ours;
    return NULL;
}

/* Without "osu_", "_perf", dashes and underscores. */
static void alias_bare(const char *word, char bare[40])
{
    size_t n = 0, length;

    if (strncmp(word, "osu_", 4) == 0)
        word += 4;
    length = strlen(word);
    if (length > 5 && strcmp(word + length - 5, "_perf") == 0)
        length -= 5;
    for (size_t i = 0; i < length && n < 39; i++)
        if (word[i] != '_' && word[i] != '-')
            bare[n++] = word[i];
    bare[n] = '\0';
}

const char *alias_test(const char *word)
{
    char bare[40], name[40];
    const char *ours;

    alias_bare(word, bare);
    ours = alias_find(alias_tests, bare, NULL);
    for (int i = 0; i < bench_ntests && !ours; i++) {
        alias_bare(bench_tests[i].name, name);
        if (strcasecmp(name, bare) == 0)
            ours = bench_tests[i].name;
    }
    return ours ? ours : word;
}
