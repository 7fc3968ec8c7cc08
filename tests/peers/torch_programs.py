#!/usr/bin/env python3
"""torch_programs.py - random programs of operators, with gradients, beside PyTorch

    python3 tests/peers/torch_programs.py LIBDTENSOR.so [PROGRAMS [SEED]]

A program has 3 to 10 calls of operators and redistributes on inputs in random
placements.  It runs on 1, 2 or 4 ranks, with a tape, and in PyTorch on whole
tensors in one process; result and gradients of the inputs are compared with
PyTorch's in f64.  An element may differ by BOUND units of rounding of its type,
for each call, times the largest element that occurs, and by four times what
PyTorch's results of that type differ.  Prints TAP; a program that fails is
printed with its seed, and "ONLY=SEED" in the environment runs it alone.
"""
import ctypes
import math
import os
import pickle
import random
import signal
import sys
import tempfile

import torch

from torch_operators import FAMILIES, KINKS, numbered, unary

torch.set_num_threads(1)
TYPES = {"f64": torch.float64, "f32": torch.float32, "bf16": torch.bfloat16,
         "f16": torch.float16, "i64": torch.int64, "bool": torch.bool}
MESHES = {1: [(1,)], 2: [(2,)], 4: [(4,), (2, 2)]}
BOUND = {"f64": 64, "f32": 16, "bf16": 4, "f16": 4}
UNIT = {"f64": 2.0 ** -53, "f32": 2.0 ** -24, "bf16": 2.0 ** -9,
        "f16": 2.0 ** -11}
LARGEST = 50                      # no element of a program is above this


# --------------------------------------------------------------- generator

def placements(rng, mesh, dims, dtype):
    """As many as the mesh has dimensions; terms of one reduction only."""
    term = rng.choice(("P(sum)", "P(avg)", "P(max)"))
    some = ["R"] + [f"S({d})" for d in range(dims)] * 2
    if dims > 0 and rng.random() < 0.1:
        some += [f"{how.format(rng.randrange(dims))}"
                 for how in ("C({},2)", "SS({},2)", "HT({})")]
    if dtype not in ("i64", "bool"):
        some += [term]
    return ",".join(rng.choice(some) for _ in mesh)


class Program:
    """Inputs, and steps that each make one tensor from some before it.

    inputs   (dtype, shape, placements, values, number)
    steps    (our operator, arguments, numbers of inputs, number of the result,
             outputs, the output that is the result); for a redistribute
             "" and placements
    """

    def __init__(self, seed):
        self.seed = seed
        rng = self.rng = random.Random(seed)
        self.gen = torch.Generator().manual_seed(seed)
        self.dtype = rng.choice(("f64", "f64", "f32", "f32", "bf16", "f16"))
        self.ranks = rng.choice((1, 2, 2, 4, 4, 4))
        self.mesh = rng.choice(MESHES[self.ranks])
        self.inputs, self.steps, self.tensors, self.runs = [], [], [], []
        shape = tuple(rng.choice((1, 2, 3, 4, 5, 7, 8))
                      for _ in range(rng.choice((1, 2, 2, 3, 3, 4))))
        now, self.largest = self.input("n", shape), 1.0
        for _ in range(rng.randint(3, 10)):
            now = self.step(now)
        self.grad = self.input("n", self.tensors[now].shape)
        self.last = now
        self.expect()

    def input(self, kind, shape):
        """The number of a new input: n normal, p positive, b, iLIMIT."""
        dtype = {"b": "bool", "i": "i64"}.get(kind[0], self.dtype)
        if kind[0] == "i":
            x = torch.randint(0, int(kind[1:]), shape, generator=self.gen)
        else:
            x = torch.randn(shape, generator=self.gen, dtype=torch.float64)
            x = x > 0 if kind == "b" else x.abs() + 0.5 if kind == "p" else x
        x = x.to(TYPES[dtype])
        self.inputs.append((dtype, tuple(shape), placements(
            self.rng, self.mesh, len(shape), dtype), x, len(self.tensors)))
        self.tensors.append(x)
        return len(self.tensors) - 1

    def step(self, now):
        """The number of what one more call makes of a tensor."""
        x = self.tensors[now]
        if self.rng.random() < 0.12:
            self.steps.append(("", placements(self.rng, self.mesh, x.dim(),
                                              self.dtype), [now],
                               len(self.tensors), 1, 0))
            return self.ran(torch.clone, [now])
        while True:
            family = self.rng.choice(FAMILIES)
            if x.dim() == 0 and family not in (unary, numbered):
                continue
            op = family(self.rng, x.double())
            if op.name in KINKS and self.dtype in ("bf16", "f16"):
                continue
            kept = len(self.inputs), len(self.tensors)
            ins = [now] + [self.input(kind, shape) for kind, shape in op.more]
            y = op.run(*[self.tensors[i] for i in ins])
            size = y.abs().max().item() if y.numel() else math.inf
            if math.isfinite(size) and size < LARGEST and y.numel() < 3000:
                break
            del self.inputs[kept[0]:], self.tensors[kept[1]:]
        self.largest = max(self.largest, size)
        self.steps.append((op.name, op.args, [ins[i] for i in op.order],
                           len(self.tensors), op.outputs, op.take))
        return self.ran(op.run, ins)

    def ran(self, run, ins):
        self.runs.append((run, ins, len(self.tensors)))
        self.tensors.append(run(*[self.tensors[i] for i in ins]))
        return len(self.tensors) - 1

    def results(self, double):
        """The result and the gradients of whole tensors, perhaps in f64."""
        tensors = {}
        for *_, x, number in self.inputs:
            if x.is_floating_point():
                x = (x.double() if double else x).clone().requires_grad_()
            tensors[number] = x
        for run, ins, number in self.runs:
            tensors[number] = run(*[tensors[i] for i in ins])
        grads = torch.autograd.grad(
            tensors[self.last], [tensors[i] for i in self.watched],
            tensors[self.inputs[-1][4]].detach(), allow_unused=True)
        return [tensors[self.last].detach(), *grads]

    def expect(self):
        self.watched = [i[4] for i in self.inputs[:-1]
                        if i[3].is_floating_point()]
        self.theirs, self.exact = self.results(False), self.results(True)
        del self.tensors, self.runs

    def __str__(self):
        names = {i[4]: f"{'x'.join(map(str, i[1])) or '0d'}:{i[0]}:{i[2]}"
                 for i in self.inputs}
        steps = [f"{number} = {name or 'redistribute'}("
                 + ", ".join(names.get(i, str(i)) for i in ins) + f") {text}"
                 for name, text, ins, number, *_ in self.steps]
        return (f"seed {self.seed}, mesh {self.mesh}: " + "; ".join(steps)
                + f"; gradient {names[self.inputs[-1][4]]}")


