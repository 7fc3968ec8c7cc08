#!/usr/bin/env python3
"""make_ops.py - what PyTorch chooses for operators, and their gradients

    python3 -m venv venv && venv/bin/pip install torch numpy
    venv/bin/python tests/golden/make_ops.py again tests/golden/ops.txt
    venv/bin/python tests/golden/make_ops.py draw SEED 3,8,2x3,4x2 >other.txt
    venv/bin/python tests/golden/make_ops.py any SEED 5,2x3,2x2x2 600 >any.txt

"again" makes each line of a table anew from its call and prints it; what it
prints is the table if nothing has changed.  "draw" draws other calls from the
same operators: sizes and placements follow from the seed.  "any" draws that many
calls of operators, shapes and meshes taken at random: sizes that nothing
divides, 1, more dimensions at the left, views of any kind.  Two words before
the mode, "I/N", make every N-th line only, from line I on.

One process stands for eight ranks of one host: a fake process group to plan,
LocalTensorMode to run.  Inputs are whole numbers, terms of sums and averages
too, so that results are exact but for division and the like.
"""
import itertools
import random
import sys
import warnings

import torch
import torch.distributed as dist
from torch.distributed._local_tensor import LocalTensor, LocalTensorMode
from torch.distributed.device_mesh import DeviceMesh, _mesh_resources
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.distributed.tensor import _redistribute
from torch.distributed.tensor._collective_utils import redistribute_cost
from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from torch.distributed.tensor._utils import (
    compute_local_shape_and_global_offset)
from torch.testing._internal.distributed.fake_pg import FakeStore

WORLD = 8
aten = torch.ops.aten
DTYPES = {"f64": torch.float64, "i64": torch.int64, "bool": torch.bool,
          "f32": torch.float32}
# Not compared: random, one of several right answers, or no kernel on CPU.
UNCHECKED = ("dropout", "rand_like", "sort", "topk", "argmax", "sdpa_flash",
             "sdpa_efficient", "convolution", "scatter", "rms_norm")
LARGE = 100000                    # elements that are planned only


# ------------------------------------------------------------------- words

def word(p):
    """A placement as the table has it."""
    name = type(p).__name__
    if name == "_StridedShard":
        return f"SS({p.dim},{p.split_factor})"
    if name == "Shard":
        return f"S({p.dim})"
    if name == "_MaskPartial":
        return f"P(mask{p.offset_dim})"
    if name == "_NormPartial":
        return f"P(norm{p.norm_type:g})"
    if isinstance(p, Partial):
        return f"P({'prod' if p.reduce_op == 'product' else p.reduce_op})"
    return "R"


def place(text):
    if text == "R":
        return Replicate()
    if text[0] == "S":
        return Shard(int(text[2:-1]))
    return Partial("product" if text == "P(prod)" else text[2:-1])


def numbers(text):
    return tuple(int(n) for n in text.split("x"))


class Call:
    """A line of the table, before its ">"."""

    def __init__(self, line):
        parts = line.split()
        self.name, self.static = parts[0], parts[1]
        self.mesh = numbers(parts[2])
        self.inputs = []
        for text in parts[3:]:
            if text in (">", "="):
                break
            shape, dtype, places = text.split(":")
            self.inputs.append((() if shape == "0d" else numbers(shape), dtype,
                                tuple(place(p) for p in split(places))))
        self.told = dict(w.split("=") for w in self.static.split(",")
                         if "=" in w)

    def dims(self, key):
        return [int(d) for d in self.told[key].split("+")]

    def number(self, key):
        return int(self.told[key])

    def __str__(self):
        inputs = (f"{'x'.join(map(str, shape)) or '0d'}:{dtype}:"
                  f"{','.join(word(p) for p in places)}"
                  for shape, dtype, places in self.inputs)
        return (f"{self.name} {self.static} {'x'.join(map(str, self.mesh))} "
                + " ".join(inputs))


def split(places):
    """At the commas outside of parentheses."""
    out, depth = [""], 0
    for c in places:
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            out.append("")
        else:
            out[-1] += c
    return out


# --------------------------------------------------------------- operators

def reduced(op, keyed=True):
    def make(c, x):
        return op, (x, c.dims("dim"), bool(c.number("keepdim"))), {}
    return make


def plain(op, *more):
    return lambda c, *x: (op, x + more, {})


def padded(c, x):
    before, after = c.told["pad"].split(":")[1].split("+")
    return aten.constant_pad_nd.default, (
        x, [int(before), int(after)], c.number("value")), {}


