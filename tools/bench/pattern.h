/* pattern.h - element values whose reductions are exact in any order */
#ifndef BENCH_PATTERN_H
#define BENCH_PATTERN_H

#include "dtensor.h"

#include <stdbool.h>

#define PATTERN_PERIOD 1021       /* prime: no block length is a multiple     */
#define PATTERN_REDUCED (-1)      /* the source "reduction over all sources"  */
#define PATTERN_NO_OP DTENSOR_NREDOPS

/* What `nsources` ranks put in and what reductions over them give. */
struct patterns {
    enum dtensor_dtype dtype;     /* type of an element                       */
    enum dtensor_redop op;        /* reduction; PATTERN_NO_OP: none           */
    int nsources;                 /* ranks that contribute                    */
    size_t elem_bytes;            /* bytes of an element                      */
    unsigned char *image;         /* [nsources + 1][2 * PATTERN_PERIOD]       */
};

/* Every value is a multiple of `scale` (1 or more).  false: out of memory. */
bool patterns_init(struct patterns *p, enum dtensor_dtype dtype,
                   enum dtensor_redop op, int nsources, int scale);
void patterns_fini(struct patterns *p);

/* Elements index..index+count-1 of what `source` holds in iteration `iter`:
 * written, or compared with `got`; the latter returns how many are wrong, and
 * in *firstp (if any) the first, counted from 0.
 */
void pattern_fill(const struct patterns *p, int source, int64_t iter,
                  uint64_t index, size_t count, void *out);
size_t pattern_check(const struct patterns *p, int source, int64_t iter,
                     uint64_t index, size_t count, const void *got,
                     size_t *firstp);
double pattern_value(const struct patterns *p, int source, int64_t iter,
                     uint64_t index);

#endif
