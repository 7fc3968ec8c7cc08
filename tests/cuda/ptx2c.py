#!/usr/bin/env python3
"""ptx2c.py [--fused] FILE.ptx [TABLE] > FILE.c - what nvcc made of kernels, as C

PTX is what nvcc compiles to, before ptxas makes machine code of it.  Here each
instruction becomes one C statement that does what a GPU does: the same rounding,
the GPU's NaN, 0x7fffffff, clamped shifts, and a stop at an address that is not
aligned.  So nvcc's output runs on a CPU, thread by thread, and a test compares
its bits with the library's.

A register holds bits, whatever its type; an operand is read as the type of the
instruction.  An instruction that is not known ends the translation, and so does
a float operation that is not rounded to nearest (.rn): nvcc writes those where
ptxas may fuse a product and a sum, which -fmad=false forbids.

Instructions that are approximate on a GPU are allowed in the kernels that are
named below, and nowhere else.  ptx_approximate.h has what a GPU may make of
them.

With --fused the file was compiled with -fmad=true, as other libraries are: the
operations without .rn are translated as rounded to nearest if ptxas finds no
product and sum among them that it could fuse.
"""
import re
import sys

WIDTH = {"pred": 8, "b8": 8, "u8": 8, "s8": 8, "b16": 16, "u16": 16, "s16": 16,
         "b32": 32, "u32": 32, "s32": 32, "f32": 32, "b64": 64, "u64": 64,
         "s64": 64, "f64": 64}
SPECIAL = {"%tid.x": "tid", "%ctaid.x": "ctaid", "%ntid.x": "ntid",
           "%nctaid.x": "nctaid"}
COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">",
           "ge": ">=", "lo": "<", "ls": "<=", "hi": ">", "hs": ">="}
OPPOSITE = {"equ": "ne", "neu": "eq", "ltu": "ge", "leu": "gt", "gtu": "le",
            "geu": "lt"}
FLOATS = """add sub mul div fma sqrt neg abs copysign rcp sin cos lg2 ex2
max""".split()
TOWARD_ZERO = ("s32", "s64", "u64")
PAIRS = ("f16x2", "bf16x2")
WHOLE = {"rni": "rint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}
INTEGERS = """add sub addc subc mul mad shl shr and or xor not neg div rem min
max abs prmt bfi""".split()
APPROXIMATE = """sin.approx.f32 cos.approx.f32 lg2.approx.f32 ex2.approx.f32
rcp.approx.ftz.f64""".split()
APPROXIMATE_KERNELS = [f"dtn_fill_cuda_{values}_{kind}"
                       for values in ("normal", "log_normal", "exponential")
                       for kind in ("f32", "f64")]
SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "and": "&", "or": "|",
         "xor": "^"}


class Refused(Exception):
    pass


translated = ""                     # the kernel that is being translated
unrounded = set()                   # its registers of products without .rn
may_fuse = "--fused" in sys.argv


def is_float(kind):
    return kind in ("f32", "f64")


def c_type(kind, bits=0):
    sign = "" if kind.startswith("s") else "u"
    return f"{sign}int{bits or WIDTH[kind]}_t"


def name(operand):
    """A register, label or array as a name of C."""
    return operand.lstrip("%$").replace(".", "_")


def bits(operand):
    """The bits of an operand."""
    if operand in SPECIAL:
        return SPECIAL[operand]
    if re.fullmatch(r"0[fF][0-9A-Fa-f]{8}", operand):
        return f"0x{operand[2:]}u"
    if re.fullmatch(r"0[dD][0-9A-Fa-f]{16}", operand):
        return f"0x{operand[2:]}ull"
    if re.fullmatch(r"-?\d+", operand):
        return f"({operand}ll)" if int(operand) < 2**63 else f"{operand}ull"
    if re.fullmatch(r"%\w+", operand):
        return name(operand)
    if re.fullmatch(r"\w+", operand):
        return f"(uint64_t)(uintptr_t){name(operand)}"
    raise Refused(f"operand {operand}")


def value(kind, operand):
    """An operand as a type."""
    if is_float(kind):
        return f"{kind}_of({bits(operand)})"
    return f"({c_type(kind)}){bits(operand)}"


def put(operand, kind, expression):
    """Assign; a narrower signed result is extended."""
    if is_float(kind):
        return f"{name(operand)} = {kind}_bits({expression});"
    return f"{name(operand)} = ({c_type(kind)})({expression});"


def address(operand):
    base, offset = re.fullmatch(r"\[([^+\]]+)(?:\+(-?\d+))?\]",
                                operand).groups()
    return f"{bits(base)} + ({offset or 0})"