def sliced(c, x):
    ends = ((0, sys.maxsize, 1) if "full" in c.static else
            (c.number("start"), c.number("end"), c.number("step")))
    return aten.slice.Tensor, (x, c.number("dim"), *ends), {}


def normed(c, x):
    p = float(c.told["ord"])
    dims = c.dims("dim") if "dim" in c.told else None
    return aten.linalg_vector_norm.default, (x, p, dims, False), {}


def loss(c, x, t):
    how = ("none", "mean", "sum").index(c.told["reduction"])
    return aten.nll_loss_forward.default, (x, t, None, how, -100), {}


def convolved(c, x, w, b):
    n = c.number("stride")
    return aten.convolution.default, (x, w, b, [n, n], [c.number("padding")] * 2,
                                      [1, 1], False, [0, 0], 1), {}


def size(text):
    return [int(n) for n in text.split("x")]


def picked(op, *more):
    return lambda c, x, *rest: (op, (x, c.dims("dim")[0], *rest) + more, {})


def cast(dtype):
    return lambda c, x: (aten._to_copy.default, (x,), {"dtype": dtype})


def backward_norm(c, g, x, mean, rstd, w, b):
    return aten.native_layer_norm_backward.default, (
        g, x, size(c.told["normalized"]), mean, rstd, w, b, [True] * 3), {}


OPS = {name: plain(getattr(aten, name).default) for name in (
    "relu", "sigmoid", "exp", "neg", "gelu", "tanh", "abs", "log", "silu",
    "clone", "zeros_like", "rand_like", "mm", "bmm", "dot", "addmm", "baddbmm",
    "maximum", "minimum", "embedding", "copy_", "tril", "sum", "mean", "t",
    "addcmul")}
OPS |= {name: plain(getattr(aten, name).Tensor) for name in (
    "add", "sub", "mul", "div", "lt", "add_", "mul_")}
OPS |= {name: reduced(op) for name, op in {
    "sum.dim": aten.sum.dim_IntList, "mean.dim": aten.mean.dim,
    "amax": aten.amax.default, "amin": aten.amin.default}.items()}
OPS |= {name: (lambda op: lambda c, x: (
    op, (x, c.number("dim"), bool(c.number("keepdim"))), {}))(op)
    for name, op in {"prod.dim": aten.prod.dim_int, "any.dim": aten.any.dim,
                     "max.dim": aten.max.dim,
                     "argmax": aten.argmax.default}.items()}
OPS |= {
    "add_scalar": plain(aten.add.Tensor, 2),
    "mul_scalar": plain(aten.mul.Tensor, 3),
    "div_scalar": plain(aten.div.Tensor, 2),
    "pow_scalar": plain(aten.pow.Tensor_Scalar, 2),
    "clamp": plain(aten.clamp.default, -1, 1),
    "where": plain(aten.where.self),
    "fill_": plain(aten.fill_.Scalar, 3),
    "to_i64": cast(torch.int64), "to_f32": cast(torch.float32),
    "to_bool": cast(torch.bool),
    "dropout": plain(aten.native_dropout.default, 0.5, True),
    "new_zeros": lambda c, x: (aten.new_zeros.default,
                               (x, size(c.told["size"])), {}),
    "vector_norm": normed, "nll_loss": loss, "convolution": convolved,
    "pad": padded, "slice": sliced, "layer_norm_backward": backward_norm,
    "var": lambda c, x: (aten.var.correction, (x, c.dims("dim")),
                         {"correction": 1}),
    "logsumexp": lambda c, x: (aten.logsumexp.default, (x, c.dims("dim")), {}),
    "cumsum": picked(aten.cumsum.default), "sort": picked(aten.sort.default),
    "topk": lambda c, x: (aten.topk.default, (x, c.number("k"),
                                              c.number("dim")), {}),
    "softmax": picked(aten._softmax.default, False),
    "log_softmax": picked(aten._log_softmax.default, False),
    "softmax_backward": lambda c, g, y: (
        aten._softmax_backward_data.default,
        (g, y, c.number("dim"), torch.float64), {}),
    "layer_norm": lambda c, x, w=None, b=None: (
        aten.native_layer_norm.default,
        (x, size(c.told["normalized"]), w, b, 1e-5), {}),
    "rms_norm": lambda c, x, w: (
        aten._fused_rms_norm.default,
        (x, size(c.told["normalized"]), w, 1e-5), {}),
    "embedding_backward": lambda c, g, i: (
        aten.embedding_dense_backward.default,
        (g, i, c.number("num_weights"), -1, False), {}),
    "sdpa_flash": plain(aten._scaled_dot_product_flash_attention.default,
                        0.0, True),
    "sdpa_efficient": plain(
        aten._scaled_dot_product_efficient_attention.default, None, True, 0.0,
        True),
    "cat": lambda c, *x: (aten.cat.default, (list(x), c.number("dim")), {}),
    "stack": lambda c, *x: (aten.stack.default, (list(x), c.number("dim")), {}),
    "split": lambda c, x: (aten.split.Tensor, (x, c.number("size"),
                                               c.number("dim")), {}),
    "unbind": picked(aten.unbind.int), "unsqueeze": picked(
        aten.unsqueeze.default), "squeeze": picked(aten.squeeze.dim),
    "select": lambda c, x: (aten.select.int, (x, c.number("dim"),
                                              c.number("index")), {}),
    "gather": picked(aten.gather.default),
    "index_select": picked(aten.index_select.default),
    "index": lambda c, x, i: (aten.index.Tensor, (x, [i]), {}),
    "scatter": picked(aten.scatter.src),
    "scatter_add": picked(aten.scatter_add.default),
    "flip": lambda c, x: (aten.flip.default, (x, c.dims("dims")), {}),
    "view": lambda c, x: (aten.view.default, (x, size(c.told["to"])), {}),
    "reshape": lambda c, x: (aten.reshape.default, (x, size(c.told["to"])), {}),
    "expand": lambda c, x: (aten.expand.default, (x, size(c.told["to"])), {}),
    "repeat": lambda c, x: (aten.repeat.default, (x, size(c.static)), {}),
    "permute": lambda c, x: (aten.permute.default, (x, c.dims("dims")), {}),
    "transpose": lambda c, x: (aten.transpose.int, (x, *c.dims("dims")), {}),
}


