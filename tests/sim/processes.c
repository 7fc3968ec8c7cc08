/* processes.c - what a simulated process knows of the others of its host
 *
 * Its number and start, as /proc would tell them, and whether it is dead; and
 * the memory of another, which the kernel copies.  All are in one address
 * space, so a copy is a memcpy(); but a process that is gone has no memory.
 */
#include "transport/process.h"
#include "tests/sim/kernel.h"
#include "tests/sim/memory.h"
#include "tests/sim/sim.h"

#include <errno.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>

enum { START = 1, PID_SPACE = 1 };

#define WRAPPED(type, name, ...)                                              \
    type __real_##name(__VA_ARGS__);                                          \
    type __wrap_##name(__VA_ARGS__)

/* NULL: it is gone. */
static struct sim_process *process_of(int64_t pid)
{
    struct sim_process *process =
        sim_process((int)pid - sim_pid(sim_process(0)));

    return process && (process->state == SIM_RUNS
                       || process->state == SIM_STOPPED) ? process : NULL;
}

WRAPPED(struct dtn_process, dtn_process_self, void);
struct dtn_process __wrap_dtn_process_self(void)
{
    return sim_self ? (struct dtn_process){ sim_pid(sim_self->process), START,
                                            PID_SPACE }
                    : __real_dtn_process_self();
}

WRAPPED(bool, dtn_process_is_dead, const struct dtn_process *process);
bool __wrap_dtn_process_is_dead(const struct dtn_process *process)
{
    if (!sim_self)
        return __real_dtn_process_is_dead(process);
    sim_call();
    return !process_of(process->pid);
}

static ssize_t move(pid_t pid, const struct iovec *to, const struct iovec *from)
{
    sim_call();
    if (!process_of(pid)) {
        errno = ESRCH;
        return -1;
    }
    memcpy(to->iov_base, from->iov_base, from->iov_len);
    return (ssize_t)from->iov_len;
}

WRAPPED(ssize_t, process_vm_readv, pid_t pid, const struct iovec *here,
        unsigned long nhere, const struct iovec *there, unsigned long nthere,
        unsigned long flags);
ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *here,
                                unsigned long nhere, const struct iovec *there,
                                unsigned long nthere, unsigned long flags)
{
    return sim_self ? move(pid, here, there)
                    : __real_process_vm_readv(pid, here, nhere, there, nthere,
                                              flags);
}

WRAPPED(ssize_t, process_vm_writev, pid_t pid, const struct iovec *here,
        unsigned long nhere, const struct iovec *there, unsigned long nthere,
        unsigned long flags);
ssize_t __wrap_process_vm_writev(pid_t pid, const struct iovec *here,
                                 unsigned long nhere, const struct iovec *there,
                                 unsigned long nthere, unsigned long flags)
{
    return sim_self ? move(pid, there, here)
                    : __real_process_vm_writev(pid, here, nhere, there, nthere,
                                               flags);
}
