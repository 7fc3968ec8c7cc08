#!/usr/bin/env python3
"""op_torch.py - the arithmetic of operators beside PyTorch's, on one thread

    python3 tests/peers/op_torch.py LIBDTENSOR.so [ROWS COLUMNS [CALLS]]

Both compute from the same inputs, which are the memory of our tensors, into
memory that is there already, in turn, a call each.  Of each the median of its
CPU time counts; a ratio is of ours to PyTorch's: below 1 we are faster.  "off"
is the largest difference of two results, relative to the largest result.  OPS
in the environment names some operators, "sum of columns,exp".  Run by op.sh.
"""
import ctypes
import math
import os
import statistics
import sys
import time

import torch

torch.set_num_threads(1)
aten = torch.ops.aten
TYPES = {"f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16,
         "f16": torch.float16, "i64": torch.int64, "i32": torch.int32,
         "bool": torch.bool}
CAST = {"f32": "bf16", "f64": "f32", "bf16": "f32", "f16": "f32"}


class Library:
    """libdtensor through ctypes; structs are opaque, and large enough."""

    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        self.error = ctypes.create_string_buffer(8192)
        self.ctx = ctypes.c_void_p()
        self.good(self.lib.dtensor_init(None, ctypes.byref(self.ctx),
                                        self.error))
        self.lib.dtensor_to_local.restype = ctypes.c_void_p
        self.lib.dtensor_dtype_size.restype = ctypes.c_size_t

    def good(self, rc):
        if rc != 0:
            raise RuntimeError(self.error.raw[12:].split(b"\0")[0].decode())

    def args(self, text):
        args = ctypes.create_string_buffer(4096)
        self.good(self.lib.dtensor_op_args_parse(text.encode(), args,
                                                 self.error))
        return args

    def tensor(self, dtype, shape):
        spec = ctypes.create_string_buffer(8192)
        number = ctypes.c_int()
        tensor = ctypes.c_void_p()
        self.good(self.lib.dtensor_dtype_parse(
            dtype.encode(), ctypes.byref(number), self.error))
        self.good(self.lib.dtensor_spec_init(
            spec, self.ctx, b"world", b"R", number, len(shape),
            (ctypes.c_int64 * len(shape))(*shape), self.error))
        self.good(self.lib.dtensor_zeros(spec, ctypes.byref(tensor),
                                         self.error))
        return tensor

    def seen(self, tensor, dtype, shape):
        """The same memory as a tensor of PyTorch."""
        kind = TYPES[dtype]
        size = math.prod(shape) * torch.empty(0, dtype=kind).element_size()
        memory = (ctypes.c_char * size).from_address(
            self.lib.dtensor_to_local(tensor))
        return torch.frombuffer(memory, dtype=kind).reshape(shape)

    def into(self, op, inputs, args, out):
        ins = (ctypes.c_void_p * len(inputs))(*[t.value for t in inputs])
        outs = (ctypes.c_void_p * 1)(out.value)
        return lambda: self.good(self.lib.dtensor_op_into(
            op.encode(), len(inputs), ins, args, 1, outs, self.error))


