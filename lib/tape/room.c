/* room.c - arrays that grow */
#include "tape/room.h"
#include "base/error.h"

#include <stdlib.h>

int dtn_tape_room(void **arrayp, int used, int *roomp, size_t size,
                  struct dtensor_error *err)
{
    const int room = *roomp > 0 ? 2 * *roomp : 16;
    void *array;

    if (used < *roomp)
        return 0;
    array = realloc(*arrayp, (size_t)room * size);
    if (!array)
        return dtn_fail_nomem(err, "tape", (size_t)room * size);
    *arrayp = array;
    *roomp = room;
    return 0;
}
