/* joined.c - tells the test which ranks of a job that it plays have joined
 *
 * Nothing that a rank says or returns shows that it has joined and waits for
 * others.  So the linker sends a function that each rank calls in each step of
 * its loop here: see Makefile.inc.
 */
#include "boot/gather.h"
#include "boot/state.h"
#include "tests/boot/boot_job.h"

#include <stdatomic.h>
#include <stdbool.h>

static void tell(bool now, bool *told, _Atomic int *ranks)
{
    if (now && !*told)
        atomic_fetch_add(ranks, 1);
    *told = *told || now;
}

void __real_dtn_boot_gather_forward(struct dtn_boot *boot);
void __wrap_dtn_boot_gather_forward(struct dtn_boot *boot);
void __wrap_dtn_boot_gather_forward(struct dtn_boot *boot)
{
    static bool joined, around;

    __real_dtn_boot_gather_forward(boot);
    tell(boot->root || boot->up.link.state == DTN_LINK_JOINED, &joined,
         &seen->joined);
    tell(boot->aside.link.state == DTN_LINK_JOINED, &around, &seen->around);
}
