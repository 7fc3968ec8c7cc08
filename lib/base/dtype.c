/* dtype.c - element types and reductions, by table
 *
 * A type is a row: its name, its size and its kind.  The kind says which
 * operations it has: MIN needs an order, so complex types lack it; bit
 * operations need integers or bool.  Averages of integers are added in a wider
 * type: three i8 of 100 are 300 in i64.  Floats of 16 and 8 bits are stored
 * with their own width and computed as f32 (narrow.h).  For example, bf16 is
 * the upper half of an f32: 1.0f = 0x3f800000 is 0x3f80.
 */
#include "base/dtype.h"
#include "base/error.h"
#include "base/narrow.h"
#include "dtensor.h"

#include <stdbool.h>
#include <string.h>

static const struct {
    const char *name;
    size_t size;
    enum dtn_dtype_kind kind;
    enum dtensor_dtype wide;      /* has room for sums over ranks             */
} dtypes[DTN_NDTYPES] = {
    [DTENSOR_F32]    = { "f32", 4, DTN_DTYPE_FLOAT, DTENSOR_F32 },
    [DTENSOR_F64]    = { "f64", 8, DTN_DTYPE_FLOAT, DTENSOR_F64 },
    [DTENSOR_F16]    = { "f16", 2, DTN_DTYPE_FLOAT, DTENSOR_F32 },
    [DTENSOR_BF16]   = { "bf16", 2, DTN_DTYPE_FLOAT, DTENSOR_F32 },
    [DTENSOR_I8]     = { "i8", 1, DTN_DTYPE_SIGNED, DTENSOR_I64 },
    [DTENSOR_U8]     = { "u8", 1, DTN_DTYPE_UNSIGNED, DTENSOR_I64 },
    [DTENSOR_I32]    = { "i32", 4, DTN_DTYPE_SIGNED, DTENSOR_I64 },
    [DTENSOR_I64]    = { "i64", 8, DTN_DTYPE_SIGNED, DTN_I128 },
    [DTENSOR_I16]    = { "i16", 2, DTN_DTYPE_SIGNED, DTENSOR_I64 },
    [DTENSOR_U16]    = { "u16", 2, DTN_DTYPE_UNSIGNED, DTENSOR_I64 },
    [DTENSOR_U32]    = { "u32", 4, DTN_DTYPE_UNSIGNED, DTENSOR_I64 },
    [DTENSOR_U64]    = { "u64", 8, DTN_DTYPE_UNSIGNED, DTN_I128 },
    [DTENSOR_BOOL]   = { "bool", 1, DTN_DTYPE_BOOL, DTENSOR_BOOL },
    [DTENSOR_C64]    = { "c64", 8, DTN_DTYPE_COMPLEX, DTENSOR_C64 },
    [DTENSOR_C128]   = { "c128", 16, DTN_DTYPE_COMPLEX, DTENSOR_C128 },
    [DTENSOR_F8E4M3] = { "f8e4m3", 1, DTN_DTYPE_FLOAT, DTENSOR_F32 },
    [DTENSOR_F8E5M2] = { "f8e5m2", 1, DTN_DTYPE_FLOAT, DTENSOR_F32 },
    [DTN_I128]       = { "i128", 16, DTN_DTYPE_SIGNED, DTN_I128 },
};

#define OP(name) (1u << DTENSOR_##name)
#define SUMS (OP(SUM) | OP(PROD))
#define ORDER (OP(MIN) | OP(MAX))
#define BITS (OP(BAND) | OP(BOR) | OP(BXOR))

/* The reductions that exist for a kind. */
static const unsigned reductions[] = {
    [DTN_DTYPE_FLOAT]    = SUMS | OP(AVG) | ORDER,
    [DTN_DTYPE_COMPLEX]  = SUMS | OP(AVG),
    [DTN_DTYPE_SIGNED]   = SUMS | OP(AVG) | ORDER | BITS,
    [DTN_DTYPE_UNSIGNED] = SUMS | OP(AVG) | ORDER | BITS,
    [DTN_DTYPE_BOOL]     = SUMS | ORDER | BITS,
};

static const char *const redops[DTN_NREDOPS] = {
    [DTENSOR_SUM] = "sum",   [DTENSOR_AVG] = "avg",  [DTENSOR_PROD] = "prod",
    [DTENSOR_MIN] = "min",   [DTENSOR_MAX] = "max",  [DTENSOR_BAND] = "band",
    [DTENSOR_BOR] = "bor",   [DTENSOR_BXOR] = "bxor",
    [DTN_REDOP_PREMUL] = "premul", [DTN_REDOP_USER] = "user",
};