def several(operand):
    return [o.strip() for o in operand.strip("{}").split(",")]


def memory(parts, args):
    kind, load = parts[-1], parts[0] == "ld"
    if not set(parts[1:-1]) <= {"param", "global", "nc", "v2", "v4", "v8"}:
        raise Refused("its space or its order")
    regs = several(args[0] if load else args[1])
    at, size = address(args[1] if load else args[0]), WIDTH[kind] // 8
    out = [f"aligned({at}, {size * len(regs)});"]
    for i, reg in enumerate(regs):
        place = f"({c_type(kind)} *)(uintptr_t)({at} + {i * size})"
        out.append(f"{name(reg)} = *(const {place[1:]};" if load else
                   f"*{place} = ({c_type(kind)}){bits(reg)};")
    return " ".join(out)


def move(kind, args):
    """Also of two halves into one register, and back."""
    half = WIDTH[kind] // 2
    if args[1].startswith("{"):
        low, high = several(args[1])
        return (f"{name(args[0])} = (uint{half}_t){bits(low)} | "
                f"(uint{2 * half}_t){bits(high)} << {half};")
    if args[0].startswith("{"):
        halves = zip(several(args[0]), (0, half))
        return " ".join(f"{name(to)} = (uint{half}_t)({bits(args[1])} >> {at});"
                        for to, at in halves if to != "_")
    return f"{name(args[0])} = {bits(args[1])};"


def compare(parts, args):
    if len(parts) != 3:
        raise Refused("more than a comparison")
    test, kind = parts[1:]
    a, b = value(kind, args[1]), value(kind, args[2])
    if test in ("nan", "num"):
        said = f"{'!' if test == 'num' else ''}({a} != {a} || {b} != {b})"
    elif is_float(kind) and (test == "ne" or OPPOSITE.get(test) == "ne"):
        said = f"{'!' if test == 'equ' else ''}({a} < {b} || {a} > {b})"
    elif is_float(kind) and test in OPPOSITE:
        said = f"!({a} {COMPARE[OPPOSITE[test]]} {b})"
    else:
        said = f"{a} {COMPARE[test]} {b}"
    return f"{name(args[0])} = {said};"


def convert(parts, args):
    to, kind = parts[-2:]
    rounding = parts[1:-2]
    if parts == ["cvt", "f32", "f16"]:
        return put(args[0], to, f"f32_nan(dtn_f16_widen({bits(args[1])}))")
    if to in PAIRS and kind == "f32" and rounding == ["rn"]:
        high, low = value(kind, args[1]), value(kind, args[2])
        return f"{name(args[0])} = pair_of_{to}({low}, {high});"
    a = value(kind, args[1])
    if not is_float(to) and not is_float(kind) and not rounding:
        return put(args[0], to, f"({c_type(to)}){a}")
    if is_float(kind) and to in TOWARD_ZERO and rounding == ["rzi"]:
        return put(args[0], to, f"toward_zero_{to}((double){a})")
    if is_float(kind) and to == kind and rounding and rounding[0] in WHOLE:
        suffix = "f" if kind == "f32" else ""
        return put(args[0], to,
                   f"{to}_nan(__builtin_{WHOLE[rounding[0]]}{suffix}({a}))")
    if to == "f64" and kind == "f32" and not rounding or (
            is_float(to) and rounding == ["rn"]):
        real = "float" if to == "f32" else "double"
        return put(args[0], to, f"{to}_nan(({real}){a})")
    raise Refused("not rounded to nearest")


def copied_sign(kind, args):
    """The sign of the first operand, the rest of the second."""
    sign = f"(1ull << {WIDTH[kind] - 1})"
    return (f"{name(args[0])} = ({bits(args[1])} & {sign}) | "
            f"({bits(args[2])} & ~{sign});")


def approximated(op, kind, args):
    if translated not in APPROXIMATE_KERNELS:
        raise Refused(f"approximate, in {translated}")
    return put(args[0], kind, f"ptx_{op}({value(kind, args[1])})")


def fused(op, args):
    """ptxas may make one operation of a product and a sum that takes it."""
    if op == "mul":
        unrounded.add(args[0])
    elif any(a in unrounded for a in args[1:]):
        raise Refused("ptxas may fuse it with a product")


