#!/usr/bin/env python3
"""make.py - the tables of this directory, from a real PyTorch

    python3 -m venv venv && venv/bin/pip install torch numpy
    venv/bin/python tests/golden/make.py

Eight processes with gloo on CPU make tensors and redistribute them; what each
rank holds is written down, and the tests compare the library with it without
any PyTorch.  Nothing is random: the same PyTorch makes the same tables.

Element g (row-major) of a tensor is value(0, g), and term c of a Partial one
value(c, g): multiples of 840, so that dividing by up to eight is exact.  Local
contents are written as 24 bits of a hash of those numbers in local row-major
order.  Every result is also checked here against the placements' definition;
where PyTorch is wrong, or refuses, the case is left out and counted.
"""
import datetime
import itertools
import logging
import os
import socket
import sys
import warnings

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed._mesh_layout import _FlatLayout, _MeshLayout
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.distributed.tensor import distribute_tensor
from torch.distributed.tensor import placement_types, _redistribute
from torch.distributed.tensor._dtensor_spec import (
    DTensorSpec, ShardOrderEntry, TensorMeta)
from torch.distributed.tensor._utils import (
    compute_local_shape_and_global_offset)

Strided = placement_types._StridedShard
WORLD = 8
HERE = os.path.dirname(os.path.abspath(__file__))
R = Replicate()
S0, S1, S2 = Shard(0), Shard(1), Shard(2)


# ------------------------------------------------------------------- words

def word(p):
    """A placement as the library writes it."""
    if isinstance(p, Strided):
        return f"SS({p.dim},{p.split_factor})"
    if isinstance(p, Shard):
        return f"S({p.dim})"
    if isinstance(p, Partial):
        return f"P({'prod' if p.reduce_op == 'product' else p.reduce_op})"
    return "R"


def words(placements):
    return ",".join(word(p) for p in placements)


def sizes(shape):
    return "x".join(str(n) for n in shape) if len(shape) else "-"


def value(term, g, op="sum"):
    """Element g of a tensor, or of term `term` of a Partial one."""
    if op == "product":
        return 1 + (g + term) % 2
    return 840 * ((7 * g + 11 * term) % 31 + 1)


def hashed(values):
    h = 2166136261
    for v in values:
        h = ((h ^ (int(v) & 0xffffffff)) * 16777619) & 0xffffffff
    return f"{h >> 8:06x}"


# ------------------------------------------------------------------ layouts

