/* memory.c - who has which memory, mapping and real descriptor
 *
 * A rank that ends must have none left; of one that died, the simulation frees
 * them.  A table by address has the process of each block that our code
 * allocated; what a library allocated for it is not there and is just freed.
 */
#include "tests/sim/memory.h"
#include "tests/sim/kernel.h"
#include "tests/sim/sim.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A block, a mapping, or a descriptor. */
enum kind { BLOCK, MAPPING, REAL };
struct entry {
    uintptr_t key;                /* address, or descriptor + 1; 0: none      */
    size_t size;
    enum kind kind;
    struct sim_process *process;
};

static struct entry *table;
static size_t room, used;

static size_t slot_of(uintptr_t key)
{
    return (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (room - 1);
}

static void entry_put(const struct entry *entry)
{
    size_t i = slot_of(entry->key);

    while (table[i].key)
        i = (i + 1) & (room - 1);
    table[i] = *entry;
}

static void table_grow(void)
{
    struct entry *old = table;
    const size_t n = room;

    room = room ? 2 * room : 4096;
    table = __real_calloc(room, sizeof *table);
    if (!table)
        abort();
    for (size_t i = 0; i < n; i++)
        if (old[i].key)
            entry_put(&old[i]);
    __real_free(old);
}

static void process_holds(struct sim_process *process, size_t more)
{
    process->held += more;
    if (process->held > process->use.most)
        process->use.most = process->held;
}

static void note(enum kind kind, uintptr_t key, size_t size)
{
    const struct entry entry = { key, size, kind, sim_self ? sim_self->process
                                                           : NULL };

    if (!sim_self || !key)
        return;
    if (2 * used >= room)
        table_grow();
    entry_put(&entry);
    used++;
    *(kind == BLOCK ? &entry.process->blocks : &entry.process->real) += 1;
    if (kind == BLOCK)
        process_holds(entry.process, size);
}

/* Close the gap, so that what was put past it is found. */
static void entry_remove(size_t gap)
{
    size_t i = gap, home;

    used--;
    for (;;) {
        table[gap].key = 0;
        do {
            i = (i + 1) & (room - 1);
            if (!table[i].key)
                return;
            home = slot_of(table[i].key);
        } while (gap <= i ? gap < home && home <= i : gap < home || home <= i);
        table[gap] = table[i];
        gap = i;
    }
}

static void forget(uintptr_t key)
{
    size_t i = used > 0 ? slot_of(key) : 0;

    while (used > 0 && table[i].key && table[i].key != key)
        i = (i + 1) & (room - 1);
    if (used == 0 || !table[i].key)
        return;
    *(table[i].kind == BLOCK ? &table[i].process->blocks
                             : &table[i].process->real) -= 1;
    table[i].process->held -= table[i].kind == BLOCK ? table[i].size : 0;
    entry_remove(i);
}

static void entry_free(const struct entry *entry)
{
    if (entry->kind == BLOCK)
        __real_free((void *)entry->key);
    else if (entry->kind == MAPPING)
        munmap((void *)entry->key, entry->size);
    else
        __real_close((int)entry->key - 1);
}

void sim_memory_drop(struct sim_process *process)
{
    struct entry entry;

    for (size_t i = 0; i < room && process->blocks + process->real > 0;)
        if (table[i].key && table[i].process == process) {
            entry = table[i];
            forget(entry.key);
            entry_free(&entry);
        } else {
            i++;
        }
}

void sim_real_note(int fd)
{
    note(REAL, (uintptr_t)fd + 1, 0);
}

pid_t sim_pid(const struct sim_process *process)
{
    return process->rank + 1000;
}

/* -------------------------------------------------------- wrapped calls --- */

int __real_memfd_create(const char *name, unsigned flags);
int __real_munmap(void *at, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *mem, size_t size);
void __wrap_free(void *mem);
char *__wrap_strdup(const char *text);
int __wrap_memfd_create(const char *name, unsigned flags);
void *__wrap_mmap(void *at, size_t size, int prot, int flags, int fd, off_t to);
int __wrap_munmap(void *at, size_t size);

void *__wrap_malloc(size_t size)
{
    void *mem = __real_malloc(size);

    note(BLOCK, (uintptr_t)mem, size);
    return mem;
}

void *__wrap_calloc(size_t n, size_t size)
{
    void *mem = __real_calloc(n, size);

    note(BLOCK, (uintptr_t)mem, n * size);
    return mem;
}

void *__wrap_realloc(void *mem, size_t size)
{
    void *larger;

    forget((uintptr_t)mem);
    larger = __real_realloc(mem, size);
    note(BLOCK, (uintptr_t)larger, size);
    return larger;
}

void __wrap_free(void *mem)
{
    forget((uintptr_t)mem);
    __real_free(mem);
}

char *__wrap_strdup(const char *text)
{
    const size_t size = strlen(text) + 1;
    char *copy = __wrap_malloc(size);

    return copy ? memcpy(copy, text, size) : NULL;
}

int __wrap_memfd_create(const char *name, unsigned flags)
{
    int fd = __real_memfd_create(name, flags);

    if (fd >= 0)
        sim_real_note(fd);
    return fd;
}

void *__wrap_mmap(void *at, size_t size, int prot, int flags, int fd, off_t to)
{
    void *mem = __real_mmap(at, size, prot, flags, fd, to);

    if (mem != MAP_FAILED)
        note(MAPPING, (uintptr_t)mem, size);
    return mem;
}

int __wrap_munmap(void *at, size_t size)
{
    forget((uintptr_t)at);
    return __real_munmap(at, size);
}

/* Huge pages would have to be cleared for each rank. */
int __real_madvise(void *at, size_t size, int advice);
int __wrap_madvise(void *at, size_t size, int advice);
int __wrap_madvise(void *at, size_t size, int advice)
{
    return sim_self && advice != MADV_WIPEONFORK
         ? 0 : __real_madvise(at, size, advice);
}

int sim_real_close(int fd)
{
    forget((uintptr_t)fd + 1);
    return __real_close(fd);
}
