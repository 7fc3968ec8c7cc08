/* sim.c - coroutines in the order of a clock that is a number
 *
 * Each coroutine has the time at which it runs next.  The earliest runs until
 * it waits for something; with 64 ranks and messages of up to 100 us a second
 * of them takes some milliseconds.  Calls of the kernel take a random time of
 * up to a microsecond, so two runs of different seeds differ from the start.
 *
 * A sleep of less than a millisecond may take longer, as on a busy host, if
 * nothing comes meanwhile: a rank that polls is skipped.
 */
#include "tests/sim/sim.h"
#include "tests/sim/kernel.h"
#include "tests/sim/memory.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#define STACK_BYTES ((size_t)512 << 10)

const char *const sim_fault_names[SIM_FAULTS] = {
    "nothing", "a pause", "a death", "a stop", "a host off"
};

struct sim_task *sim_self;
const struct sim_options *sim_options;
static struct sim_result *result;
static struct sim_process *processes;
static ucontext_t scheduler;
static struct sim_task **heap;
static int nheap, room;
static int64_t now;
static uint64_t state;            /* of the random numbers                    */
static struct sim_task *unused;   /* with a stack                             */
static bool faulted;              /* what is to happen has happened           */
static int64_t second_at;         /* when the second fault happens            */

static void *must(void *mem)
{
    if (!mem || mem == MAP_FAILED) {
        fprintf(stderr, "sim: out of memory\n");
        abort();
    }
    return mem;
}

/* splitmix64 */
static uint64_t random_bits(void)
{
    uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

uint64_t sim_random(uint64_t n)
{
    return random_bits() % n;
}

int64_t sim_now(void)
{
    return now;
}

int sim_rank(void)
{
    return sim_self->process->rank;
}

struct sim_process *sim_process(int rank)
{
    return rank >= 0 && rank < sim_options->nranks ? &processes[rank] : NULL;
}

struct sim_use sim_used(int rank)
{
    return processes[rank].use;
}

bool sim_lost(int rank)
{
    return processes[rank].state >= SIM_STOPPED;
}

/* ---------------------------------------------------------------- heap --- */

static bool before(const struct sim_task *a, const struct sim_task *b)
{
    return a->wake < b->wake || (a->wake == b->wake && a->order < b->order);
}

static void heap_put(int i, struct sim_task *task)
{
    heap[i] = task;
    task->place = i;
}

static void heap_up(int i, struct sim_task *task)
{
    for (; i > 0 && before(task, heap[(i - 1) / 2]); i = (i - 1) / 2)
        heap_put(i, heap[(i - 1) / 2]);
    heap_put(i, task);
}

static void heap_down(int i, struct sim_task *task)
{
    int child;

    for (; (child = 2 * i + 1) < nheap; i = child) {
        if (child + 1 < nheap && before(heap[child + 1], heap[child]))
            child++;
        if (!before(heap[child], task))
            break;
        heap_put(i, heap[child]);
    }
    heap_put(i, task);
}

static void heap_add(struct sim_task *task, int64_t wake)
{
    task->wake = wake;
    task->order = random_bits();
    if (nheap == room) {
        room = room ? 2 * room : 64;
        heap = must(__real_realloc(heap, (size_t)room * sizeof *heap));
    }
    heap_up(nheap++, task);
}

static struct sim_task *heap_take(void)
{
    struct sim_task *task = heap[0];

    task->place = -1;
    if (--nheap > 0)
        heap_down(0, heap[nheap]);
    return task;
}

/* -------------------------------------------------------------- waiting --- */

void sim_block(int64_t wake, bool alert)
{
    struct sim_task *self = sim_self;

    self->alert = alert;
    heap_add(self, wake > now ? wake : now);
    swapcontext(&self->context, &scheduler);
    self->alert = false;
}

static void hurry(struct sim_task *task, int64_t at)
{
    if (task->place < 0 || task->wake <= at)
        return;
    task->wake = at > now ? at : now;
    heap_up(task->place, task);
}

void sim_alert(struct sim_process *process, int64_t at)
{
    for (struct sim_task *t = process->tasks; t; t = t->next)
        if (t->alert)
            hurry(t, at);
}

void sim_wake(const void *waits)
{
    for (struct sim_task *t = sim_self->process->tasks; t; t = t->next)
        if (t->waits == waits)
            hurry(t, now + 1);
}

/* --------------------------------------------------------------- faults --- */

/* As the kernel does for a thread that dies. */
static void robust_die(const struct sim_task *task)
{
    const struct robust_list_head *head = task->robust;

    if (head && head->list.next != &head->list) {
        _Atomic uint32_t *word = (_Atomic uint32_t *)(void *)
            ((char *)head->list.next + head->futex_offset);

        if (*word != 0)
            *word |= FUTEX_OWNER_DIED;
    }
}

static void process_lose(struct sim_process *process, enum sim_state how,
                         int64_t heard_ns)
{
    process->state = how;
    process->gone_at = heard_ns < SIM_NEVER ? now + heard_ns : SIM_NEVER;
    result->lost++;
    if (how == SIM_STOPPED)
        return;
    for (struct sim_task *t = process->tasks; t; t = t->next)
        if (!t->done && heard_ns < SIM_NEVER)
            robust_die(t);
    sim_files_close(process, heard_ns);
}

static void host_lose(int host)
{
    for (int r = 0; r < sim_options->nranks; r++)
        if (processes[r].host == host && processes[r].state == SIM_RUNS)
            process_lose(&processes[r], SIM_DEAD, SIM_NEVER);
}

static void fault_happen(const struct sim_fault *fault,
                         struct sim_process *process)
{
    if (process->state != SIM_RUNS)
        return;
    switch (fault->kind) {
    case SIM_PAUSE:
        process->paused_until = now + fault->ns;
        break;
    case SIM_KILL:
        process_lose(process, SIM_DEAD, fault->ns);
        break;
    case SIM_STOP:
        process_lose(process, SIM_STOPPED, 0);
        break;
    case SIM_POWER:
        host_lose(process->host);
        break;
    default:
        break;
    }
}

static void faults_begin(void)
{
    const struct sim_fault *second = &sim_options->second;

    faulted = true;
    if (second->kind != SIM_NONE)
        second_at = now + second->at_ns;
    fault_happen(&sim_options->fault, &processes[sim_options->fault.rank]);
}

/* What is due by the clock. */
static void faults_look(int64_t wake)
{
    const struct sim_fault *fault = &sim_options->fault;

    if (!faulted && fault->at_ns > 0 && wake >= fault->at_ns) {
        now = fault->at_ns;
        faults_begin();
    }
    if (wake >= second_at) {
        now = second_at;
        second_at = SIM_NEVER;
        fault_happen(&sim_options->second,
                     &processes[sim_options->second.rank]);
    }
}

void sim_call(void)
{
    struct sim_process *process = sim_self->process;
    const struct sim_fault *fault = &sim_options->fault;

    now += (int64_t)sim_random(1000);
    result->calls++;
    process->calls += process->marked || !fault->later;
    if (fault->kind != SIM_NONE && !faulted && fault->at_ns == 0
        && process->rank == fault->rank && process->calls == fault->call) {
        faults_begin();
        sim_block(now, false);
    }
}

void sim_mark(void)
{
    sim_self->process->marked = true;
}

/* ---------------------------------------------------------------- tasks --- */

static void task_main(void)
{
    sim_self->main(sim_self->arg);
    sim_self->done = true;
    sim_wake(sim_self);
    swapcontext(&sim_self->context, &scheduler);
}

struct sim_task *sim_spawn(struct sim_process *process, void *(*main)(void *),
                           void *arg)
{
    struct sim_task *task = unused;
    void *stack;

    if (task)
        unused = task->next;
    else
        task = must(__real_calloc(1, sizeof *task));
    stack = task->stack ? task->stack
          : must(__real_mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                             -1, 0));
    *task = (struct sim_task){ .stack = stack, .process = process,
                               .main = main, .arg = arg,
                               .next = process->tasks };
    process->tasks = task;
    getcontext(&task->context);
    task->context.uc_stack.ss_sp = stack;
    task->context.uc_stack.ss_size = STACK_BYTES;
    makecontext(&task->context, task_main, 0);
    heap_add(task, now);
    return task;
}