def indices(shape, mesh_shape, coord, placements):
    """The global indices a rank holds, for each tensor dimension: the
    definition, by cutting lists."""
    def chunks(list_, n):
        full = -(-len(list_) // n)
        return [list_[i * full:(i + 1) * full] for i in range(n)]

    held = [list(range(n)) for n in shape]
    for p, n, c in zip(placements, mesh_shape, coord):
        if isinstance(p, Strided):
            held[p.dim] = sum((chunks(piece, n)[c] for piece in
                               chunks(held[p.dim], p.split_factor)), [])
        elif isinstance(p, Shard):
            held[p.dim] = chunks(held[p.dim], n)[c]
    return held


def linear(shape, held):
    """Row-major global indices of the elements of a rank's part."""
    out = []
    for index in itertools.product(*held):
        g = 0
        for i, n in zip(index, shape):
            g = g * n + i
        out.append(g)
    return out


MESHES = [(2,), (3,), (4,), (5,), (7,), (8,), (2, 2), (2, 3), (3, 2), (2, 4),
          (4, 2), (1, 4), (2, 2, 2), (2, 1, 3)]


def layout_cases():
    def strided(dims, factors):
        return [Strided(d, split_factor=f) for d in dims for f in factors]

    for mesh in MESHES:
        if len(mesh) == 1:
            for n in range(18):
                for p in [S0] + strided([0], [2, 3, 4]):
                    yield (n,), mesh, (p,)
            for shape in [(5, 3), (4, 9), (2, 8), (0, 3), (3, 0)]:
                for p in [S0, S1, R] + strided([0, 1], [2]):
                    yield shape, mesh, (p,)
        if len(mesh) == 2:
            for n in [0, 1, 2, 3, 5, 8, 13, 15, 18]:
                for pair in itertools.product(
                        [R, S0] + strided([0], [2, 3]), repeat=2):
                    yield (n,), mesh, pair
            for shape in [(5, 3), (10, 5), (1, 7)]:
                for pair in itertools.product(
                        [R, S0, S1] + strided([0, 1], [2]), repeat=2):
                    yield shape, mesh, pair
            for pair in itertools.product([R, S0, S1, S2], repeat=2):
                yield (3, 5, 2), mesh, pair
        if len(mesh) == 3:
            for n in [5, 8, 13, 18]:
                for three in itertools.product([R, S0] + strided([0], [2]),
                                               repeat=3):
                    yield (n,), mesh, three
            for shape in [(5, 3), (8, 8)]:
                for three in itertools.product([R, S0, S1], repeat=3):
                    yield shape, mesh, three


def layout_of(mesh, shape, placements):
    """This rank's part, or None outside the mesh, or the refusal."""
    if mesh.get_coordinate() is None:
        return None
    local, offset = compute_local_shape_and_global_offset(
        shape, mesh, placements)
    numel = 1
    for n in shape:
        numel *= n
    whole = torch.arange(numel, dtype=torch.float64).reshape(shape)
    part = distribute_tensor(whole, mesh, placements,
                             src_data_rank=None).to_local()
    held = linear(shape, indices(shape, tuple(mesh.shape),
                                 mesh.get_coordinate(), placements))
    if tuple(part.shape) != tuple(local) or \
            part.flatten().tolist() != [float(g) for g in held]:
        return "wrong"
    return f"{sizes(local)}@{sizes(offset)}:{hashed(held)}"


def run(function, *args):
    try:
        return function(*args)
    except (RuntimeError, AssertionError, ValueError, KeyError,
            NotImplementedError, IndexError) as e:
        return "refused: " + str(e).split("\n")[0]


def gathered(mine):
    """What every rank said, or None on all but the first."""
    everyone = [None] * WORLD if dist.get_rank() == 0 else None
    dist.gather_object(mine, everyone)
    return everyone


class Table:
    """Lines of a file: kept on rank 0, with counts of what was left out."""

    def __init__(self, name, head):
        self.name, self.head = name, head
        self.lines, self.left_out = [], {}

    def leave_out(self, why, case):
        if why.startswith("refused") and not self.left_out.get("refused"):
            self.left_out["refused"] = 0
        key = "refused" if why.startswith("refused") else why
        self.left_out[key] = self.left_out.get(key, 0) + 1
        if os.environ.get("SAY"):
            print(self.name, case, why, flush=True)

    def write(self):
        out = ", ".join(f"{n} {why}" for why, n in
                        sorted(self.left_out.items()))
        with open(os.path.join(HERE, self.name), "w") as f:
            f.write(f"# {self.name} - made by make.py from PyTorch "
                    f"{torch.__version__} on CPU\n")
            for line in self.head:
                f.write(f"# {line}\n")
            f.write(f"# {len(self.lines)} cases; left out: {out or 'none'}\n")
            f.writelines(line + "\n" for line in self.lines)
        print(f"{self.name}: {len(self.lines)} cases; left out: "
              f"{out or 'none'}")


def make_layouts(meshes):
    table = Table("layout.txt", [
        "tensor shape, mesh, placements, and for each rank of the mesh",
        "local shape @ global offset : hash of the global indices it holds"])
    cases = list(layout_cases())
    mine = [run(layout_of, meshes[m], s, p) for s, m, p in cases]
    everyone = gathered(mine)
    if not everyone:
        return
    for (shape, mesh, placements), parts in zip(cases, zip(*everyone)):
        parts = [p for p in parts if p is not None]
        case = f"{sizes(shape)} {sizes(mesh)} {words(placements)}"
        odd = [p for p in parts if p == "wrong" or p.startswith("refused")]
        if odd:
            table.leave_out(odd[0], case)
        else:
            table.lines.append(f"{case} {' '.join(parts)}")
    table.write()


# ------------------------------------------------------------- redistribute

def strides(shape):
    stride = [1] * len(shape)
    for d in range(len(shape) - 2, -1, -1):
        stride[d] = stride[d + 1] * max(shape[d + 1], 1)
    return tuple(stride)


def spec_of(mesh, shape, placements):
    return DTensorSpec(mesh, placements, tensor_meta=TensorMeta(
        torch.Size(shape), strides(shape), torch.float32))


def redistribute_cases():
    one = [R, S0, S1, Partial("sum")]
    for mesh in [(4,), (3,), (8,)]:
        for shape in [(12, 3), (13, 4), (5, 3), (2, 8), (1, 1), (0, 4)]:
            for a, b in itertools.product(one, repeat=2):
                yield shape, mesh, (a,), (b,)
    for op in ["avg", "max", "min", "product"]:
        for shape in [(13, 4), (2, 3)]:
            for a, b in itertools.product([R, S0, S1, Partial(op)], repeat=2):
                if Partial(op) in (a, b):
                    yield shape, (4,), (a,), (b,)
    every = [(2, 2), (9, 5), 1], [(2, 3), (5, 3), 3], [(4, 2), (13, 3), 3]
    for mesh, shape, step in every:
        pairs = itertools.product(itertools.product(one, repeat=2), repeat=2)
        for a, b in itertools.islice(pairs, 0, None, step):
            yield shape, mesh, a, b
    for op in ["max", "min", "product", "avg"]:
        pairs = itertools.product(
            itertools.product([R, S0, Partial(op)], repeat=2), repeat=2)
        for a, b in itertools.islice(pairs, 0, None, 3):
            if Partial(op) in a + b:
                yield (5, 3), (2, 2), a, b
    cube = [R, S0, S1, S2, Partial("sum")]
    pairs = itertools.product(itertools.product(cube, repeat=3), repeat=2)
    for a, b in itertools.islice(pairs, 0, None, 89):
        yield (5, 4, 3), (2, 2, 2), a, b
    strided = [R, S0, S1, Strided(0, split_factor=2), Partial("sum")]
    pairs = itertools.product(itertools.product(strided, repeat=2), repeat=2)
    for a, b in pairs:
        if any(isinstance(p, Strided) for p in a + b):
            yield (16, 4), (2, 4), a, b
            if Partial("sum") not in a + b:     # PyTorch 2.15 hangs in some
                yield (13, 4), (2, 4), a, b


def whole(shape, placements, mesh_shape, coord):
    """Elements of the (term of the) tensor this coordinate has a part of."""
    op, term, n = "sum", 0, 1
    for p, size, c in zip(placements, mesh_shape, coord):
        if isinstance(p, Partial):
            op, term, n = p.reduce_op, term * size + c, n * size
    for k in shape:
        n *= k
    return [value(term, g, op) for g in range(n)]


def reduced(shape, src, mesh_shape):
    """Every element of the whole, the terms of `src` reduced."""
    spans = [range(n) if isinstance(p, Partial) else range(1)
             for p, n in zip(src, mesh_shape)]
    terms = [whole(shape, src, mesh_shape, c)
             for c in itertools.product(*spans)]
    op = next((p.reduce_op for p in src if isinstance(p, Partial)), "sum")

    def fold(values):
        if op == "product":
            out = 1
            for v in values:
                out *= v
            return out
        out = {"max": max, "min": min}.get(op, sum)(values)
        return out / len(values) if op == "avg" else out
    return [float(fold(v)) for v in zip(*terms)]


def redistribute(mesh, shape, src, dst):
    if mesh.get_coordinate() is None:
        return None
    coord, mesh_shape = mesh.get_coordinate(), tuple(mesh.shape)
    held = linear(shape, indices(shape, mesh_shape, coord, src))
    mine = whole(shape, src, mesh_shape, coord)
    local = torch.tensor([float(mine[g]) for g in held], dtype=torch.float64)
    lengths = [len(i) for i in indices(shape, mesh_shape, coord, src)]
    tensor = DTensor.from_local(local.reshape(lengths), mesh, src,
                                run_check=False, shape=torch.Size(shape),
                                stride=strides(shape))
    if os.environ.get("SAY") and dist.get_rank() == 0:
        print("now", shape, mesh_shape, words(src), words(dst), flush=True)
    out = tensor.redistribute(mesh, dst).to_local()
    values = out.flatten().tolist()
    if not any(isinstance(p, Partial) for p in dst):
        all_ = reduced(shape, src, mesh_shape)
        want = linear(shape, indices(shape, mesh_shape, coord, dst))
        if values != [all_[g] for g in want]:
            return "wrong"
    if any(v != int(v) for v in values):
        return "not an integer"
    return hashed(values)


def in_step(mesh, shape, src, dst):
    """Would all ranks of each collective on the way give buffers of one size?
    PyTorch 2.15 computes some of them from sizes that are no longer true, and
    gloo then aborts or hangs."""
    coord = mesh.get_coordinate()
    mine = []
    if coord is not None:
        infos = run(lambda: _redistribute._gen_transform_infos_non_cached(
            *(spec_of(mesh, shape, p) for p in (src, dst))))
        now = list(src)
        for info in infos if isinstance(infos, list) else []:
            before, after = info.src_dst_placements
            held = [len(i) for i in
                    indices(shape, tuple(mesh.shape), coord, now)]
            n = mesh.size(info.mesh_dim)
            for p in (before, after):
                if isinstance(p, (Shard, Strided)):
                    held[p.dim] = (info.logical_shape[p.dim],
                                   -(-info.logical_shape[p.dim] // n))
            now[info.mesh_dim] = after
            mine.append((tuple(c for m, c in enumerate(coord)
                               if m != info.mesh_dim), held))
    everyone = [None] * WORLD
    dist.all_gather_object(everyone, mine)
    for step in itertools.zip_longest(*[e for e in everyone if e]):
        groups = {}
        for group, held in step:
            if groups.setdefault(group, held) != held:
                return False
    return True


def make_redistributes(meshes):
    table = Table("redistribute.txt", [
        "tensor shape, mesh, placements before and after, and for each rank",
        "of the mesh the hash of its elements after (f64; see make.py)"])
    cases = list(redistribute_cases())
    mine = []
    for shape, mesh, src, dst in cases:
        if not in_step(meshes[mesh], shape, src, dst):
            mine.append("would hang")
            continue
        mine.append(run(redistribute, meshes[mesh], shape, src, dst))
    everyone = gathered(mine)
    if not everyone:
        return
    for (shape, mesh, src, dst), parts in zip(cases, zip(*everyone)):
        parts = [p for p in parts if p is not None]
        case = f"{sizes(shape)} {sizes(mesh)} {words(src)} {words(dst)}"
        odd = [p for p in parts if len(p) != 6]
        if odd:
            table.leave_out(odd[0], case)
        else:
            table.lines.append(f"{case} {' '.join(parts)}")
    table.write()


# ------------------------------------------------------------------ planners

def trace_cases():
    pairs = list(itertools.product([R, S0, S1, Partial("sum")], repeat=2))
    for a, b in itertools.product(pairs, repeat=2):
        yield (8, 8), (2, 4), a, b
    cube = [R, S0, S1, S2, Partial("sum")]
    three = itertools.product(itertools.product(cube, repeat=3), repeat=2)
    for a, b in itertools.islice(three, 0, None, 23):
        yield (8, 8, 8), (2, 2, 2), a, b


def kind(a, b):
    """The collective of one step; "-" for none."""
    if isinstance(a, Partial):
        return ("allreduce" if b == R else
                "reduce_scatter" if isinstance(b, Shard) else "-")
    if isinstance(a, Shard):
        return ("allgather" if b == R else
                "all_to_all" if isinstance(b, Shard) else "-")
    return "-"


def steps(infos):
    """"2:S(0)>R;0:S(0)>S(1)": mesh dimension, before, after."""
    return ";".join(f"{i.mesh_dim}:{word(i.src_dst_placements[0])}>"
                    f"{word(i.src_dst_placements[1])}" for i in infos) or "-"


def counts(infos):
    """allgather/allreduce/reduce_scatter/all_to_all."""
    kinds = [kind(*i.src_dst_placements) for i in infos]
    return "/".join(str(kinds.count(k)) for k in
                    ["allgather", "allreduce", "reduce_scatter",
                     "all_to_all"])


def planned(mesh, shape, src, dst):
    a, b = (spec_of(mesh, shape, p) for p in (src, dst))
    planner = _redistribute.DTensorRedistributePlanner(mesh, a.tensor_meta)
    greedy = planner.generate_greedy_transform_infos(a, b)
    planner = _redistribute.DTensorRedistributePlanner(mesh, a.tensor_meta)
    least = planner.generate_graph_based_transform_infos(a, b, shape)
    return f"{counts(greedy)} {steps(greedy)} {counts(least)} {steps(least)}"


def make_traces(meshes):
    table = Table("traces.txt", [
        "tensor shape (f32), mesh, placements before and after, then of the",
        "greedy planner and of the min-cost planner: how many allgathers /",
        "allreduces / reduce_scatters / all_to_alls, and the steps: mesh",
        "dimension : before > after"])
    for shape, mesh, src, dst in trace_cases():
        case = f"{sizes(shape)} {sizes(mesh)} {words(src)} {words(dst)}"
        line = run(planned, meshes[mesh], shape, src, dst)
        if line.startswith("refused"):
            table.leave_out(line, case)
        else:
            table.lines.append(f"{case} {line}")
    if dist.get_rank() == 0:
        table.write()


# -------------------------------------------------------------------- meshes

MESH_NAMES = [((8,), "dp"), ((2, 4), "dp,tp"), ((4, 2), "dp,tp"),
              ((2, 2, 2), "dp,cp,tp"), ((2, 2, 2, 1), "dp,pp,cp,tp"),
              ((1, 2, 4), "pp,dp,tp")]


def submesh(mesh):
    return f"{sizes(mesh.shape)}:" + ",".join(
        str(r) for r in mesh.mesh.flatten().tolist())


def sliced(shape, names, pick):
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=tuple(names.split(",")))
    return submesh(mesh[tuple(pick)])


def flattened(shape, names, pick, then):
    """Flatten `pick`, and slice by the flat name and those in `then`."""
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=tuple(names.split(",")))
    part = mesh[tuple(pick)] if list(pick) != names.split(",") else mesh
    flat = part._flatten("flat")
    if not then:
        return submesh(flat)
    return submesh(mesh[tuple(then)])


def unflattened(shape, names, dim, into):
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=tuple(names.split(",")))
    new = mesh._unflatten(dim, into, tuple(f"u{i}" for i in range(len(into))))
    return submesh(new)


