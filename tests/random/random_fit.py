#!/usr/bin/env python3
"""random_fit.py - make lib/base/coefficients.h

Nearly minimax polynomials (Chebyshev interpolation in 60 digits) for the
functions that turn words into values, and for those of operators, and constants
in parts.  Needs mpmath.  The file is committed; run this only to change a degree:

    python3 tests/random/random_fit.py > lib/base/coefficients.h
"""
import sys
from mpmath import mp, mpf

mp.dps = 60
HEAD = """/* coefficients.h - polynomials, made by tests/random/random_fit.py: do not edit
 *
 * Lowest power first.  The worst error, beside each, is that of the polynomial
 * itself against the function, relative where nothing else is said.
 */
#ifndef DTN_COEFFICIENTS_H
#define DTN_COEFFICIENTS_H

#include "base/compiler.h"

#include <stdint.h>
"""


def fit(function, interval, degree):
    """Coefficients, lowest first, and the error that mpmath measured."""
    poly, error = mp.chebyfit(function, interval, degree + 1, error=True)
    return list(reversed(poly)), error


def emit(name, ctype, coefficients, error, what):
    digits, suffix = (9, "f") if ctype == "float" else (17, "")
    some = 4 if ctype == "float" else 1                # in a line
    texts = [mp.nstr(c, digits, min_fixed=1, max_fixed=0) + suffix
             for c in coefficients]
    body = ",\n".join("    " + ", ".join(texts[i:i + some])
                      for i in range(0, len(texts), some))
    print(f"\n/* {what}: {mp.nstr(error, 2)} */")
    print(f"DTN_TABLE {ctype} {name}[] = {{\n{body}\n}};")


def series(f, small, at_zero):
    """f, with its limit where the quotient is 0/0."""
    return lambda x: at_zero if abs(x) < small else f(x)


def erfcx(x):
    return mp.exp(x * x) * mp.erfc(x)


def quantile(p):
    """z with Phi(z) = p, for p in (0, 1/2]."""
    t = mp.sqrt(-2 * mp.log(p))
    z = -(t - (mpf("2.5") + mpf("0.8") * t) / (1 + mpf("1.4") * t))
    for _ in range(60):
        step = (mp.ncdf(z) - p) / mp.npdf(z)
        z -= step / (1 + z * step / 2)
        if abs(step) < mpf(10) ** -45:
            break
    return z


def tail(name, ctype, middle, ends, degree):
    """(x + middle) exp(x^2) erfc(x), which has no zeros."""
    def value(t):
        x = middle * (1 + t) / (1 - t)
        return erfcx(x) * (x + middle)

    low, high = (mpf(x) for x in ends)
    c, e = fit(value, [(x - middle) / (x + middle) for x in (low, high)], degree)
    m = mp.nstr(middle, 3, strip_zeros=True)
    emit(name, ctype, c, e / mpf("0.56"),
         f"(x + {m}) exp(x^2) erfc(x) of (x - {m}) / (x + {m}),\n"
         f" * {ends[0]} <= x <= {ends[1]}")


def gelu(name, middle, end, degree, factor):
    """Phi(-x) (x + middle) exp(factor x^2), over x / (x + middle) - 1/2."""
    def value(t):
        x = middle * (1 + 2 * t) / (1 - 2 * t)
        return (x + middle) * mp.exp(factor * x * x) * \
            mp.erfc(x / mp.sqrt(2)) / 2

    c, e = fit(value, [-mpf(1) / 2, end / (end + middle) - mpf(1) / 2], degree)
    m = mp.nstr(middle, 3)
    emit(name, "float", c, e * 2,
         f"Phi(-x) (x + {m}) exp({mp.nstr(factor, 11)} x^2) of x / (x + {m}) "
         f"- 1/2,\n * 0 <= x <= {mp.nstr(end, 4)}")


def atanh_rest(y):
    """What (2 atanh(s) - 2 s) / s^3 has beside 2/3, over s^2 = y."""
    s = mp.sqrt(y)
    return ((2 * mp.atanh(s) / s - 2) / y - mpf(2) / 3) / y