def cases(rows, columns, dtype):
    """name, operator, args, letters of inputs, output's shape, PyTorch's."""
    whole = (rows, columns)

    def unary(name):
        return (name, name, "", "x", whole,
                lambda i, o: getattr(aten, name).out(*i, out=o))

    def norm(i, o):
        mean, rstd = (norm.of.setdefault((o.dtype, k),
                                         o.new_empty(rows, 1)) for k in (0, 1))
        return aten.native_layer_norm.out(i[0], [columns], i[1], i[2], 1e-5,
                                          out0=o, out1=mean, out2=rstd)[0]

    norm.of = {}
    yield ("matmul", "matmul", "", "xt", (rows, rows),
           lambda i, o: aten.mm.out(*i, out=o))
    yield ("linear", "linear", "", "xy", (rows, rows),
           lambda i, o: aten.mm.out(i[0], i[1].t(), out=o))
    yield ("add", "add", "", "xy", whole, lambda i, o: aten.add.out(*i, out=o))
    yield ("mul", "mul", "", "xy", whole, lambda i, o: aten.mul.out(*i, out=o))
    yield ("div", "div", "", "xy", whole, lambda i, o: aten.div.out(*i, out=o))
    yield ("add a row", "add", "", "xv", whole,
           lambda i, o: aten.add.out(*i, out=o))
    yield ("where", "where", "", "bxy", whole,
           lambda i, o: aten.where.self_out(*i, out=o))
    yield (f"to {CAST[dtype]}", "cast", f"dtype={CAST[dtype]}", "x", whole,
           lambda i, o: o.copy_(i[0]))
    for name in ("relu", "exp", "log", "tanh", "sigmoid", "gelu", "silu",
                 "softplus", "erf", "erfc", "expm1", "log1p", "log2", "sin",
                 "cos", "sinh", "sqrt", "rsqrt"):
        yield unary(name)
    yield ("pow", "pow", "p=2.5", "x", whole,
           lambda i, o: aten.pow.Tensor_Scalar_out(i[0], 2.5, out=o))
    for name, dim, shape in (("", 1, (rows,)),
                             (" of columns", 0, (columns,))):
        yield (f"sum{name}", "sum", f"dim={dim}", "x", shape,
               lambda i, o, d=dim: aten.sum.IntList_out(i[0], [d], out=o))
        yield (f"mean{name}", "mean", f"dim={dim}", "x", shape,
               lambda i, o, d=dim: aten.mean.out(i[0], [d], out=o))
        yield (f"norm{name}", "norm", f"p=2,dim={dim}", "x", shape,
               lambda i, o, d=dim: aten.linalg_vector_norm.out(i[0], 2, [d],
                                                               out=o))
        yield (f"amax{name}", "amax", f"dim={dim}", "x", shape,
               lambda i, o, d=dim: aten.amax.out(i[0], [d], out=o))
        yield (f"argmax{name}", "argmax", f"dim={dim}", "x", shape,
               lambda i, o, d=dim: aten.argmax.out(i[0], d, out=o))
    yield ("softmax", "softmax", "dim=1", "x", whole,
           lambda i, o: aten._softmax.out(i[0], 1, False, out=o))
    yield ("log_softmax", "log_softmax", "dim=1", "x", whole,
           lambda i, o: aten._log_softmax.out(i[0], 1, False, out=o))
    yield ("layer_norm", "layer_norm", "count=1", "xvv", whole, norm)
    # It has no form that writes into memory that is there.
    yield ("rms_norm", "rms_norm", "count=1", "xv", whole,
           lambda i, o: aten._fused_rms_norm(i[0], [columns], i[1], 1e-5)[0])
    yield ("embedding", "embedding", "", "xi", whole,
           lambda i, o: aten.embedding.out(*i, out=o))


