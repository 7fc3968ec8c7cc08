#!/usr/bin/env python3
"""make_grads.py - where PyTorch's gradients lie, and what they send

    venv/bin/python tests/golden/make_grads.py tests/golden/grads.txt

Each line of the table is made anew from its call and printed; what is printed
is the table if nothing has changed.  Two words before the table, "I/N", make
every N-th line only, from line I on.  See make_ops.py for the rest: one process
stands for four ranks, inputs are whole numbers.
"""
import sys
import warnings

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed._local_tensor import LocalTensor, LocalTensorMode
from torch.distributed.device_mesh import _mesh_resources
from torch.distributed.tensor import DTensor, Replicate, ones, placement_types
from torch.distributed.tensor._utils import (
    compute_local_shape_and_global_offset)
from torch.distributed.tensor.debug import (
    CommDebugMode, _clear_sharding_prop_cache)
from torch.testing._internal.distributed.fake_pg import FakeStore

import make_ops
from make_ops import DTYPES, WORLD, Call, input_terms, local_of, mesh_of
from make_ops import place, split, strides, terms, whole, word

HEADER = f"""\
# grads.txt - made from PyTorch {torch.__version__}: an operator and its backward
# NAME STATIC MESH INPUT... = output placements | forward ag ar rs a2a | gradient placements of each input |
#   backward ag ar rs a2a | ok/wrong/unchecked, gradients compared on every rank with those of whole tensors
# The gradient of the output is ones, placed as the output is, or R where that is a term."""
# In the order of the table's columns.
COLLECTIVES = ("all_gather_into_tensor", "all_reduce", "reduce_scatter_tensor",
               "all_to_all_single")


def redistributed(c, x):
    if not isinstance(x, DTensor):
        return x.clone()
    return x.redistribute(x.device_mesh, [place(p) for p in split(c.output)])


OPS = {
    "relu": lambda c, x: torch.relu(x), "exp": lambda c, x: torch.exp(x),
    "add": lambda c, x, y: x + y, "mul": lambda c, x, y: x * y,
    "mul_scalar": lambda c, x: x * 2,
    "mm": lambda c, x, y: x @ y, "bmm": lambda c, x, y: torch.bmm(x, y),
    "linear": lambda c, *x: F.linear(*x),
    "sum": lambda c, x: x.sum(c.dims("dim")) if c.told else x.sum(),
    "mean": lambda c, x: x.mean(c.dims("dim")) if c.told else x.mean(),
    "softmax": lambda c, x: F.softmax(x, c.number("dim")),
    "log_softmax": lambda c, x: F.log_softmax(x, c.number("dim")),
    "layer_norm": lambda c, x, w, b: F.layer_norm(x, w.shape, w, b),
    "embedding": lambda c, w, i: F.embedding(i, w),
    "cross_entropy": lambda c, x, t: F.cross_entropy(x, t, reduction=c.static),
    "cat": lambda c, *x: torch.cat(x, c.number("dim")),
    "slice": lambda c, x: x[2:6], "view": lambda c, x: x.view(-1),
    "transpose": lambda c, x: x.transpose(0, 1),
    "redistribute_R": redistributed, "redistribute_S0": redistributed,
}


def places(t):
    return ",".join(word(p) for p in t.placements)


class Exchanges:
    """All-to-alls, which PyTorch makes of all-gathers on a CPU."""
    n = 0
    made = placement_types.shard_dim_alltoall

    @staticmethod
    def make(*args):
        Exchanges.n += 1
        return Exchanges.made(*args)


def counted(mode):
    counts = {str(op).rsplit(".", maxsplit=1)[-1]: n
              for op, n in mode.get_comm_counts().items()}
    counts[COLLECTIVES[3]] = Exchanges.n
    counts[COLLECTIVES[0]] = counts.get(COLLECTIVES[0], 0) - Exchanges.n
    Exchanges.n = 0
    return " ".join(str(counts.get(name, 0)) for name in COLLECTIVES)


