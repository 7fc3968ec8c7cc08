/* munge.h - credentials of munged; private to this room */
#ifndef DTN_BOOT_MUNGE_H
#define DTN_BOOT_MUNGE_H

#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define DTN_MUNGE_MAX 480         /* bytes of a credential, with NUL          */

/* What munged said of a credential. */
enum dtn_munge_said {
    DTN_MUNGE_GOOD,               /* it is of this user                       */
    DTN_MUNGE_USER,               /* it is of, or for, another user           */
    DTN_MUNGE_REPLAYED,           /* it was decoded on this host before       */
    DTN_MUNGE_EXPIRED,            /* too old, or from the future              */
    DTN_MUNGE_BAD                 /* no credential; or munged does not answer */
};

/* cred[DTN_MUNGE_MAX] = a credential that has these bytes, which only this user
 * can decode, on any host with this munge key.   Blocks: while munged works
 *
 * Errors: ECONF  this build, this host or munged cannot
 */
int dtn_munge_encode(char *cred, const void *bytes, size_t size,
                     struct dtensor_error *err);

/* The bytes of a credential that has exactly `size` of them, if it is good. */
enum dtn_munge_said dtn_munge_decode(const char *cred, void *bytes,
                                     size_t size);

#endif
