/* room.h - arrays that grow */
#ifndef DTN_TAPE_ROOM_H
#define DTN_TAPE_ROOM_H

#include "dtensor.h"

#include <stddef.h>

/* Room for one more of `size` bytes, after `used`, in an array of *roomp; it
 * may move.   Errors: ENOMEM
 */
int dtn_tape_room(void **arrayp, int used, int *roomp, size_t size,
                  struct dtensor_error *err);

#endif