def operators(tiny, eighth):
    """Those with fused multiply-adds: lib/math."""
    most = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2 * mpf("1.0001")
    for name, degree in (("atanh_f64", 7), ("atanh_short", 5),
                         ("atanh_f32", 2)):
        c, e = fit(series(atanh_rest, mpf(10) ** -12, mpf(2) / 5), [0, most],
                   degree)
        emit(name, "double", c, e * most ** 2 / 2,
             "((2 atanh(s) - 2 s) / s^3 - 2/3) / s^2 of s^2, s = f / (2 + f)")
    c, e = fit(series(lambda y: (mp.sin(mp.sqrt(y)) / mp.sqrt(y) - 1) / y, tiny,
                      -mpf(1) / 6), [0, eighth], 5)
    emit("sin_f64", "double", c, e * eighth,
         "(sin r - r) / r^3 of r^2, |r| <= pi/4")
    c, e = fit(series(lambda y: (mp.cos(mp.sqrt(y)) - 1 + y / 2) / y ** 2, tiny,
                      mpf(1) / 24), [0, eighth], 5)
    emit("cos_f64", "double", c, e * eighth ** 2,
         "(cos r - 1 + r^2/2) / r^4 of r^2, |r| <= pi/4")
    half = mp.log(2) / 2 * mpf("1.0001")
    for name, degree in (("exp_short", 9), ("exp_pow_f32", 5)):
        c, e = fit(series(lambda r: (mp.expm1(r) - r) / r ** 2,
                          mpf(10) ** -15, mpf(1) / 2), [-half, half], degree)
        emit(name, "double", c, e * half ** 2,
             "(exp(r) - 1 - r) / r^2, |r| <= log(2)/2")
    c, e = fit(series(lambda y: (mp.erf(mp.sqrt(y)) / mp.sqrt(y) -
                                 2 / mp.sqrt(mp.pi)) / y, tiny,
                      -2 / (3 * mp.sqrt(mp.pi))), [0, mpf("0.53")], 9)
    emit("erf_short", "double", c, e * mpf("0.53"),
         "(erf x - 2 x / sqrt(pi)) / x^3 of x^2, |x| <= 0.72")
    tail("erfcx_short", "double", 3, ("0.71", "5.96"), 15)
    # exp(-x^2 / 2) is 2^k exp(-c u), u = x^2 + k log(2) / c, which is a float.
    c_of_u = mp.log(2) / (mpf(0x162e43) / 2 ** 20)
    gelu("gelu_f32", mpf("3.75"), mpf("13.27"), 8, c_of_u)
    c, e = fit(series(lambda u: mp.expm1(-c_of_u * u) / u, mpf(10) ** -15,
                      -c_of_u), [-2 * half, 2 * half], 4)
    emit("gelu_exp_f32", "float", c, e * 2 * half,
         f"(exp(-{mp.nstr(c_of_u, 11)} u) - 1) / u, |u| <= log(2)")
    gelu("gelu_bf16", mpf("4"), mpf("13.27"), 4, mpf(1) / 2)
    for name, degree in (("exp2_f32", 4), ("exp2_bf16", 2)):
        c, e = fit(series(lambda f: (2 ** f - 1) / f, mpf(10) ** -15,
                          mp.log(2)), [-mpf("0.5001"), mpf("0.5001")], degree)
        emit(name, "float", c, e / 2, "(2^f - 1) / f, |f| <= 1/2")
    low, high = mp.sqrt(mpf(1) / 2) - 1, mp.sqrt(2) - 1
    c, e = fit(series(lambda f: (mp.log(1 + f, 2) / f - 1 / mp.log(2)) / f, tiny,
                      -1 / mp.log(4)), [low, high], 8)
    emit("log2_f32", "float", c, e * high,
         "(log2(1 + f) - f / log 2) / f^2, f in [sqrt(1/2) - 1, sqrt(2) - 1]")
    c, e = fit(series(lambda f: (mp.log1p(f) - f) / f ** 2, tiny,
                      -mpf(1) / 2), [low, high], 8)
    emit("log_short_f32", "float", c, e * high,
         "(log(1 + f) - f) / f^2, f in [sqrt(1/2) - 1, sqrt(2) - 1]")
    c, e = fit(series(lambda y: (2 * mp.atanh(mp.sqrt(y) / 2) / mp.sqrt(y) - 1) / y,
                      tiny, mpf(1) / 12), [0, mpf(4) / 9 * mpf("1.0001")], 3)
    emit("log1p_f32", "float", c, e * 4 / 9,
         "(2 atanh(s / 2) - s) / s^3 of s^2, 0 <= s <= 2/3")
    with mp.workdps(400):
        bits = int(mp.floor(mp.ldexp(2 / mp.pi, 37 * 32)))
    words = [0] + [bits >> 32 * (36 - i) & 0xffffffff for i in range(37)]
    print("\n/* The bits of 2/pi from 2^31 on, 32 in a word */")
    print("DTN_TABLE uint32_t two_over_pi[] = {")
    for i in range(0, len(words), 5):
        print("    " + ", ".join(f"0x{w:08x}" for w in words[i:i + 5]) +
              ("," if i + 5 < len(words) else ""))
    print("};")