# ------------------------------------------------------------------ inputs

def terms(mesh, places, rank):
    """The coordinates of a rank along its Partial mesh dimensions."""
    coord = []
    for n in reversed(mesh):
        coord.insert(0, rank % n)
        rank //= n
    return tuple(c for c, p in zip(coord, places) if p.is_partial())


def term(shape, dtype, many, seed, limit):
    """Term `seed` of an input: whole numbers, so that sums are exact."""
    gen = torch.Generator().manual_seed(seed)
    if dtype == "bool":
        return torch.randint(0, 2, shape, generator=gen).bool()
    if dtype == "i64":
        return torch.randint(0, limit, shape, generator=gen)
    return torch.randint(-4, 5, shape, generator=gen).to(DTYPES[dtype]) * many


def index_limit(c):
    """Indices are below this."""
    if c.name == "embedding_backward":
        return c.number("num_weights")
    if c.name == "nll_loss":
        return c.inputs[0][0][1]
    if c.name in ("embedding", "index"):
        return c.inputs[0][0][0]
    return c.inputs[0][0][c.dims("dim")[0]] if "dim" in c.told else 2


def positive(c):
    return c.name in ("log", "div")


def whole(c, i, by_term):
    """The tensor that the terms of input i make."""
    places = [p for p in c.inputs[i][2] if p.is_partial()]
    level = dict(by_term)
    for k in reversed(range(len(places))):
        groups = {}
        for coord, t in level.items():
            groups.setdefault(coord[:k], []).append(t)
        op = places[k].reduce_op
        level = {coord: (torch.stack(g).sum(0) / (len(g) if op == "avg" else 1)
                         if op in ("sum", "avg") else
                         torch.stack(g).amax(0) if op == "max" else
                         torch.stack(g).amin(0) if op == "min" else
                         torch.stack(g).prod(0))
                 for coord, g in groups.items()}
    return level[()]


def input_terms(c, i):
    shape, dtype, places = c.inputs[i]
    sizes = [n for n, p in zip(c.mesh, places) if p.is_partial()]
    many = WORLD * 3 if sizes else 1
    out = {}
    for k, coord in enumerate(itertools.product(*map(range, sizes))):
        t = term(shape, dtype, many, 1000 * i + k + 1, index_limit(c))
        if positive(c) and dtype == "f64":
            t = t.abs() + 1
        elif any(p.is_partial() and p.reduce_op == "max" for p in places):
            t = t - (6 + 20 * k) * many          # the largest has not the
                                                 # largest absolute value
        out[coord] = t
    return out