static void *rank_main(void *arg)
{
    struct sim_process *process = arg;

    sim_options->main(process->rank);
    process->state = SIM_ENDED;
    process->gone_at = now;
    result->ns = now > result->ns ? now : result->ns;
    result->leaked += process->blocks + process->real
                    + sim_files_count(process);
    for (const struct sim_task *t = process->tasks; t; t = t->next)
        result->leaked += !t->done && t != sim_self;
    sim_files_close(process, 0);
    return NULL;
}

/* ------------------------------------------------------------------ run --- */

static void turn(struct sim_task *task)
{
    struct sim_process *process = task->process;

    faults_look(task->wake);
    if (process->state >= SIM_STOPPED || task->done)
        return;
    if (process->paused_until > task->wake) {
        heap_add(task, process->paused_until);
        return;
    }
    now = task->wake > process->clock ? task->wake : process->clock;
    sim_self = task;
    result->turns++;
    swapcontext(&scheduler, &task->context);
    sim_self = NULL;
    process->clock = now;
}

static void processes_make(void)
{
    processes = must(__real_calloc((size_t)sim_options->nranks,
                                   sizeof *processes));
    for (int r = 0; r < sim_options->nranks; r++) {
        struct sim_process *process = &processes[r];

        process->rank = r;
        process->host = r / sim_options->ranks_per_host;
        now = (int64_t)sim_random(10000000);
        process->first = sim_spawn(process, rank_main, process);
    }
}

static void processes_end(void)
{
    for (int r = 0; r < sim_options->nranks; r++) {
        struct sim_process *process = &processes[r];
        struct sim_task *next;

        result->hung += process->state == SIM_RUNS;
        sim_files_close(process, 0);
        sim_memory_drop(process);
        for (struct sim_task *t = process->tasks; t; t = next) {
            next = t->next;
            t->next = unused;
            unused = t;
        }
    }
    sim_files_end();
    __real_free(processes);
    processes = NULL;
}

void sim_run(const struct sim_options *options, struct sim_result *found)
{
    *found = (struct sim_result){ 0 };
    sim_options = options;
    result = found;
    state = options->seed;
    nheap = 0;
    faulted = false;
    second_at = SIM_NEVER;
    processes_make();
    while (nheap > 0 && heap[0]->wake < options->limit_ns)
        turn(heap_take());
    options->end(options);
    processes_end();
    sim_options = NULL;
}
