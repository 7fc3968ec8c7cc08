/* long_ways.h - bytes from rank 0 to rank 1, by three kinds of call */
#ifndef TESTS_LONG_WAYS_H
#define TESTS_LONG_WAYS_H

#include "dtensor.h"
#include "tests/support/world.h"

#include <stddef.h>

static int long_broadcast(struct world *world, void *data, size_t bytes)
{
    return dtensor_broadcast(world->mesh, 0, data, bytes, DTENSOR_U8,
                             &world->err);
}

static int long_message(struct world *world, void *data, size_t bytes)
{
    return world->rank == 0
         ? dtensor_send(world->mesh, 1, data, bytes, DTENSOR_U8, &world->err)
         : dtensor_recv(world->mesh, 0, data, bytes, DTENSOR_U8, &world->err);
}

static int long_request(struct world *world, void *data, size_t bytes)
{
    const struct dtensor_call call = { .coll = DTENSOR_BROADCAST,
                                       .dtype = DTENSOR_U8, .count = bytes };
    struct dtensor_request *request;
    int rc = dtensor_call_start(world->mesh, &call, data, data, &request,
                                &world->err);

    return rc == 0 ? dtensor_wait(request, &world->err) : rc;
}

static const struct long_way {
    const char *name;
    int (*call)(struct world *world, void *data, size_t bytes);
} long_ways[] = {
    { "broadcast", long_broadcast },
    { "message", long_message },
    { "a started broadcast", long_request },
};

enum { LONG_WAYS = sizeof long_ways / sizeof *long_ways };

#endif
