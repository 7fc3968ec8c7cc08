/* array.c - arrays that grow
 *
 * An array is a pointer, a count and a capacity.  A full array of 8 elements
 * that gets one more grows to 16, so 1000 appends call realloc() 8 times.
 */
#include "base/array.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

bool dtn_array_reserve(void *arrayp, int *capacity, int n, size_t size)
{
    int room = *capacity > INT_MAX / 2 ? INT_MAX
             : *capacity > 0 ? 2 * *capacity : 8;
    void *array;

    if (n <= *capacity)
        return true;
    if (room < n)
        room = n;
    memcpy(&array, arrayp, sizeof array);
    if ((size_t)room > SIZE_MAX / size)
        return false;
    array = realloc(array, (size_t)room * size);
    if (!array)
        return false;
    memcpy(arrayp, &array, sizeof array);
    *capacity = room;
    return true;
}