bool dtn_dtype_ok(enum dtensor_dtype dtype)
{
    return (unsigned)dtype < DTENSOR_NDTYPES;
}

enum dtn_dtype_kind dtn_dtype_kind(enum dtensor_dtype dtype)
{
    return dtypes[dtype].kind;
}

bool dtn_dtype_is_float(enum dtensor_dtype dtype)
{
    return dtypes[dtype].kind <= DTN_DTYPE_COMPLEX;
}

bool dtn_dtype_is_narrow(enum dtensor_dtype dtype)
{
    return dtypes[dtype].kind == DTN_DTYPE_FLOAT && dtypes[dtype].size < 4;
}

enum dtensor_dtype dtn_dtype_wide(enum dtensor_dtype dtype)
{
    return dtypes[dtype].wide;
}

size_t dtn_dtype_size(enum dtensor_dtype dtype)
{
    return dtypes[dtype].size;
}

bool dtn_redop_ok(enum dtensor_redop op, enum dtensor_dtype dtype)
{
    if ((unsigned)op >= DTENSOR_NREDOPS || !dtn_dtype_ok(dtype))
        return false;
    return reductions[dtypes[dtype].kind] >> op & 1;
}

size_t dtensor_dtype_size(enum dtensor_dtype dtype)
{
    return dtn_dtype_ok(dtype) ? dtypes[dtype].size : 0;
}

const char *dtensor_dtype_name(enum dtensor_dtype dtype)
{
    return dtn_dtype_ok(dtype) ? dtypes[dtype].name : "?";
}

const char *dtn_dtype_torch(enum dtensor_dtype dtype)
{
    return dtype == DTENSOR_BOOL ? "b8"
         : dtype == DTENSOR_F8E4M3 ? "f8e4m3fn" : dtensor_dtype_name(dtype);
}

const char *dtn_redop_torch(enum dtensor_redop op)
{
    return op == DTENSOR_PROD ? "product" : dtensor_redop_name(op);
}

int dtn_redop_kind(enum dtensor_redop op)
{
    if ((unsigned)op < DTN_MADE_FIRST || (unsigned)op > DTENSOR_REDOP_LAST)
        return (int)op;
    return (unsigned)op & DTN_MADE_USER ? DTN_REDOP_USER : DTN_REDOP_PREMUL;
}

const char *dtensor_redop_name(enum dtensor_redop op)
{
    const unsigned kind = (unsigned)dtn_redop_kind(op);

    return kind < DTN_NREDOPS ? redops[kind] : "?";
}

static bool name_is(const char *name, const char *ours, const char *torch)
{
    return name && (strcmp(name, ours) == 0 || strcmp(name, torch) == 0);
}

int dtensor_dtype_parse(const char *name, enum dtensor_dtype *dtypep,
                        struct dtensor_error *err)
{
    const char *known[DTENSOR_NDTYPES + 1] = { NULL };
    char advice[200];

    for (int i = 0; i < DTENSOR_NDTYPES; i++) {
        known[i] = dtypes[i].name;
        if (name_is(name, known[i], dtn_dtype_torch((enum dtensor_dtype)i))) {
            *dtypep = (enum dtensor_dtype)i;
            return 0;
        }
    }
    return dtn_fail(err, DTENSOR_EINVAL, "dtype: unknown \"%.60s\"; %s",
                    name ? name : "NULL",
                    dtensor_advise(name ? name : "", known, "f64, f32, f16, "
                                   "bf16, f8e4m3, f8e5m2, i8 to i64, u8 to "
                                   "u64, bool, c64 or c128", advice,
                                   sizeof advice));
}

int dtensor_redop_parse(const char *name, enum dtensor_redop *opp,
                        struct dtensor_error *err)
{
    const char *known[DTENSOR_NREDOPS + 1] = { NULL };
    char advice[200];

    for (int i = 0; i < DTENSOR_NREDOPS; i++) {
        known[i] = redops[i];
        if (name_is(name, known[i], dtn_redop_torch((enum dtensor_redop)i))) {
            *opp = (enum dtensor_redop)i;
            return 0;
        }
    }
    return dtn_fail(err, DTENSOR_EINVAL, "reduction: unknown \"%.60s\"; %s",
                    name ? name : "NULL",
                    dtensor_advise(name ? name : "", known, NULL, advice,
                                   sizeof advice));
}

/* Round toward zero and clamp to [low, high].  NaN becomes 0. */
static int64_t clamp_int(double value, double low, double high)
{
    if (value != value)
        return 0;
    if (value <= low)
        return (int64_t)low;
    if (value >= high)
        return high >= 0x1p63 ? INT64_MAX : (int64_t)high;
    return (int64_t)value;
}