def mesh_cases():
    for shape, names in MESH_NAMES:
        all_ = names.split(",")
        for n in range(1, len(all_) + 1):
            for pick in itertools.permutations(all_, n):
                yield ("slice", sliced, (shape, names, pick), ",".join(pick))
        yield ("slice", sliced, (shape, names, ("xx",)), "xx")
        yield ("slice", sliced, (shape, names, (all_[0], all_[0])),
               f"{all_[0]},{all_[0]}")
    for shape, names in MESH_NAMES[1:]:
        all_ = names.split(",")
        for n in range(1, len(all_) + 1):
            for pick in itertools.combinations(all_, n):
                rest = [d for d in all_ if d not in pick]
                yield ("flatten", flattened, (shape, names, pick, None),
                       ",".join(pick))
                for other in rest:
                    for then in ((other, "flat"), ("flat", other)):
                        yield ("flatten", flattened,
                               (shape, names, pick, then),
                               f"{','.join(pick)} {','.join(then)}")
    for shape, names, dim, into in [
            ((8,), "dp", 0, (2, 4)), ((8,), "dp", 0, (2, 2, 2)),
            ((8,), "dp", 0, (3, 2)), ((4, 2), "dp,tp", 0, (2, 2)),
            ((2, 4), "dp,tp", 1, (2, 2)), ((2, 4), "dp,tp", 1, (4, 1)),
            ((2, 4), "dp,tp", 0, (2, 2)), ((2, 2, 2), "dp,cp,tp", 1, (1, 2))]:
        yield ("unflatten", unflattened, (shape, names, dim, into),
               f"{dim} {sizes(into)}")