def local_of(t, mesh, places, rank):
    for dim, p in enumerate(places):
        if not p.is_shard():
            continue
        n, coord = mesh[dim], rank
        for later in reversed(range(dim, len(mesh))):
            here = coord % mesh[later]
            coord //= mesh[later]
        full = -(-t.shape[p.dim] // n)
        first = min(here * full, t.shape[p.dim])
        t = t.narrow(p.dim, first, min(full, t.shape[p.dim] - first))
    return t.clone(memory_format=torch.contiguous_format)


def strides(shape):
    out = [1]
    for n in reversed(shape[1:]):
        out.insert(0, out[0] * max(n, 1))
    return tuple(out) if shape else ()


MESHES = {}


def mesh_of(sizes):
    if sizes not in MESHES:
        n = 1
        for k in sizes:
            n *= k
        MESHES[sizes] = DeviceMesh("cpu", torch.arange(n).view(sizes))
    return MESHES[sizes]


# -------------------------------------------------------------------- plan

def specs_of(schema):
    found = []

    def walk(x):
        if isinstance(x, DTensorSpec):
            found.append(x)
        elif isinstance(x, (list, tuple)):
            for y in x:
                walk(y)
    walk(schema.args_schema)
    return found


def step(a, b):
    """Which collective makes b of a; None: no collective."""
    if a == b or a.is_replicate():
        return None
    if a.is_partial():
        return 1 if b.is_replicate() else 2
    return 3 if b.is_shard() else 0


def moves(src, dst, counts):
    if src.placements == dst.placements:
        return
    for info in _redistribute._gen_transform_infos_non_cached(src, dst):
        k = step(*info.src_dst_placements)
        if k is not None:
            counts[k] += 1


def plan(c):
    """The line after the inputs, and the state."""
    mesh = mesh_of(c.mesh)
    specs = []
    for shape, dtype, places in c.inputs:
        meta = TensorMeta(torch.Size(shape), strides(shape), DTYPES[dtype])
        specs.append(DTensorSpec(mesh, places, tensor_meta=meta))
    tensors = []
    for (shape, dtype, places), spec in zip(c.inputs, specs):
        local, _ = compute_local_shape_and_global_offset(shape, mesh, places)
        tensors.append(DTensor(torch.empty(local, dtype=DTYPES[dtype]), spec,
                               requires_grad=False))
    op, args, kwargs = OPS[c.name](c, *tensors)
    dispatcher = DTensor._op_dispatcher
    info = dispatcher.unwrap_to_op_info(op, args, kwargs)
    got = dispatcher.sharding_propagator.propagate_op_sharding_non_cached(
        info.schema)
    have = specs_of(info.schema)
    want = specs_of(got.redistribute_schema) if got.needs_redistribute else have
    counts, us = [0, 0, 0, 0], 0.0
    for a, b in zip(have, want):
        if any(type(p).__name__ == "_MaskPartial" for p in b.placements):
            continue
        us += redistribute_cost(a, b)
        moves(a, b, counts)
    out = got.output_spec
    outs = out if isinstance(out, (list, tuple)) else [out]
    wanted = " ".join(",".join(word(p) for p in s.placements) for s in want)
    given = " ".join(",".join(word(p) for p in s.placements) if s is not None
                     else "-" for s in outs)
    return f"> {wanted} = {given} ; {' '.join(map(str, counts))} ; {us:.3f}"


# --------------------------------------------------------------------- run

def flat(x):
    return list(x) if isinstance(x, (list, tuple)) else [x]


def run(c):
    """ok, wrong or unchecked: on every rank the result, gathered."""
    if c.name in UNCHECKED or any(
            torch.Size(shape).numel() > LARGE for shape, _, _ in c.inputs):
        return "unchecked"
    by_term = [input_terms(c, i) for i in range(len(c.inputs))]
    wholes = [whole(c, i, t) for i, t in enumerate(by_term)]
    op, args, kwargs = OPS[c.name](c, *[w.clone() for w in wholes])
    expected = flat(op(*args, **kwargs))
    n = mesh_of(c.mesh).size()
    with LocalTensorMode(frozenset(range(n))):
        tensors = []
        for (shape, dtype, places), t in zip(c.inputs, by_term):
            local = LocalTensor({r: local_of(t[terms(c.mesh, places, r)],
                                             c.mesh, places, r)
                                 for r in range(n)})
            tensors.append(DTensor.from_local(
                local, mesh_of(c.mesh), places, run_check=False,
                shape=torch.Size(shape), stride=strides(shape)))
        op, args, kwargs = OPS[c.name](c, *tensors)
        fulls = [t.full_tensor() for t in flat(op(*args, **kwargs))
                 if isinstance(t, DTensor)]
        per_rank = [t._local_tensors if isinstance(t, LocalTensor) else
                    {0: t} for t in fulls]
    for e, got in zip((e for e in expected if isinstance(e, torch.Tensor)),
                      per_rank):
        for t in got.values():
            if t.shape != e.shape or not torch.allclose(
                    t.double(), e.double(), 1e-9, 1e-9, equal_nan=True):
                return "wrong"
    return "ok"


REFUSED = (("unbind", "unbind-sharded"), ("unflatten", "uneven-unflatten"),
           ("flatten", "uneven-flatten"),
           ("that require", "in-place"), ("in-place", "in-place"),
           ("sharded dimension", "reshapes-sharded-dim"))


def refused(error):
    text = str(error).lower()
    for part, name in REFUSED:
        if part in text:
            return name
    return type(error).__name__


def line(c):
    try:
        planned = plan(c)
    except Exception as error:                   # PyTorch refuses in many ways
        return f"{c} = refused: {refused(error)}"
    try:
        state = run(c)
    except Exception as error:
        state = "unchecked"
        if "-v" in sys.argv:
            print(f"# {c}: {error!r}", file=sys.stderr)
    return f"{c} {planned} {state}"


# -------------------------------------------------------------------- draw

SIZES = {16: 21, 8: 10, 12: 9, 13: 17, 4: 6, 6: 11, 3: 5, 10: 14, 1024: 768,
         1536: 1000, 512: 640, 2048: 896, 32: 27, 1: 1}
VIEWS = [("view", "48x5", (8, 6, 5)), ("view", "8x30", (8, 6, 5)),
         ("view", "240", (8, 6, 5)), ("view", "8x6x5", (48, 5)),
         ("view", "8x6x5", (8, 30)), ("view", "24x2x5", (48, 5)),
         ("view", "9x4", (6, 6)), ("reshape", "12x10", (4, 6, 5)),
         ("reshape", "6x6", (9, 4)), ("view", "24", (8, 3))]


def other(c, sizes=SIZES):
    """The call with other sizes."""
    if c.name in ("view", "reshape", "convolution", "squeeze", "repeat"):
        return c
    swap = {str(a): str(b) for a, b in sizes.items()}
    keys = ("normalized", "num_weights", "to", "size")
    told = []
    for w in c.static.split(","):
        key, _, value = w.partition("=")
        if key in keys and c.name != "split":
            value = "x".join(swap[n] for n in value.split("x"))
        told.append(f"{key}={value}" if value else w)
    c.static = ",".join(told)
    c.told = dict(w.split("=") for w in told if "=" in w)
    c.inputs = [(tuple(sizes[n] if n != 1 else 1 for n in shape), dtype, places)
                for shape, dtype, places in c.inputs]
    return c


def pick(rng, ndim, dtype, mesh):
    """Placements: cut, whole or terms; of indices no terms."""
    cuts = [Shard(d) for d in range(ndim)]
    rest = [Replicate()]
    if dtype == "f64":
        rest += [Partial(op) for op in ("sum", "avg", "max")]
    while True:
        got = tuple(rng.choice(cuts + cuts + rest) for _ in mesh)
        if len({p.reduce_op == "max" for p in got if p.is_partial()}) < 2:
            return got


def draw(seed, meshes, lines):
    """Calls of the kinds of `lines`, with other sizes and placements."""
    rng = random.Random(seed)
    kinds = {}
    for text in lines:
        c = other(Call(text))
        kinds.setdefault((c.name, c.static, tuple(i[:2] for i in c.inputs)), c)
    for name, to, shape in VIEWS:
        c = Call(f"{name} to={to} 4 {'x'.join(map(str, shape))}:f64:R")
        kinds[(name, to, shape)] = c
    seen = set()
    for c in kinds.values():
        for mesh, _ in itertools.product(meshes, range(4)):
            c.mesh = mesh
            c.inputs = [(shape, dtype, pick(rng, len(shape), dtype, mesh))
                        for shape, dtype, _ in c.inputs]
            if str(c) not in seen:
                seen.add(str(c))
                yield str(c)


ANY_SIZES = (1, 2, 3, 5, 6, 7, 9, 10, 13, 16, 18, 20)
ANY_LARGE = (250, 513, 768, 1000, 1500)
WHOLE_SHAPES = ("t", "mm", "bmm", "dot", "tril")  # take no more dimensions


def split_at_random(rng, n):
    """A shape of n elements, with a 1 now and then."""
    shape = []
    while n > 1:
        k = rng.choice([d for d in range(2, n + 1) if n % d == 0])
        shape.append(k)
        n //= k
    shape += [1] * rng.choice((0, 0, 1))
    rng.shuffle(shape)
    return tuple(shape)


def any_view(c, rng):
    n = rng.choice((12, 24, 30, 36, 60, 64))
    shape, to = ("x".join(map(str, split_at_random(rng, n))) for _ in "12")
    return Call(f"{c.name} to={to} 4 {shape}:f64:R")


def batched(c, rng):
    """An operator element by element, with dimensions more at the left."""
    more = tuple(rng.choice(ANY_SIZES) for _ in range(rng.choice((0, 1, 2))))
    c.inputs = [((more if i == 0 else more[rng.randint(0, len(more)):]) + shape,
                 dtype, places)
                for i, (shape, dtype, places) in enumerate(c.inputs)]


def possible(c):
    """Is there a result for whole tensors?"""
    try:
        op, args, kwargs = OPS[c.name](c, *[
            whole(c, i, input_terms(c, i)) for i in range(len(c.inputs))])
        op(*args, **kwargs)
    except Exception:                            # the sizes do not fit
        return False
    return True


def any_call(rng, texts, mesh):
    """One of `texts` with other sizes, on a mesh."""
    c = Call(rng.choice(texts))
    if c.name in ("view", "reshape"):
        c = any_view(c, rng)
    else:
        c = other(c, {n: rng.choice(ANY_LARGE if n > 100 else ANY_SIZES)
                      for n in SIZES})
    small = all(torch.Size(shape).numel() < 1000 for shape, _, _ in c.inputs)
    if small and c.static == "-" and c.name not in WHOLE_SHAPES:
        batched(c, rng)
    c.inputs = [(shape, dtype, ()) for shape, dtype, _ in c.inputs]
    fits = possible(c)
    c.mesh = mesh
    c.inputs = [(shape, dtype, pick(rng, len(shape), dtype, mesh))
                for shape, dtype, _ in c.inputs]
    return c if fits else None


def draw_any(seed, meshes, lines, count):
    rng = random.Random(seed)
    by_name = {}
    for text in lines:
        by_name.setdefault(text.split()[0], []).append(text)
    seen = set()
    while len(seen) < count:
        c = any_call(rng, by_name[rng.choice(sorted(by_name))],
                     rng.choice(meshes))
        if c and str(c) not in seen:
            seen.add(str(c))
            yield str(c)


HEADER = f"""\
# made by make_ops.py from PyTorch {torch.__version__}: one operator, inputs of these placements
# NAME STATIC MESH  INPUT...   >  what each input is redistributed to  =  output placements
#   ; all-gathers allreduces reduce-scatters all-to-alls (greedy plan of each input, nothing merged)
#   ; predicted us of these on one host  and whether the result was compared on every rank: ok wrong unchecked
# An input is SHAPE:DTYPE:PLACEMENTS, one placement for each mesh dimension.  P(maskD): rows outside the own
# part of dimension D gave 0 (an index argument placed so is replicated and masked).  P(normK): a K-norm.
# STATIC: what is not a tensor.  "= refused: WHY" instead of the rest."""


def meshes_of(text):
    return [numbers(m) for m in text.split(",")]


def main():
    words = [w for w in sys.argv[1:] if w != "-v"]
    part, parts = 0, 1
    if "/" in words[0] and words[0][0].isdigit():
        part, parts = (int(n) for n in words.pop(0).split("/"))
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    _mesh_resources.num_devices_per_host = lambda device_type: WORLD
    dist.init_process_group("fake", rank=0, world_size=WORLD,
                            store=FakeStore())
    table = [text.rstrip("\n") for text in open(
        words[1] if words[0] == "again" else
        __file__.replace("make_ops.py", "ops.txt")) if text[0] != "#"]
    if words[0] == "draw":
        table = list(draw(int(words[1]), meshes_of(words[2]), table))
    elif words[0] == "any":
        table = list(draw_any(int(words[1]), meshes_of(words[2]), table,
                              int(words[3])))
    print(HEADER)
    for text in table[part::parts]:
        print(line(Call(text)), flush=True)


if __name__ == "__main__":
    main()