def leaf(c, i, local):
    shape, dtype, where = c.inputs[i]
    t = DTensor.from_local(local, mesh_of(c.mesh), where, run_check=False,
                           shape=torch.Size(shape), stride=strides(shape))
    return t.detach().requires_grad_(dtype == "f64")


def differentiated(c, tensors):
    """The output, its gradient ones, and what both directions send."""
    with CommDebugMode() as forward:
        out = OPS[c.name](c, *tensors)
    sent = counted(forward)
    where = [Replicate() if p.is_partial() else p for p in out.placements]
    grad = ones(out.shape, dtype=out.dtype, device_mesh=out.device_mesh,
                placements=where)
    with CommDebugMode() as backward:
        out.backward(grad)
    return out, sent, counted(backward)


def plan(c):
    """The line after the inputs, without the state."""
    tensors = []
    for i, (shape, dtype, where) in enumerate(c.inputs):
        local, _ = compute_local_shape_and_global_offset(
            shape, mesh_of(c.mesh), where)
        tensors.append(leaf(c, i, torch.zeros(local, dtype=DTYPES[dtype])))
    out, forward, backward = differentiated(c, tensors)
    grads = " ".join(places(t.grad) for t in tensors if t.requires_grad)
    return f"= {places(out)} | {forward} | {grads} | {backward}"


def run(c):
    """ok or wrong: on every rank the gradients, gathered."""
    by_term = [input_terms(c, i) for i in range(len(c.inputs))]
    wholes = [whole(c, i, t).clone().requires_grad_(c.inputs[i][1] == "f64")
              for i, t in enumerate(by_term)]
    out = OPS[c.name](c, *wholes)
    out.backward(torch.ones_like(out))
    n = mesh_of(c.mesh).size()
    _clear_sharding_prop_cache()       # a P(mask) there has the mask of zeros
    with LocalTensorMode(frozenset(range(n))):
        tensors = []
        for i, ((_, _, where), t) in enumerate(zip(c.inputs, by_term)):
            tensors.append(leaf(c, i, LocalTensor({
                r: local_of(t[terms(c.mesh, where, r)], c.mesh, where, r)
                for r in range(n)})))
        differentiated(c, tensors)
        fulls = [t.grad.full_tensor() for t in tensors if t.requires_grad]
        per_rank = [t._local_tensors for t in fulls]
    want = [w.grad for w in wholes if w.requires_grad]
    return "ok" if all(torch.allclose(t, w, 1e-9, 1e-9)
                       for w, got in zip(want, per_rank)
                       for t in got.values()) else "wrong"


def index_limit(c):
    """Classes, or rows of a table."""
    return c.inputs[0][0][1 if c.name == "cross_entropy" else 0]


def line(text):
    c = Call(text)
    c.output = text.split(" = ")[1].split()[0]
    _clear_sharding_prop_cache()
    try:
        planned = plan(c)
    except Exception as error:                   # PyTorch refuses in many ways
        if "-v" in sys.argv:
            print(f"# {c}: {error!r}", file=sys.stderr)
        return f"{c} = refused"
    try:
        state = run(c)
    except Exception as error:
        state = "unchecked"
        if "-v" in sys.argv:
            print(f"# {c}: {error!r}", file=sys.stderr)
    return f"{c} {planned} | {state}"


def main():
    words = [w for w in sys.argv[1:] if w != "-v"]
    part, parts = 0, 1
    if "/" in words[0] and words[0][0].isdigit():
        part, parts = (int(n) for n in words.pop(0).split("/"))
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    make_ops.index_limit = index_limit
    placement_types.shard_dim_alltoall = Exchanges.make
    _mesh_resources.num_devices_per_host = lambda device_type: WORLD
    dist.init_process_group("fake", rank=0, world_size=WORLD,
                            store=FakeStore())
    with open(words[0], encoding="utf-8") as table:
        lines = [text.rstrip("\n") for text in table if text[0] != "#"]
    print(HEADER)
    for text in lines[part::parts]:
        print(line(text), flush=True)


if __name__ == "__main__":
    main()