def make_meshes():
    table = Table("mesh.txt", [
        "slice MESH NAMES PICK: the sub-mesh of each rank",
        "flatten MESH NAMES PICK [THEN]: the flat mesh of each rank, or with",
        "the flat mesh named \"flat\" the slice THEN of the whole",
        "unflatten MESH NAMES DIMENSION SIZES: the new mesh",
        "each as sizes:ranks, equal ones once, or \"refused\""])
    cases = list(mesh_cases())
    everyone = []
    for rank in range(WORLD):           # no bytes move: one process will do
        dist.init_process_group("fake", rank=rank, world_size=WORLD,
                                store=FakeStore())
        everyone.append([run(function, *args)
                         for _, function, args, _ in cases])
        dist.destroy_process_group()
    for (what, _, args, rest), parts in zip(cases, zip(*everyone)):
        case = f"{what} {sizes(args[0])} {args[1]} {rest}"
        if parts[0].startswith("refused"):
            table.lines.append(f"{case} = refused")
        else:
            table.lines.append(f"{case} = {' '.join(dict.fromkeys(parts))}")
    table.write()


# ------------------------------------------------------------ layout algebra

def pairs_of(flat):
    """"(4,2):(2,1)", "()" when empty."""
    if not flat.shape:
        return "()"
    return (f"({','.join(map(str, flat.shape))}):"
            f"({','.join(map(str, flat.stride))})")


