/* faults.c - what goes wrong: on request, or because a call was used wrongly
 *
 * DTN_STANDIN_FAIL=cuMemAlloc:3=2 makes the third cuMemAlloc return error 2,
 * out of memory.  Complaints go to standard error, where a test's log has
 * them.
 */
#include "tests/standin/standin.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CALLS_MAX = 128, PLAN_MAX = 500 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic CUresult sticky;
static _Atomic int things[STANDIN_THINGS];
static char plan[PLAN_MAX];       /* as it was when counting began            */
static struct count {
    const char *name;
    unsigned long calls;
} counts[CALLS_MAX], made[CALLS_MAX]; /* under a plan; since the beginning   */

void standin_complain(const char *fmt, ...)
{
    char text[300];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    fprintf(stderr, "standin[%ld]: %s\n", (long)getpid(), text);
}

unsigned long standin_number(const char *variable, unsigned long otherwise)
{
    const char *text = getenv(variable);

    return text && *text ? strtoul(text, NULL, 0) : otherwise;
}

bool standin_listed(const char *variable, const char *word)
{
    const char *list = getenv(variable);
    size_t n = strlen(word);

    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, word, n) == 0 && (at[n] == ',' || at[n] == '\0'))
            return true;
    }
    return false;
}

void standin_stick(CUresult rc)
{
    CUresult none = CUDA_SUCCESS;

    atomic_compare_exchange_strong(&sticky, &none, rc);
}

CUresult standin_stuck(void)
{
    return sticky;
}

/* Its place in a table, one further to the front: calls that are made often are
 * found soon.
 */
static struct count *count_of(struct count table[], const char *call)
{
    struct count found;
    int i = 0;

    while (i < CALLS_MAX - 1 && table[i].name && table[i].name != call
           && strcmp(table[i].name, call) != 0)
        i++;
    table[i].name = call;
    if (i == 0)
        return table;
    found = table[i];
    table[i] = table[i - 1];
    table[i - 1] = found;
    return &table[i - 1];
}

/* How often it was called under this plan. */
static unsigned long calls_of(const char *call, const char *wanted)
{
    if (strncmp(plan, wanted, sizeof plan - 1) != 0) {
        snprintf(plan, sizeof plan, "%s", wanted);
        memset(counts, 0, sizeof counts);
    }
    return ++count_of(counts, call)->calls;
}

static void count_made(const char *call)
{
    pthread_mutex_lock(&lock);
    count_of(made, call)->calls++;
    pthread_mutex_unlock(&lock);
}

unsigned long standin_made(const char *call)
{
    unsigned long sum = 0;

    pthread_mutex_lock(&lock);
    for (int i = 0; i < CALLS_MAX && made[i].name; i++)
        if (!call || strcmp(made[i].name, call) == 0)
            sum += made[i].calls;
    pthread_mutex_unlock(&lock);
    return sum;
}

/* The error that is asked for, 0: none. */
static CUresult asked_for(const char *call)
{
    const char *wanted = getenv("DTN_STANDIN_FAIL");
    unsigned long calls, nth;
    size_t n = strlen(call);
    int code, rc = 0;

    if (!wanted || !*wanted)
        return CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    calls = calls_of(call, wanted);
    for (const char *at = wanted; at && rc == 0; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, call, n) == 0
            && sscanf(at + n, ":%lu=%d", &nth, &code) == 2
            && (nth == 0 || nth == calls))
            rc = code;
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

/* As the driver has it, errors of what ran on the device stay. */
static CUresult fail_now(CUresult rc)
{
    if (rc >= CUDA_ERROR_ILLEGAL_ADDRESS && rc <= CUDA_ERROR_LAUNCH_FAILED
        && rc != CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)
        standin_stick(rc);
    return rc;
}

CUresult standin_enter_stream(const char *call, CUresult *laterp)
{
    CUresult rc = asked_for(call);

    count_made(call);
    if (standin_stuck() != CUDA_SUCCESS)
        return standin_stuck();
    if (rc > 0)
        return fail_now(rc);
    *laterp = -rc;
    if (!standin_initialised())
        return CUDA_ERROR_NOT_INITIALIZED;
    return CUDA_SUCCESS;
}

CUresult standin_enter(const char *call)
{
    CUresult later = CUDA_SUCCESS;

    return standin_enter_stream(call, &later);
}

CUresult standin_enter_context(const char *call)
{
    CUresult rc = standin_enter(call);

    if (rc == CUDA_SUCCESS && standin_current() < 0) {
        standin_complain("%s: no context is current in this thread", call);
        rc = CUDA_ERROR_INVALID_CONTEXT;
    }
    return rc;
}

void standin_count(enum standin_thing thing, int more)
{
    things[thing] += more;
}

int standin_left(char *text, size_t size)
{
    static const char *const names[] = {
        "address ranges", "blocks of memory", "pinned ranges", "streams",
        "events", "graphs", "libraries", "contexts"
    };
    int sum = 0, n = 0;

    text[0] = '\0';
    for (int i = 0; i < STANDIN_THINGS; i++) {
        int left = things[i];

        if (left != 0 && (size_t)n < size)
            n += snprintf(text + n, size - (size_t)n, "%s%d %s", n ? ", " : "",
                          left, names[i]);
        sum += left;
    }
    return sum;
}

__attribute__((destructor)) static void faults_end(void)
{
    char text[200];

    if (standin_initialised() && standin_left(text, sizeof text) != 0)
        standin_complain("left behind: %s", text);
}