# ------------------------------------------------------------------ runner

class Library:
    """libdtensor through ctypes; structs are opaque, and large enough."""

    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        self.error = ctypes.create_string_buffer(8192)
        self.ctx = self.made("dtensor_init", None)
        self.meshes = {}
        self.lib.dtensor_to_local.restype = ctypes.c_void_p
        self.lib.dtensor_tape_grad.restype = ctypes.c_void_p
        self.lib.dtensor_spec_of.restype = ctypes.c_void_p

    def good(self, rc):
        if rc != 0:
            raise RuntimeError(self.error.raw[12:].split(b"\0")[0].decode())

    def made(self, name, *args):
        out = ctypes.c_void_p()
        self.good(getattr(self.lib, name)(*args, ctypes.byref(out), self.error))
        return out

    def mesh(self, sizes):
        if sizes not in self.meshes:
            self.meshes[sizes] = self.made(
                "dtensor_mesh_create", self.ctx, len(sizes),
                (ctypes.c_int * len(sizes))(*sizes), None, None)
        return self.meshes[sizes]

    def input(self, sizes, dtype, shape, places, values):
        spec = ctypes.create_string_buffer(8192)
        number = ctypes.c_int()
        self.good(self.lib.dtensor_dtype_parse(
            dtype.encode(), ctypes.byref(number), self.error))
        self.good(self.lib.dtensor_spec_on(
            spec, self.mesh(sizes), places.encode(), number, len(shape),
            (ctypes.c_int64 * len(shape))(*shape), self.error))
        values = values.contiguous()
        return self.made("dtensor_distribute", spec,
                         ctypes.c_void_p(values.data_ptr()), -1)

    def op(self, name, text, inputs, nout):
        args = ctypes.create_string_buffer(4096)
        self.good(self.lib.dtensor_op_args_parse(text.encode(), args,
                                                 self.error))
        outs = (ctypes.c_void_p * 8)()
        ins = (ctypes.c_void_p * len(inputs))(*[t.value for t in inputs])
        self.good(self.lib.dtensor_op(name.encode(), len(inputs), ins, args,
                                      nout, outs, self.error))
        return [ctypes.c_void_p(o) for o in outs[:nout]]

    def whole(self, tensor, like):
        """All of a tensor, as PyTorch's result."""
        out = torch.zeros(like.shape, dtype=like.dtype)
        self.good(self.lib.dtensor_full_tensor(
            tensor, ctypes.c_void_p(out.data_ptr()),
            ctypes.c_size_t(out.numel() * out.element_size()), self.error))
        return out


