/* dtensor/types.h - errors, element types, reductions
 *
 * The words that all other parts use.  An error is a number for the program and
 * one line of text for people: what, the fact with its values, what to do, such
 * as
 *
 *   placements: "S(0)" has 1, but the mesh has 2 dimensions (give one for each)
 *
 * An element type has a size in bytes; a reduction makes one element of
 * several, such as the sum of the terms that ranks hold.
 */
#ifndef DTENSOR_TYPES_H
#define DTENSOR_TYPES_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DTENSOR_MAX_DIMS 8     /* of a tensor, and of a mesh                */
#define DTENSOR_NAME_MAX 32    /* longest name of a mesh or mesh dimension  */

/* ------------------------------------------------------------- errors --- */

enum dtensor_errcode {
    DTENSOR_EINVAL    = -1,    /* an argument is outside its documented range */
    DTENSOR_ENOMEM    = -2,    /* memory exhausted                            */
    DTENSOR_ESYS      = -3,    /* a system call failed: see sys_errno         */
    DTENSOR_ECONF     = -4,    /* the cluster file or environment is wrong    */
    DTENSOR_ENODEV    = -5,    /* a device or transport is not available      */
    DTENSOR_EPEER     = -6,    /* a peer died: `rank` says which              */
    DTENSOR_ETIME     = -7,    /* a deadline passed waiting for `rank`        */
    DTENSOR_EAGAIN    = -8,    /* not ready yet; try again                    */
    DTENSOR_EMISMATCH = -9,    /* ranks disagree: `rank` differs              */
    DTENSOR_EABORT    = -10    /* another rank failed: `rank` says which      */
};

/* The explanation of an error.  Owned by the caller, normally on its stack;
 * written on failure only.
 */
struct dtensor_error {
    int code;                  /* enum dtensor_errcode                        */
    int sys_errno;             /* errno of the failing call, or 0             */
    int rank;                  /* culprit, or -1                              */
    char text[500];            /* one line, no newline; "..." if truncated    */
};

/* The name of an error code, such as "EPEER"; "0" for 0; "unknown error" for
 * any other number.
 *
 * Owns:   static storage.
 */
const char *dtensor_errname(int code);

/* "MAJOR.MINOR.PATCH" of the library in use.   Owns: static storage. */
const char *dtensor_version(void);

/* What this build can do, one line: "verbs yes, cuda no".   Owns: static. */
const char *dtensor_build(void);

/* ------------------------------------------------------------- memory --- */

/* Where elements are. */
enum dtensor_memory {
    DTENSOR_HOST,              /* memory of the host                          */
    DTENSOR_CUDA               /* memory of a GPU, by NVIDIA's driver         */
};

/* ------------------------------------------------- dtypes, reductions --- */

enum dtensor_dtype {
    DTENSOR_F32,               /* IEEE binary32                               */
    DTENSOR_F64,               /* IEEE binary64                               */
    DTENSOR_F16,               /* IEEE binary16                               */
    DTENSOR_BF16,              /* upper half of a binary32                    */
    DTENSOR_I8,
    DTENSOR_U8,
    DTENSOR_I32,
    DTENSOR_I64,
    DTENSOR_I16,
    DTENSOR_U16,
    DTENSOR_U32,
    DTENSOR_U64,
    DTENSOR_BOOL,              /* a byte, 0 or 1                              */
    DTENSOR_C64,               /* two F32: real, imaginary                    */
    DTENSOR_C128,              /* two F64                                     */
    DTENSOR_F8E4M3,            /* no infinity: 448 is the largest, 0x7f a NaN */
    DTENSOR_F8E5M2,            /* upper half of a binary16                    */
    DTENSOR_NDTYPES
};

enum dtensor_redop {
    DTENSOR_SUM,               /* of bool: or                                 */
    DTENSOR_AVG,               /* sum divided by the number of ranks; integer */
                               /* sums do not overflow, and the quotient is   */
                               /* rounded toward zero; not of bool            */
    DTENSOR_PROD,              /* of bool: and                                */
    DTENSOR_MIN,               /* a NaN anywhere gives NaN, as in PyTorch;    */
    DTENSOR_MAX,               /* neither of complex numbers                  */
    DTENSOR_BAND,              /* bit operations: integers and bool only      */
    DTENSOR_BOR,
    DTENSOR_BXOR,
    DTENSOR_NREDOPS,
    DTENSOR_REDOP_LAST = 0x3fffffff    /* dtensor_redop_create() ends here    */
};

/* Bytes of one element; 0 if there is no such dtype.  The names are "?" then.
 *
 * Owns:   names are static storage.
 */
size_t dtensor_dtype_size(enum dtensor_dtype dtype);
const char *dtensor_dtype_name(enum dtensor_dtype dtype);     /* "f32", ...   */
const char *dtensor_redop_name(enum dtensor_redop op);        /* "sum", ...   */

/* The dtype or reduction of that name.  Names that PyTorch prints are read too:
 * "b8", "f8e4m3fn", "product".
 *
 * Collective: no.   Blocks: no.
 * Errors: EINVAL  no such name: says which was meant, or lists all names
 * Semantics: its own.
 */
int dtensor_dtype_parse(const char *name, enum dtensor_dtype *dtypep,
                        struct dtensor_error *err);
int dtensor_redop_parse(const char *name, enum dtensor_redop *opp,
                        struct dtensor_error *err);

/* Suggest a name for `word`, which is not in `known` (NULL-terminated):
 *
 *   mean is avg here        PyTorch, MPI or NCCL uses `word` for a known name,
 *                           or it differs only in case, "_" and "-"
 *   did you mean "sum"?     a known name has a similar spelling
 *   expected sum or avg     neither; the list is `expected`, or `known` if NULL
 *
 * Returns buf[size]; the text is truncated if it does not fit.
 *
 * Collective: no.   Blocks: no.   Owns: nothing.   Semantics: its own.
 */
char *dtensor_advise(const char *word, const char *const known[],
                     const char *expected, char *buf, size_t size);

#ifdef __cplusplus
}
#endif
#endif