def floats(parts, args):
    op, kind = parts[0], parts[-1]
    if ".".join(parts) in APPROXIMATE:
        return approximated(op, kind, args)
    if op == "copysign" and len(parts) == 2:
        return copied_sign(kind, args)
    v = [value(kind, a) for a in args[1:]]
    if op in ("neg", "abs") and len(parts) == 2:
        if args[1] in unrounded:
            unrounded.add(args[0])
        suffix = "f" if kind == "f32" else ""
        return put(args[0], kind, f"-{v[0]}" if op == "neg" else
                   f"__builtin_fabs{suffix}({v[0]})")
    if parts == ["max", "f32"]:
        return put(args[0], kind, f"f32_nan(max_f32({v[0]}, {v[1]}))")
    if may_fuse and len(parts) == 2 and op in ("add", "sub", "mul"):
        fused(op, args)
    elif parts[1:-1] != ["rn"]:
        raise Refused("not rounded to nearest")
    suffix = "f" if kind == "f32" else ""
    said = (f"__builtin_fma{suffix}({', '.join(v)})" if op == "fma" else
            f"__builtin_sqrt{suffix}({v[0]})" if op == "sqrt" else
            f"1 / {v[0]}" if op == "rcp" else
            f"{v[0]} {SIGNS[op]} {v[1]}")
    return put(args[0], kind, f"{kind}_nan({said})")


def products(parts, args):
    """mul and mad: the lower half, the upper half, or all bits."""
    op, which, kind = parts
    width = WIDTH[kind]
    wide = f"{'' if kind[0] == 's' else 'unsigned '}__int128" if width == 64 \
        else c_type(kind, 2 * width)
    both = f"({wide}){value(kind, args[1])} * {value(kind, args[2])}"
    if which == "lo":
        both = f"(uint64_t){bits(args[1])} * (uint64_t){bits(args[2])}"
    elif which == "hi":
        both = f"({both}) >> {width}"
    unsigned = c_type("u8", 2 * width if which == "wide" else width)
    more = f" + ({unsigned}){bits(args[3])}" if op == "mad" else ""
    return f"{name(args[0])} = ({unsigned})(({unsigned})({both}){more});"


def carried(parts, args):
    """Sums of 64 bits with a carry: add.cc, addc.cc, addc, and of sub."""
    op, kind = parts[0][:3], c_type("u8", WIDTH[parts[-1]])
    a, b = f"({kind}){bits(args[1])}", f"({kind}){bits(args[2])}"
    carry = "carry" if parts[0].endswith("c") else "0"
    keep = "carry = " if "cc" in parts else ""
    return (f"{{ {kind} sum; {keep}{op}_carry_{WIDTH[parts[-1]]}({a}, {b}, "
            f"{carry}, &sum); {name(args[0])} = sum; }}")


def shift(parts, args):
    kind = parts[-1]
    a, n, top = value(kind, args[1]), f"(uint32_t){bits(args[2])}", WIDTH[kind]
    if parts[0] == "shl":
        return put(args[0], kind, f"{n} >= {top} ? 0 : {a} << ({n} % {top})")
    past = f"{a} >> {top - 1}" if kind[0] == "s" else "0"
    return put(args[0], kind,
               f"{n} >= {top} ? {past} : {a} >> ({n} % {top})")


def integers(parts, args):
    op, kind = parts[0], parts[-1]
    v = [value(kind, a) for a in args[1:]]
    u = c_type("u8", max(32, WIDTH[kind]))
    if "cc" in parts or op in ("addc", "subc"):
        return carried(parts, args)
    if op in ("mul", "mad"):
        return products(parts, args)
    if op in ("shl", "shr"):
        return shift(parts, args)
    if len(parts) != 2:
        raise Refused("a variant that is not known")
    if op in ("add", "sub", "and", "or", "xor"):
        return put(args[0], kind, f"({u}){v[0]} {SIGNS[op]} ({u}){v[1]}")
    if op == "not":
        return put(args[0], kind, f"{'!' if kind == 'pred' else '~'}{v[0]}")
    if op == "neg":
        return put(args[0], kind, f"0 - ({u}){v[0]}")
    if op in ("div", "rem"):
        sign = "/" if op == "div" else "%"
        return put(args[0], kind, f"{v[0]} {sign} nonzero({v[1]})")
    if op in ("min", "max"):
        sign = "<" if op == "min" else ">"
        return put(args[0], kind, f"{v[0]} {sign} {v[1]} ? {v[0]} : {v[1]}")
    if op == "abs":
        return put(args[0], kind, f"{v[0]} < 0 ? 0 - ({u}){v[0]} : ({u}){v[0]}")
    if op == "prmt":
        return put(args[0], kind, f"permuted({', '.join(v)})")
    if op == "bfi":
        return put(args[0], kind, f"inserted({', '.join(v)}, {WIDTH[kind]})")
    raise Refused("not known")