def main():
    print(HEAD, end="")
    low, high = mp.sqrt(mpf(1) / 2) - 1, mp.sqrt(2) - 1
    eighth = (mp.pi / 4) ** 2 * mpf("1.0001")
    tiny = mpf(10) ** -12

    c, e = fit(series(lambda f: (mp.log1p(f) - f + f * f / 2) / f ** 3, tiny,
                      mpf(1) / 3), [low, high], 8)
    emit("log_f32", "float", c, e * abs(low) ** 2,
         "(log(1 + f) - f + f^2/2) / f^3, f in [sqrt(1/2) - 1, sqrt(2) - 1]")
    c, e = fit(series(lambda y: (mp.sin(mp.sqrt(y)) / mp.sqrt(y) - 1) / y, tiny,
                      -mpf(1) / 6), [0, eighth], 3)
    emit("sin_f32", "float", c, e * eighth,
         "(sin r - r) / r^3 of r^2, |r| <= pi/4")
    c, e = fit(series(lambda y: (mp.cos(mp.sqrt(y)) - 1 + y / 2) / y ** 2, tiny,
                      mpf(1) / 24), [0, eighth], 3)
    emit("cos_f32", "float", c, e * eighth ** 2,
         "(cos r - 1 + r^2/2) / r^4 of r^2, |r| <= pi/4")
    c, e = fit(series(lambda y: (mp.erf(mp.sqrt(y)) / mp.sqrt(y) -
                                 2 / mp.sqrt(mp.pi)) / y, tiny,
                      -2 / (3 * mp.sqrt(mp.pi))), [0, 1], 5)
    emit("erf_f32", "float", c, e,
         "(erf x - 2 x / sqrt(pi)) / x^3 of x^2, |x| <= 1")
    c, e = fit(lambda x: mp.log(mp.erfc(x), 2), [1, mpf("3.92")], 8)
    emit("erfc_log_f32", "float", c, e,
         "log2(erfc x), 1 <= x <= 3.92, absolute")
    tail("erfcx_f32", "float", 3, ("0", "10.15"), 9)

    most = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2 * mpf("1.0001")
    c, e = fit(series(lambda y: (2 * mp.atanh(mp.sqrt(y)) / mp.sqrt(y) - 2) / y,
                      tiny, mpf(2) / 3), [0, most], 8)
    emit("log_f64", "double", c, e * most / 2,
         "(2 atanh(s) - 2 s) / s^3 of s^2, s = f / (2 + f)")
    most = mpf(1) / 16
    c, e = fit(series(lambda y: (mp.sin(mp.pi * mp.sqrt(y)) / mp.sqrt(y)
                                 - mp.pi) / y, tiny, -mp.pi ** 3 / 6),
               [0, most], 7)
    emit("sinpi_f64", "double", c, e * most / 3,
         "(sin(pi r) - pi r) / r^3 of r^2, |r| <= 1/4")
    c, e = fit(series(lambda y: (mp.cos(mp.pi * mp.sqrt(y)) - 1) / y, tiny,
                      -mp.pi ** 2 / 2), [0, most], 8)
    emit("cospi_f64", "double", c, e * most,
         "(cos(pi r) - 1) / r^2 of r^2, |r| <= 1/4")
    half = mp.log(2) / 2 * mpf("1.0001")
    c, e = fit(series(lambda r: (mp.expm1(r) - r) / r ** 2, mpf(10) ** -15,
                      mpf(1) / 2), [-half, half], 11)
    emit("exp_f64", "double", c, e * half ** 2,
         "(exp(r) - 1 - r) / r^2, |r| <= log(2)/2")
    c, e = fit(series(lambda y: (mp.erf(mp.sqrt(y)) / mp.sqrt(y) -
                                 2 / mp.sqrt(mp.pi)) / y, tiny,
                      -2 / (3 * mp.sqrt(mp.pi))), [0, mpf("0.53")], 12)
    emit("erf_f64", "double", c, e * mpf("0.53"),
         "(erf x - 2 x / sqrt(pi)) / x^3 of x^2, |x| <= 0.72")
    operators(tiny, eighth)
    tail("erfcx_f64", "double", mpf("3.5"), ("0", "27.5"), 21)

    most = mpf("0.35") ** 2
    c, e = fit(series(lambda y: quantile(mpf(1) / 2 - mp.sqrt(y)) /
                      -mp.sqrt(y), tiny, mp.sqrt(2 * mp.pi)), [0, most], 20)
    emit("quantile_middle", "double", c, e / mpf("2.5"),
         "z / q of q^2, Phi(z) = 1/2 + q, |q| <= 0.35")
    bounds = [mpf(x) for x in ("1.37", "2", "3.25", "6", "12", "27.5")]
    print("\n/* Phi(z) = exp(-t^2): where the pieces below begin; the last end */")
    print("DTN_TABLE double quantile_bound[] = {\n    " +
          ", ".join(mp.nstr(b, 17) for b in bounds) + "\n};")
    pieces = []
    for a, b in zip(bounds, bounds[1:]):
        middle, reach = (a + b) / 2, (b - a) / 2
        pieces.append(fit(lambda x: -quantile(mp.exp(-(middle + reach * x) ** 2)),
                          [-1, 1], 19))
    worst = max(e for _, e in pieces)
    print(f"\n/* -z of (t - middle) / half of the piece, absolute: "
          f"{mp.nstr(worst, 2)} */")
    print("DTN_TABLE double quantile_tail[][20] = {")
    for c, _ in pieces:
        print("    { " + ",\n      ".join(
            mp.nstr(x, 17, min_fixed=1, max_fixed=0) for x in c) + " },")
    print("};\n\n#endif")
    return 0


if __name__ == "__main__":
    sys.exit(main())
