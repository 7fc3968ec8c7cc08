#!/usr/bin/env python3
"""random_fit.py - make lib/base/coefficients.h

Nearly minimax polynomials (Chebyshev interpolation in 60 digits) for the
functions that turn words into values, and for those of operators.  Needs mpmath.  The file is committed;
run this only to change a degree:

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
"""


def fit(function, interval, degree):
    """Coefficients, lowest first, and the error that mpmath measured."""
    poly, error = mp.chebyfit(function, interval, degree + 1, error=True)
    return list(reversed(poly)), error


def emit(name, ctype, coefficients, error, what):
    digits, suffix = (9, "f") if ctype == "float" else (17, "")
    body = ",\n".join("    " + mp.nstr(c, digits, min_fixed=1, max_fixed=0) + suffix
                      for c in coefficients)
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
                      -2 / (3 * mp.sqrt(mp.pi))), [0, mpf("0.53")], 5)
    emit("erf_f32", "float", c, e * mpf("0.53"),
         "(erf x - 2 x / sqrt(pi)) / x^3 of x^2, |x| <= 0.72")
    c, e = fit(lambda t: erfcx(3 * (1 + t) / (1 - t)),
               [-1, (mpf("10.2") - 3) / (mpf("10.2") + 3)], 10)
    emit("erfcx_f32", "float", c, e / mpf("0.055"),
         "exp(x^2) erfc(x) of (x - 3) / (x + 3), 0 <= x <= 10.2")

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
    c, e = fit(lambda t: erfcx(3 * (1 + t) / (1 - t)), [-1, mpf(24) / 31], 24)
    emit("erfcx_f64", "double", c, e / mpf("0.02"),
         "exp(x^2) erfc(x) of (x - 3) / (x + 3), 0 <= x <= 27.5")

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