def algebra_lines():
    shapes = [((3, 2), (2, 1)), ((2, 3, 4), (12, 4, 1)), ((3, 2), (4, 1)),
              ((1, 3, 1, 5, 1), (0, 10, 17, 2, 1)), ((1, 1), (3, 1)),
              ((2, 3), (3, 1)), ((2, 3), (1, 2)), ((4,), (1,)), ((4,), (2,)),
              ((2, 2), (4, 1)), ((2, 2), (2, 4)), ((2, 2), (8, 2)),
              ((2, 4), (4, 1)), ((2, 2, 2), (4, 2, 1)), ((2, 2), (4, 2)),
              ((8,), (1,)), ((2,), (8,)), ((2, 2), (8, 1)), ((3,), (2,)),
              ((2, 3), (6, 1)), ((2, 2, 2), (8, 4, 1)), ((2, 3), (2, 1)),
              ((2, 3), (1, 1)), ((3, 2), (2, 3)), ((2, 11, 3, 7),
                                                   (1, 210, 2, 30))]
    for s, d in shapes:
        flat = _FlatLayout(s, d)
        raw = f"({','.join(map(str, s))}):({','.join(map(str, d))})"
        yield f"canonical {raw} = {pairs_of(flat)}"
        yield f"orthogonal {raw} = {'yes' if flat.check_orthogonal() else 'no'}"
        yield f"sorted {raw} = {'yes' if flat.check_sorted() else 'no'}"
        if flat.numel() > 64:
            continue
        yield f"codomain {raw} = {','.join(map(str, flat.all_ranks_from_zero()))}"
        for world in (8, 16, 24):
            def both():
                ranks = flat.global_ranks(world)
                if sorted(sum(ranks, [])) != list(range(world)):
                    raise ValueError("not a partition")
                return pairs_of(flat.complement(world)), ranks
            made = run(both)
            if isinstance(made, str):
                continue
            yield f"complement {raw} {world} = {made[0]}"
            yield f"groups {raw} {world} = " + " ".join(
                ",".join(map(str, r)) for r in made[1])
    for s, d in shapes:
        for s2, d2 in [((2,), (1,)), ((2,), (2,)), ((4,), (1,)), ((2, 2), (2, 1)),
                       ((4, 2), (2, 1)), ((2,), (3,))]:
            if any(_FlatLayout(s, d).numel() % (n * by)
                   for n, by in zip(s2, d2)):
                continue                    # B would lead out of A
            raw = f"({','.join(map(str, s))}):({','.join(map(str, d))})"
            raw2 = f"({','.join(map(str, s2))}):({','.join(map(str, d2))})"
            made = run(lambda: " ".join(pairs_of(axis) for axis in
                       _FlatLayout(s, d).composition(
                           _MeshLayout.from_sizes_strides(s2, d2))))
            if not made.startswith("refused"):
                yield f"compose {raw} {raw2} = {made}"


