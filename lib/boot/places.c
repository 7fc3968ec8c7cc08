/* places.c - room for connections that are accepted
 *
 * A stranger must not cost memory, so the places of as many as are kept exist
 * before the first one comes.  Nobody touches those that stay empty.  Ranks on
 * detours, who have proved themselves, may need more.
 */
#include "boot/places.h"
#include "boot/boot.h"
#include "boot/state.h"

#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>

static bool places_resize(struct dtn_boot *boot, size_t n)
{
    struct dtn_boot_link *children;
    struct pollfd *polls;

    children = realloc(boot->children, n * sizeof *children);
    if (!children)
        return false;
    boot->children = children;
    polls = realloc(boot->polls, (n + DTN_BOOT_FIXED_POLLS) * sizeof *polls);
    if (!polls)
        return false;
    boot->polls = polls;
    boot->capacity = (int)n;
    return true;
}

/* The places of those that are dropped are free after the turn. */
bool dtn_boot_places_make(struct dtn_boot *boot)
{
    return places_resize(boot, 3 * (size_t)boot->nexpected
                               + DTN_BOOT_STRANGERS + DTN_BOOT_ACCEPTS);
}

bool dtn_boot_places_more(struct dtn_boot *boot)
{
    return places_resize(boot, 2 * (size_t)boot->capacity);
}
