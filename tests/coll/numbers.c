/* numbers.c - arrays of numbers in memory of both kinds, jobs over two wires */
#include "base/compiler.h"
#include "tests/coll/numbers.h"

#include <stdlib.h>
#include <unistd.h>

int32_t *numbers(struct dtensor_ctx *ctx, size_t count, bool registered,
                 int32_t first)
{
    struct dtensor_error err;
    void *mem = NULL;
    int32_t *array;

    if (registered)
        need(dtensor_alloc(ctx, count * 4 + 4, &mem, &err) == 0, "%s",
             err.text);
    else
        mem = calloc(count + 1, 4);
    array = mem;
    for (size_t i = 0; i < count; i++)
        array[i] = first + (int32_t)i;
    return array;
}

void numbers_free(struct dtensor_ctx *ctx, int32_t *array, bool registered)
{
    if (registered)
        dtensor_free(ctx, array);
    else
        free(array);
}

void numbers_run(rank_main_f *fn, int n, bool registered, const char *claim)
{
    static const char *const wires[] = { "shm", "tcp" };

    for (size_t w = 0; w < DTN_COUNT(wires); w++) {
        const char *path = ranks_file(wires[w], n, "connect_timeout = 20s\n"
                                                   "op_timeout = 20s\n");

        setenv("DTN_CLUSTER", path, 1);
        ok(ranks_run(n, 60, fn, registered ? (void *)(uintptr_t)path : NULL,
                     NULL) == 0, "%s, %d ranks, %s memory: %s", wires[w], n,
           registered ? "registered" : "foreign", claim);
        unlink(path);
    }
}
