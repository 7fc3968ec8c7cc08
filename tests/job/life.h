/* life.h - a whole life in steps: join, all kinds of calls, leave
 *
 * For tests in which something fails: a step that fails must return an error
 * text and must leave nothing allocated.  A step that succeeds has the right
 * values.
 */
#ifndef TESTS_LIFE_H
#define TESTS_LIFE_H

#include "dtensor.h"

#include <stdbool.h>

int open_fds(void);

enum { COUNT = 5000, ROWS = 9, COLUMNS = 7 };

enum name {
    CTX, WORLD, GRID, SLICE, FLAT, CUT, JOINED, MEM, ROWWISE, COLUMNWISE, TERMS,
    WHOLE, GIVEN, SLABS, CHECKED, PARTS, NAMES
};

struct life {
    const char *path;               /* of the cluster file                   */
    union made {
        void *any;
        struct dtensor_ctx *ctx;
        const struct dtensor_mesh *mesh;
        struct dtensor *tensor;
    } made[NAMES];                  /* &untouched until it is                */
    struct dtensor_spec spec;
    float buffer[2][COUNT];         /* in, out                               */
    const char *wrong;              /* values of a step that succeeded       */
};

/* A life in which all went well ends with these. */
bool life_right(const struct life *life);

struct step {
    const char *name;
    int (*run)(struct life *life, struct dtensor_error *err);
    bool collective;
};

enum { NSTEPS = 35 };
extern const struct step steps[NSTEPS];

void life_begin(struct life *life, const char *path);
void life_end(struct life *life);

/* Run one step; on failure nothing may have been made, and it must say so. */
int life_step(struct life *life, const struct step *step,
              struct dtensor_error *err, const char **wrong);
bool says_memory(const struct dtensor_error *err);

#endif