def more_cases(rows, columns, dtype):
    """Other dimensions, shapes and types, as cases() has them."""
    whole, deep = (rows, columns), (16, rows // 16, columns)
    column = (rows, 1)

    for name in ("maximum", "lt"):
        yield (name, name, "", "xy", whole,
               lambda i, o, f=name: getattr(aten, name).out(*i, out=o)
               if name == "maximum" else aten.lt.Tensor_out(*i, out=o))
    yield ("clamp", "clamp", "low=0.5,high=2", "x", whole,
           lambda i, o: aten.clamp.out(i[0], 0.5, 2, out=o))
    yield ("scale", "scale", "value=1.5", "x", whole,
           lambda i, o: aten.mul.out(i[0], 1.5, out=o))
    yield ("lerp", "lerp", "", "xyz", whole,
           lambda i, o: aten.lerp.Tensor_out(*i, out=o))
    yield ("add a column", "add", "", "xc", whole,
           lambda i, o: aten.add.out(*i, out=o))
    yield ("row by column", "mul", "", "cv", whole,
           lambda i, o: aten.mul.out(*i, out=o))
    yield ("where a row", "where", "", "bxv", whole,
           lambda i, o: aten.where.self_out(*i, out=o))
    for kind in ("f32", "f64", "bf16", "f16", "i64", "i32", "bool"):
        if kind != dtype and kind != CAST[dtype]:
            yield (f"to {kind}", "cast", f"dtype={kind}", "x", whole,
                   lambda i, o: o.copy_(i[0]))
    yield ("from i64", "cast", f"dtype={dtype}", "n", whole,
           lambda i, o: o.copy_(i[0]))
    yield ("from bool", "cast", f"dtype={dtype}", "b", whole,
           lambda i, o: o.copy_(i[0]))
    for name, shape, dims, out in (
            ("of all", "x", [0, 1], ()),
            ("of the middle", "d", [1], (deep[0], columns)),
            ("of outer two", "d", [0, 1], (columns,)),
            ("of first and last", "d", [0, 2], (deep[1],))):
        arg = "dim=" + "+".join(map(str, dims))
        yield (f"sum {name}", "sum", arg, shape, out,
               lambda i, o, d=dims: aten.sum.IntList_out(i[0], d, out=o))
        yield (f"amax {name}", "amax", arg, shape, out,
               lambda i, o, d=dims: aten.amax.out(i[0], d, out=o))
        yield (f"norm {name}", "norm", "p=2," + arg, shape, out,
               lambda i, o, d=dims: aten.linalg_vector_norm.out(i[0], 2, d,
                                                                out=o))
    yield ("argmax of the middle", "argmax", "dim=1", "d", (deep[0], columns),
           lambda i, o: aten.argmax.out(i[0], 1, out=o))
    for dim in (0, 1):
        out = ((columns,), (rows,))[dim]
        yield (f"norm 1 of {dim}", "norm", f"p=1,dim={dim}", "x", out,
               lambda i, o, d=dim: aten.linalg_vector_norm.out(i[0], 1, [d],
                                                               out=o))
        yield (f"prod of {dim}", "prod", f"dim={dim}", "x", out,
               lambda i, o, d=dim: aten.prod.int_out(i[0], d, out=o))
        yield (f"var of {dim}", "var", f"dim={dim}", "x", out,
               lambda i, o, d=dim: aten.var.correction_out(i[0], [d], out=o))
        yield (f"logsumexp of {dim}", "logsumexp", f"dim={dim}", "x", out,
               lambda i, o, d=dim: aten.logsumexp.out(i[0], [d], out=o))
        yield (f"cumsum of {dim}", "cumsum", f"dim={dim}", "x", whole,
               lambda i, o, d=dim: aten.cumsum.out(i[0], d, out=o))
    for name, shape, dim in (("of columns", "x", 0),
                             ("of the middle", "d", 1)):
        out = whole if shape == "x" else deep
        yield (f"softmax {name}", "softmax", f"dim={dim}", shape, out,
               lambda i, o, d=dim: aten._softmax.out(i[0], d, False, out=o))
        yield (f"log_softmax {name}", "log_softmax", f"dim={dim}", shape, out,
               lambda i, o, d=dim: aten._log_softmax.out(i[0], d, False,
                                                         out=o))
    yield ("transpose", "transpose", "dim=0+1", "x", (columns, rows),
           lambda i, o: o.copy_(i[0].t()))
    yield ("permute 102", "permute", "dim=1+0+2", "d",
           (deep[1], deep[0], columns),
           lambda i, o: o.copy_(i[0].permute(1, 0, 2)))
    yield ("permute 201", "permute", "dim=2+0+1", "d",
           (columns, deep[0], deep[1]),
           lambda i, o: o.copy_(i[0].permute(2, 0, 1)))
    yield ("clone", "clone", "", "x", whole, lambda i, o: o.copy_(i[0]))
    yield ("cat", "cat", "dim=1", "xy", (rows, 2 * columns),
           lambda i, o: aten.cat.out(i, 1, out=o))
    yield ("expand", "expand", f"shape={rows}x{columns}", "c", whole,
           lambda i, o: o.copy_(i[0].expand(whole)))
    yield ("index_select 1", "index_select", "dim=1", "xj", whole,
           lambda i, o: aten.index_select.out(i[0], 1, i[1], out=o))
    yield ("gather 1", "gather", "dim=1", "xk", whole,
           lambda i, o: aten.gather.out(i[0], 1, i[1], out=o))
    # It has no form that writes into memory that is there.
    yield ("cross_entropy", "cross_entropy", "reduction=mean", "xi", (),
           lambda i, o: aten.cross_entropy_loss(*i))


def inputs_of(library, letters, dtype, rows, columns):
    shapes = {"t": (columns, rows), "v": (columns,), "i": (rows,),
              "j": (columns,), "c": (rows, 1),
              "d": (16, rows // 16, columns)}
    below = {"b": 2, "i": rows, "j": columns, "k": columns, "n": 100}
    ours, theirs = [], []
    for letter in letters:
        shape = shapes.get(letter, (rows, columns))
        kind = "bool" if letter == "b" else "i64" if letter in below else dtype
        ours.append(library.tensor(kind, shape))
        theirs.append(library.seen(ours[-1], kind, shape))
        if letter in below:
            theirs[-1].copy_(torch.randint(0, below[letter], shape))
        else:
            theirs[-1].copy_(torch.rand(shape) * 3.75 + 0.25)
    return ours, theirs


def median_us(calls, *contestants):
    times = [[] for _ in contestants]
    for i in range(-3, calls):
        for k in range(len(contestants)):
            who = (k + i) % len(contestants)
            start = time.thread_time_ns()
            contestants[who]()
            if i >= 0:
                times[who].append((time.thread_time_ns() - start) / 1e3)
    return [statistics.median(t) for t in times]


def compare(library, case, dtype, rows, columns, calls):
    name, op, args, letters, shape, peer = case
    ours, theirs = inputs_of(library, letters, dtype, rows, columns)
    kind = {"argmax": "i64", "lt": "bool"}.get(op, dtype)
    kind = args[6:] if op == "cast" else kind
    out = library.tensor(kind, shape)
    call = library.into(op, ours, library.args(args), out)
    made = torch.empty(shape, dtype=TYPES[kind])
    us = median_us(calls, call, lambda: peer(theirs, made))
    made = peer(theirs, made)
    got = library.seen(out, kind, shape).double()
    off = (got - made.double()).abs().max() / made.double().abs().max()
    print(f"{name:22} {dtype:5} {us[0]:10.1f} {us[1]:10.1f} "
          f"{us[0] / us[1]:7.2f} {off.item():9.1e}", flush=True)
    for tensor in [*ours, out]:
        library.lib.dtensor_destroy(tensor)
    return us[0] / us[1]


def dispatch():
    """What PyTorch's DTensor adds to an addition of 8 x 8, us; or why not."""
    from torch.distributed.tensor import DTensor, Replicate, init_device_mesh
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29517", RANK="0",
                      WORLD_SIZE="1")
    mesh = init_device_mesh("cpu", (1,))
    plain = torch.rand(8, 8)
    tensor = DTensor.from_local(plain, mesh, [Replicate()])
    with_it, without = median_us(3000, lambda: tensor + tensor,
                                 lambda: plain + plain)
    torch.distributed.destroy_process_group()
    return with_it - without


def main():
    library = Library(sys.argv[1])
    rows, columns = (int(x) for x in (sys.argv[2:4] or (1024, 1024)))
    calls = int(sys.argv[4]) if len(sys.argv) > 4 else 30
    slower = []
    print(f"PyTorch {torch.__version__}, 1 thread; {rows} x {columns}, medians "
          f"of {calls} calls, us\n{'operator':22} {'type':5} {'ours':>10} "
          f"{'PyTorch':>10} {'ratio':>7} {'off':>9}")
    table = more_cases if os.environ.get("MORE") else cases
    only = [op for op in os.environ.get("OPS", "").split(",") if op]
    for dtype in ("f32", "f64", "bf16", "f16"):
        for case in table(rows, columns, dtype):
            if only and case[0] not in only:
                continue
            if case[1] == "matmul" and dtype == "f16":
                continue           # PyTorch's takes two seconds
            ratio = compare(library, case, dtype, rows, columns, calls)
            if ratio > 1:
                slower.append(f" {case[0]} {dtype} {ratio:.2f}")
    print("target: no slower than PyTorch: "
          + ("met" if not slower else "missed:" + "".join(slower)))
    print(f"PyTorch's DTensor adds {dispatch():.1f} us to a call "
          "(dtensor-bench op call-into says ours, with its arithmetic)")


if __name__ == "__main__":
    main()
