/* tests.h - the table of tests */
#ifndef BENCH_TESTS_H
#define BENCH_TESTS_H

#include "dtensor.h"

#include <stdbool.h>

struct bench;
struct bench_case;
struct bench_job;
struct flat;

#define TEST_GROUP (-1)           /* as many blocks as the group has ranks    */

/* The part of a result that came from one source. */
struct segment {
    int source;                   /* position, or PATTERN_REDUCED             */
    uint64_t from;                /* index of its first element in `in` there */
    size_t at;                    /* ... and in `out` here                    */
    size_t count;                 /* elements                                 */
};

enum test_flags {
    TEST_REDUCES = 1,             /* takes a redop                            */
    TEST_IN_PLACE = 2,            /* out is in, and only the root fills it    */
    TEST_UNEVEN = 4               /* blocks have unequal sizes                */
};

struct bench_test {
    const char *name;             /* as on the command line                   */
    enum dtensor_collective coll; /* DTENSOR_NCOLLECTIVES: not a collective   */
    unsigned flags;               /* enum test_flags                          */
    int in_blocks;                /* blocks of the input: 0, 1 or TEST_GROUP  */
    int out_blocks;               /* blocks of the output                     */
    double (*factor)(int group);  /* busbw = algbw x factor; NULL: the job's  */
    /* make the job of a case */
    int (*open)(struct bench *b, const struct bench_case *c,
                struct bench_job **jobp, struct dtensor_error *err);
    /* the call of a collective */
    int (*call)(struct flat *f, struct dtensor_error *err);
    /* segment `s` of the expected result; false: no more */
    bool (*expect)(const struct flat *f, int s, struct segment *seg);
};

extern const struct bench_test bench_tests[];
extern const int bench_ntests;

const struct bench_test *test_find(const char *name);

/* The count argument for `bytes`, at least 1, and the bytes it makes. */
void test_size(const struct bench_test *test, uint64_t bytes,
               size_t elem_bytes, int group, struct bench_case *c);

/* Elements of block r at position p of the group. */
size_t test_block(const struct flat *f, int p, int r);

#endif