def make_algebra():
    table = Table("algebra.txt", [
        "canonical form, orthogonality, order, codomain, complement in a",
        "world, the groups of a world, and composition A o B by axis of B"])
    table.lines = list(algebra_lines())
    table.write()


# --------------------------------------------------------------------- texts

DTYPES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16,
          "bf16": torch.bfloat16, "i8": torch.int8, "u8": torch.uint8,
          "i16": torch.int16, "u16": torch.uint16, "i32": torch.int32,
          "u32": torch.uint32, "i64": torch.int64, "u64": torch.uint64,
          "bool": torch.bool, "c64": torch.complex64,
          "c128": torch.complex128, "f8e4m3": torch.float8_e4m3fn,
          "f8e5m2": torch.float8_e5m2}
FLOAT_OPS = ["sum", "avg", "product", "min", "max"]
BIT_OPS = ["band", "bor", "bxor"]


def text_cases():
    """dtype, shape, mesh shape, placements, shard order (None: as it is)"""
    for dtype in DTYPES:
        yield dtype, (8, 8), (4, 2), (S0, R), None
    for op in FLOAT_OPS + BIT_OPS:
        dtype = "f32" if op in FLOAT_OPS else "i32"
        yield dtype, (8, 8), (4, 2), (Partial(op), S1), None
        yield dtype, (8,), (8,), (Partial(op),), None
    yield "f32", (), (8,), (R,), None
    yield "f32", (), (4, 2), (Partial("sum"), Partial("avg")), None
    yield "f32", (0, 3, 1), (4, 2), (S2, S0), None
    cuts = [R, S0, S1, Strided(0, split_factor=2), Strided(0, split_factor=3),
            Strided(1, split_factor=4)]
    for pair in itertools.product(cuts, repeat=2):
        yield "f32", (8, 8), (4, 2), pair, None
    for three in itertools.product(cuts[:4], repeat=3):
        yield "bf16", (16, 8), (2, 2, 2), three, None
    for order in itertools.permutations(range(2)):
        yield "f32", (8, 8), (4, 2), (S0, S0), {0: order}
    for order in itertools.permutations(range(3)):
        yield "f32", (8, 8), (2, 2, 2), (S0, S0, S0), {0: order}
        yield "f32", (8, 8), (2, 2, 2), (S1, S1, S1), {1: order}
    for order in ((0, 2), (2, 0)):
        yield "f32", (8, 8), (2, 2, 2), (S0, S1, S0), {0: order, 1: (1,)}
        yield "f32", (8, 8), (2, 2, 2), (S1, Partial("max"), S1), {1: order}