def instruction(op, args):
    parts = op.split(".")
    head, kind = parts[0], parts[-1]
    if head == "ret":
        return "return;"
    if head == "bra":
        return f"goto {name(args[0])};"
    if head == "cvta":
        return f"{name(args[0])} = {bits(args[1])};"
    if head == "mov":
        return move(kind, args)
    if head in ("ld", "st"):
        return memory(parts, args)
    if head == "setp":
        return compare(parts, args)
    if head == "selp":
        return (f"{name(args[0])} = {bits(args[3])} ? "
                f"{bits(args[1])} : {bits(args[2])};")
    if head == "cvt":
        return convert(parts, args)
    if head in (FLOATS if is_float(kind) else INTEGERS):
        return (floats if is_float(kind) else integers)(parts, args)
    raise Refused("not known")


def operands(text):
    """Cut at the commas that are not in braces."""
    return [o.strip() for o in re.findall(r"(?:\{[^}]*\}|[^,])+", text)]


def statement(text):
    """One statement of PTX, without its semicolon."""
    guard = re.match(r"@(!?)(%\w+)\s+(.*)", text)
    if guard:
        text = guard.group(3)
    op, _, rest = text.partition(" ")
    try:
        said = instruction(op, operands(rest))
    except Refused as why:
        sys.exit(f"ptx2c: {text}: {why}")
    except (KeyError, ValueError, IndexError, AttributeError):
        sys.exit(f"ptx2c: {text}: not known")
    return f"if ({guard.group(1)}{name(guard.group(2))}) {{ {said} }}" \
        if guard else said


def registers(body):
    for kind, prefix, n in re.findall(r"\.reg \.(\w+)\s+(%\w+)<(\d+)>;", body):
        each = ", ".join(f"{name(prefix)}{i} = 0" for i in range(int(n)))
        print(f"    {c_type('u8', WIDTH[kind])} {each};")


def kernel(entry, param, body):
    global translated
    translated = entry
    unrounded.clear()
    print(f"\nstatic void {entry}_thread(const void *{param}, uint32_t tid, "
          "uint32_t ctaid,\n    uint32_t ntid, uint32_t nctaid)\n{")
    registers(body)
    print("    unsigned carry = 0;\n\n    (void)carry;")
    body = re.sub(r"\{\s*\.reg \.b\d+ (%?\w+);\s*(mov\.b\d+[^;]*;)\s*\}",
                  lambda found: found.group(2).replace(found.group(1), "_"),
                  body)                     # half of it is not used
    body = re.sub(r"\.(reg|pragma)\b[^;]*;", "", body)
    for line in re.split(r";|(?<=:)\s*\n", body):
        line = " ".join(line.split())
        label = re.match(r"(\$\w+):\s*(.*)", line)
        if label:
            print(f"{name(label.group(1))}:;")
            line = label.group(2)
        if line:
            print(f"    {statement(line)}")
    print("}\nstatic void " + f"{entry}_run(const void *args, uint64_t block, "
          "uint64_t blocks)\n{\n"
          "    for (uint32_t t = 0; t < DTN_KERNEL_THREADS; t++)\n"
          f"        {entry}_thread(args, t, (uint32_t)block, "
          "DTN_KERNEL_THREADS,\n            (uint32_t)blocks);\n}")


def main():
    files = [a for a in sys.argv[1:] if a != "--fused"]
    text = re.sub(r"//[^\n]*", "", open(files[0], encoding="ascii").read())
    print('#include "tests/cuda/ptx.h"')
    for align, array, n, content in re.findall(
            r"\.global \.align (\d+) \.b8 (\w+)\[(\d+)\] = (\{[^}]*\});", text):
        print(f"static const _Alignas({align}) uint8_t {array}[{n}] = "
              f"{content};")
    found = re.findall(r"\.entry (\w+)\(\s*\.param \.align \d+ \.b8 "
                       r"(\w+)\[(\d+)\]\s*\)[^{]*\{\n(.*?)\n\}", text, re.S)
    if not found or len(found) != text.count(".entry"):
        sys.exit("ptx2c: a kernel with other parameters than one struct")
    if re.search(r"\.(func|local|shared|extern|const)\b", text):
        sys.exit("ptx2c: functions, or memory that is not global")
    for entry, param, _, body in found:
        kernel(entry, param, body)
    table = files[1] if len(files) > 1 else "ptx_kernels"
    print(f"\nconst struct ptx_kernel {table}[] = {{")
    for entry, _, size, _ in found:
        print(f'    {{ "{entry}", {size}, {entry}_run }},')
    print("    { 0, 0, 0 }\n};")


main()
