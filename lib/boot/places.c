/* places.c - room for connections that are accepted
 *
 * A stranger must not cost memory, so the places of as many as are kept exist
 * before the first one comes.  Nobody touches those that stay empty.  Ranks on
 * detours or at late listeners, who have proved themselves, may need more.
 */
#include "boot/places.h"
#include "boot/boot.h"
#include "boot/state.h"

#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

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
    return places_resize(boot, 2 * (size_t)boot->nexpected
                               + DTN_BOOT_STRANGERS + DTN_BOOT_ACCEPTS);
}

struct dtn_boot_link *dtn_boot_places_take(struct dtn_boot *boot)
{
    struct dtn_boot_link *link;

    if (boot->nchildren == boot->capacity
        && !places_resize(boot, 2 * (size_t)boot->capacity))
        return NULL;
    link = &boot->children[boot->nchildren++];
    memset(link, 0, sizeof *link);
    return link;
}