def text_of(dtype, shape, mesh, placements, order):
    """What the library calls these placements; the spec; the placements."""
    meta = TensorMeta(torch.Size(shape), strides(shape), DTYPES[dtype])
    if order is None:
        return (words(placements), str(DTensorSpec(mesh, placements, meta)),
                repr(placements))
    order = tuple(ShardOrderEntry(tensor_dim=d, mesh_dims=m)
                  for d, m in sorted(order.items()))
    spec = DTensorSpec(mesh, placements, meta, shard_order=order)
    strided = DTensorSpec._convert_shard_order_to_StridedShard(
        order, placements, mesh)
    return words(strided), str(spec), repr(strided)


def make_texts():
    """Only what is written down is asked: one process will do."""
    table = Table("specs.txt", [
        "spec: dtype, tensor shape, mesh, placements; order: the same of a spec",
        "that has a shard order, which these placements say otherwise.  Then",
        "str() of the spec and repr() of its placements"])
    dist.init_process_group("fake", rank=0, world_size=WORLD,
                            store=FakeStore())
    for dtype, shape, grid, placements, order in text_cases():
        mesh = init_device_mesh("cpu", grid)
        ours, spec, placed = text_of(dtype, shape, mesh, placements, order)
        table.lines.append(
            f"{'spec' if order is None else 'order'} {dtype} {sizes(shape)} "
            f"{sizes(grid)} {ours} = {spec} = {placed}")
    dist.destroy_process_group()
    table.write()


# --------------------------------------------------------------------- main

def member(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
                      RANK=str(rank), WORLD_SIZE=str(WORLD))
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=WORLD,
                            timeout=datetime.timedelta(seconds=40))
    meshes = {}
    for shape in MESHES:
        n = 1
        for k in shape:
            n *= k
        meshes[shape] = DeviceMesh("cpu", torch.arange(n).reshape(shape))
    only = sys.argv[1:]
    if not only or "layout" in only:
        make_layouts(meshes)
    if not only or "redistribute" in only:
        make_redistributes(meshes)
    if not only or "traces" in only:
        make_traces(meshes)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        free = s.getsockname()[1]
    only = sys.argv[1:]
    warnings.simplefilter("ignore")
    if not only or "mesh" in only:
        make_meshes()
    if not only or "algebra" in only:
        make_algebra()
    if not only or "specs" in only:
        make_texts()
    if only not in (["mesh"], ["algebra"], ["specs"]):
        mp.spawn(member, args=(free,), nprocs=WORLD)
