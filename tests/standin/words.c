/* words.c - several words written and waited for at once
 *
 * They are done in their order.  The driver takes fewer than 256, and may
 * change addresses and values of a graph that is launched again, nothing else.
 */
#include "tests/standin/standin.h"

#include <stdlib.h>
#include <string.h>

enum { WORDS_MAX = 255 };

static bool word_waits(const CUstreamBatchMemOpParams *op)
{
    return op->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
}

bool standin_words_good(const char *call, const CUstreamBatchMemOpParams ops[],
                        unsigned n)
{
    bool good = ops && n > 0 && n <= WORDS_MAX;

    for (unsigned i = 0; good && i < n; i++)
        good = (word_waits(&ops[i])
                ? ops[i].flags <= CU_STREAM_WAIT_VALUE_NOR
                : ops[i].operation == CU_STREAM_MEM_OP_WRITE_VALUE_64
                  && ops[i].flags == CU_STREAM_WRITE_VALUE_DEFAULT)
            && standin_word_good(call, ops[i].address);
    if (!good)
        standin_complain("%s: %u words: expected 1 to %d, of 64 bits", call, n,
                         WORDS_MAX);
    return good;
}

/* Without the lock. */
static CUresult words_run(struct standin_task *task)
{
    const CUstreamBatchMemOpParams *ops = (const void *)task->bytes;
    CUresult rc = CUDA_SUCCESS;

    for (size_t i = 0; i < task->nbytes / sizeof *ops && rc == 0; i++)
        rc = word_waits(&ops[i])
           ? standin_word_wait(ops[i].address, ops[i].value64, ops[i].flags)
           : standin_word_write(ops[i].address, ops[i].value64);
    return rc;
}

bool standin_words_alike(const struct standin_task *task,
                         const CUstreamBatchMemOpParams ops[], unsigned n)
{
    const CUstreamBatchMemOpParams *have = (const void *)task->bytes;
    bool alike = task->run == words_run && n * sizeof *ops == task->nbytes;

    for (unsigned i = 0; alike && i < n; i++)
        alike = ops[i].operation == have[i].operation;
    return alike;
}

CUresult standin_cuStreamBatchMemOp(CUstream handle, unsigned n,
                                    CUstreamBatchMemOpParams *ops,
                                    unsigned flags)
{
    struct standin_task task = { .run = words_run, .waits = true };
    struct standin_stream *stream;
    CUresult rc = standin_enter_task("cuStreamBatchMemOp", handle, &task,
                                     &stream);

    if (rc != CUDA_SUCCESS)
        return rc;
    if (flags != 0 || !standin_words_good("cuStreamBatchMemOp", ops, n))
        return CUDA_ERROR_INVALID_VALUE;
    task.nbytes = n * sizeof *ops;
    task.bytes = malloc(task.nbytes);
    if (!task.bytes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(task.bytes, ops, task.nbytes);
    return standin_push(stream, &task, NULL);
}
