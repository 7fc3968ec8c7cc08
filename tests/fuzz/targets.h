/* targets.h - what reads bytes of others, as functions of some bytes
 *
 * Each aborts if what it reads is taken wrongly: an accepted text must come
 * back as it was, a refused one must have a reason.  The sanitizers find the
 * rest.
 */
#ifndef TESTS_FUZZ_TARGETS_H
#define TESTS_FUZZ_TARGETS_H

#include <stddef.h>
#include <stdint.h>

typedef void fuzz_f(const uint8_t *data, size_t size);

fuzz_f fuzz_cluster;              /* a cluster file                           */
fuzz_f fuzz_hosts;                /* a list of hosts, or of counts            */
fuzz_f fuzz_placements;           /* placements, and specs                    */
fuzz_f fuzz_styles;               /* a style of a plan                        */
fuzz_f fuzz_strangers;            /* what comes to a listener                 */
fuzz_f fuzz_members;              /* frames of a rank that has proved itself  */
fuzz_f fuzz_sealed;               /* the same on a sealed connection          */
fuzz_f fuzz_news;                 /* frames after all have joined             */
fuzz_f fuzz_stream;               /* a connection of tcp                      */
fuzz_f fuzz_baseline;             /* results that dtensor-bench compares with */

struct fuzz_target {
    const char *name;             /* of its folder in tests/fuzz/corpus       */
    fuzz_f *run;                  /* reads some bytes                         */
};
extern const struct fuzz_target fuzz_targets[];   /* NULL ends it             */

#endif