def compute(library, p):
    """The result and the gradients of a program on these ranks."""
    lib, tensors, extra = library.lib, {}, []
    tape = library.made("dtensor_tape_create", library.ctx)
    try:
        for dtype, shape, places, values, number in p.inputs:
            tensors[number] = library.input(p.mesh, dtype, shape, places, values)
            if number in p.watched:
                library.good(lib.dtensor_tape_watch(tape, tensors[number],
                                                    library.error))
        library.good(lib.dtensor_tape_begin(tape, library.error))
        for name, text, ins, number, nout, take in p.steps:
            if name:
                made = library.op(name, text, [tensors[i] for i in ins], nout)
                tensors[number] = made.pop(take)
                extra += made
            else:
                tensors[number] = library.made("dtensor_redistribute",
                                               tensors[ins[0]], text.encode())
        library.good(lib.dtensor_tape_backward(
            tape, tensors[p.last], tensors[p.inputs[-1][4]], library.error))
        got = [library.whole(tensors[p.last], p.theirs[0])]
        for number, like in zip(p.watched, p.theirs[1:]):
            grad = lib.dtensor_tape_grad(tape, tensors[number])
            got.append(library.whole(ctypes.c_void_p(grad), like)
                       if grad and like is not None else None)
        return got
    finally:
        lib.dtensor_tape_destroy(tape)
        for t in list(tensors.values()) + extra:
            lib.dtensor_destroy(t)


def rank_main(path, rank, ranks, programs, out):
    os.environ.update(
        DTN_JOB=f"programs-{os.getppid()}-{ranks}", DTN_KEY="5e" * 32,
        DTN_RANK=str(rank), DTN_LOCAL_RANK=str(rank),
        DTN_WORLD_SIZE=str(ranks), DTN_LOCAL_SIZE=str(ranks))
    library, results = Library(path), {}
    for p in programs:
        try:
            results[p.seed] = compute(library, p)
        except RuntimeError as error:
            results[p.seed] = str(error)
    if rank == 0:
        with open(out, "wb") as f:
            pickle.dump(results, f)
    library.lib.dtensor_fini(library.ctx)


def run(path, ranks, programs):
    """The results of programs on that many ranks, by seed."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "results")
        pids = []
        for rank in range(ranks):
            pid = os.fork()
            if pid == 0:
                try:
                    rank_main(path, rank, ranks, programs, out)
                    os._exit(0)
                finally:
                    os._exit(1)
            pids.append(pid)
        bad = sum(os.waitpid(pid, 0)[1] != 0 for pid in pids)
        if bad or not os.path.exists(out):
            return {}
        with open(out, "rb") as f:
            return pickle.load(f)


# -------------------------------------------------------------- comparison

def differs(p, got):
    """Why the results of a program are not PyTorch's; None: they are."""
    if got is None:
        return "the ranks failed"
    if isinstance(got, str):
        return got
    names = ["result"] + [f"gradient of {i}" for i in p.watched]
    for name, ours, theirs, exact in zip(names, got, p.theirs, p.exact):
        if ours is None or theirs is None:
            if theirs is not None and exact.any():
                return f"{name} is missing"
            continue
        off, known = (0 if t.numel() == 0 else
                      (t.double() - exact).abs().max().item()
                      for t in (ours, theirs))
        largest = max(p.largest, exact.abs().max().item())
        bound = 4 * known + (BOUND[p.dtype] * UNIT[p.dtype] * len(p.steps)
                             * largest)
        if not off <= bound:
            return f"{name} is off by {off:.3g}, bound {bound:.3g}"
    return None


def main():
    path = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 20261129
    seeds = ([int(os.environ["ONLY"])] if "ONLY" in os.environ
             else range(first, first + count))
    programs = [Program(seed) for seed in seeds]
    print(f"# {len(programs)} programs, seeds from {programs[0].seed}, "
          f"{sum(len(p.steps) for p in programs)} calls", flush=True)
    for k, ranks in enumerate(MESHES):
        some = [p for p in programs if p.ranks == ranks]
        got = run(path, ranks, some)
        bad = [(p, differs(p, got.get(p.seed))) for p in some]
        bad = [(p, why) for p, why in bad if why]
        print(f"{'not ok' if bad else 'ok'} {k + 1} - {len(some)} programs on "
              f"{ranks} ranks: {len(some) - len(bad)} have PyTorch's results "
              "and gradients", flush=True)
        for p, why in bad[:int(os.environ.get("SHOWN", "20"))]:
            print(f"# {why}\n#   {p}")
    print(f"1..{len(MESHES)}")


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    main()
