/* windows.h - memory of each rank for each other rank, and its contents */
#ifndef TESTS_TRANSPORT_WINDOWS_H
#define TESTS_TRANSPORT_WINDOWS_H

#include "transport/transport.h"
#include "tests/support/wire.h"

#include <stddef.h>
#include <stdint.h>

#define MARGIN 64                 /* bytes of a window besides its size       */

struct windows {
    unsigned char *in[WIRE_MAX];  /* [size + 2 * MARGIN] peer r writes here   */
    unsigned char *out;           /* [size + 2 * MARGIN] to put from          */
    struct dtn_remote mine[WIRE_MAX];         /* of in[r]                     */
    struct dtn_remote theirs[WIRE_MAX];       /* peer r's window for us       */
};

/* Collective.  close() begins with a barrier. */
void windows_open(struct wire *w, struct windows *win, size_t size);
void windows_close(struct wire *w, struct windows *win);

/* Bytes that differ from seed to seed. */
void wire_fill(unsigned char *mem, size_t size, uint32_t seed);

/* The index of the first byte that is not of the pattern, or size. */
size_t wire_differs(const unsigned char *mem, size_t size, uint32_t seed);

/* A seed for what one rank sends to another in a round. */
uint32_t wire_seed(int from, int to, int round);

#endif