static uint64_t clamp_u64(double value)
{
    return value >= 0x1p64 ? UINT64_MAX : value > 0 ? (uint64_t)value : 0;
}

static void store_float(enum dtensor_dtype dtype, void *array, size_t i,
                        double value)
{
    switch (dtype) {
    case DTENSOR_F64:  ((double *)array)[i] = value; break;
    case DTENSOR_F16:
        ((uint16_t *)array)[i] = dtn_f16_narrow((float)value);
        break;
    case DTENSOR_BF16:
        ((uint16_t *)array)[i] = dtn_bf16_narrow((float)value);
        break;
    case DTENSOR_F8E4M3:
        ((uint8_t *)array)[i] = dtn_f8e4m3_narrow((float)value);
        break;
    case DTENSOR_F8E5M2:
        ((uint8_t *)array)[i] = dtn_f8e5m2_narrow((float)value);
        break;
    default:           ((float *)array)[i] = (float)value; break;
    }
}

static void store_complex(enum dtensor_dtype dtype, void *array, size_t i,
                          double value)
{
    const enum dtensor_dtype half = dtype == DTENSOR_C64 ? DTENSOR_F32
                                                         : DTENSOR_F64;

    store_float(half, array, 2 * i, value);
    store_float(half, array, 2 * i + 1, 0);
}

static int64_t to_int(enum dtensor_dtype dtype, double value)
{
    const int bits = 8 * (int)dtypes[dtype].size;
    const bool is_signed = dtypes[dtype].kind == DTN_DTYPE_SIGNED;
    const double high = (is_signed ? 1 : 2) *
                        (double)(UINT64_C(1) << (bits - 1));

    if (dtype == DTENSOR_U64)
        return (int64_t)clamp_u64(value);
    return clamp_int(value, is_signed ? -high : 0,
                     bits == 64 ? high : high - 1);
}

int64_t dtn_load_int(enum dtensor_dtype dtype, const void *array, size_t i)
{
    const bool is_signed = dtypes[dtype].kind == DTN_DTYPE_SIGNED;

    switch (dtypes[dtype].size) {
    case 1:
        return is_signed ? ((const int8_t *)array)[i]
                         : ((const uint8_t *)array)[i];
    case 2:
        return is_signed ? ((const int16_t *)array)[i]
                         : ((const uint16_t *)array)[i];
    case 4:
        return is_signed ? ((const int32_t *)array)[i]
                         : (int64_t)((const uint32_t *)array)[i];
    default:
        return ((const int64_t *)array)[i];
    }
}

void dtn_store_int(enum dtensor_dtype dtype, void *array, size_t i,
                   int64_t value)
{
    switch (dtypes[dtype].size) {
    case 1:  ((uint8_t *)array)[i] = (uint8_t)value; break;
    case 2:  ((uint16_t *)array)[i] = (uint16_t)value; break;
    case 4:  ((uint32_t *)array)[i] = (uint32_t)value; break;
    default: ((uint64_t *)array)[i] = (uint64_t)value; break;
    }
}

double dtn_load(enum dtensor_dtype dtype, const void *array, size_t i)
{
    switch (dtype) {
    case DTENSOR_F32:    return ((const float *)array)[i];
    case DTENSOR_F64:    return ((const double *)array)[i];
    case DTENSOR_F16:    return dtn_f16_widen(((const uint16_t *)array)[i]);
    case DTENSOR_BF16:   return dtn_bf16_widen(((const uint16_t *)array)[i]);
    case DTENSOR_F8E4M3: return dtn_f8e4m3_widen(((const uint8_t *)array)[i]);
    case DTENSOR_F8E5M2: return dtn_f8e5m2_widen(((const uint8_t *)array)[i]);
    case DTENSOR_C64:    return ((const float *)array)[2 * i];
    case DTENSOR_C128:   return ((const double *)array)[2 * i];
    case DTENSOR_U64:    return (double)((const uint64_t *)array)[i];
    default:             return (double)dtn_load_int(dtype, array, i);
    }
}

void dtn_store(enum dtensor_dtype dtype, void *array, size_t i, double value)
{
    switch (dtypes[dtype].kind) {
    case DTN_DTYPE_FLOAT:
        store_float(dtype, array, i, value);
        break;
    case DTN_DTYPE_COMPLEX:
        store_complex(dtype, array, i, value);
        break;
    case DTN_DTYPE_SIGNED: case DTN_DTYPE_UNSIGNED:
        dtn_store_int(dtype, array, i, to_int(dtype, value));
        break;
    case DTN_DTYPE_BOOL:
        ((uint8_t *)array)[i] = value != 0;
        break;
    }
}
