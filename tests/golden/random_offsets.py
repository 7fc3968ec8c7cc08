#!/usr/bin/env python3
"""random_offsets.py - make random_offsets.txt

For each layout and rank the (start, end) offsets of DTensor's
OffsetBasedRNGTracker, by the formula written down here and, where PyTorch is
installed, by the arithmetic of a real tracker as well, driven with a state
that only remembers its offset; the two are compared.

    python3 tests/golden/random_offsets.py > tests/golden/random_offsets.txt

A placement here is None (replicated), d (a shard of tensor dimension d) or
(d, f), a strided shard of d with split factor f.
"""
import itertools
import random
import sys

try:
    import torch
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.placement_types import _StridedShard
    import torch.distributed.tensor._random as tracker_module
except ImportError:
    torch = None


def ceil4(x):
    return (x + 3) // 4 * 4


def cut_dim(place):
    """The tensor dimension that a placement cuts, or None."""
    return place[0] if isinstance(place, tuple) else place


def word(place):
    """A placement as the library writes it."""
    if place is None:
        return "R"
    return (f"SS({place[0]},{place[1]})" if isinstance(place, tuple)
            else f"S({place})")


def chunks(items, n):
    """Cut a list as torch.chunk does."""
    full = -(-len(items) // n)
    return [items[i * full:(i + 1) * full] for i in range(n)]


def first_shard(place, length, n):
    """How long the shard of coordinate 0 of n is, by cutting a list."""
    if not isinstance(place, tuple):
        return len(chunks(range(length), n)[0])
    pieces = chunks(range(length), place[1])
    return sum(len(chunks(piece, n)[0]) for piece in pieces)


def formula(shape, mesh, places, coord):
    """start, end of the rank with that coordinate."""
    linear = 0
    first = list(shape)
    for d in range(len(shape)):
        index, total = 0, 1
        for m, p in enumerate(places):
            if cut_dim(p) == d:
                index = index * mesh[m] + coord[m]
                total *= mesh[m]
        linear = linear * total + index
    for m, p in enumerate(places):
        if p is not None:
            first[cut_dim(p)] = first_shard(p, shape[cut_dim(p)], mesh[m])
    part = numel = 1
    for n, f in zip(shape, first):
        numel *= n
        part *= f
    return ceil4(linear * part), ceil4(numel)


class State:
    """Stands in for the generator's state."""
    seed = 0

    def __init__(self):
        self.offset = 0


class Mesh:
    """As much of a DeviceMesh as the arithmetic asks for."""

    def __init__(self, sizes, coord):
        self.sizes, self.coord = sizes, coord
        self.shape = tuple(sizes)
        self.ndim = len(sizes)
        self.mesh = torch.arange(torch.Size(sizes).numel()).reshape(sizes)

    def get_coordinate(self):
        return list(self.coord)

    def size(self, dim=None):
        return self.sizes[dim] if dim is not None else self.mesh.numel()

    def sym_get_coordinate(self, dim):
        return self.coord[dim]

    def _sym_get_coordinate(self, dim):
        return self.coord[dim]

    def _is_current_rank_part_of_mesh(self):
        return True


def placement_of(place):
    if place is None:
        return Replicate()
    if isinstance(place, tuple):
        return _StridedShard(place[0], split_factor=place[1])
    return Shard(place)


class Spec:
    """As much of a DTensorSpec."""

    def __init__(self, shape, mesh, places):
        self.shape = torch.Size(shape)
        self.mesh = mesh
        self.ndim = len(shape)
        self.placements = tuple(placement_of(p) for p in places)

    @property
    def device_mesh(self):
        return self.mesh

    @property
    def dim_map(self):
        found = [-1] * self.ndim
        for m, p in enumerate(self.placements):
            if not isinstance(p, Replicate):
                found[p.dim] = m
        return found

    def num_shards_map(self):
        raise NotImplementedError


def real(shape, mesh, places, coord):
    """The same by PyTorch's own methods."""
    cls = tracker_module.OffsetBasedRNGTracker
    tracker = cls.__new__(cls)
    spec = Spec(shape, Mesh(mesh, coord), places)
    if hasattr(tracker, "_compute_rng_offsets"):
        start, end = tracker._compute_rng_offsets(spec)
        return int(start), int(end)
    state = State()
    tracker._set_pre_op_offset(state, spec)
    start = int(state.offset)
    tracker._set_post_op_offset(state, spec, 0)
    return start, int(state.offset)


def layouts():
    """Small ones, all of them; then larger ones at random."""
    for mesh in ([1], [2], [3], [4], [2, 2], [2, 3], [4, 2]):
        for shape in ([8], [10], [8, 4], [5, 6], [8, 16], [1, 3]):
            choices = [None] + list(range(len(shape)))
            for places in itertools.product(choices, repeat=len(mesh)):
                yield shape, mesh, places
    rng = random.Random(5)
    for _ in range(120):
        shape = [rng.randrange(1, 200) for _ in range(rng.randrange(1, 5))]
        mesh = [rng.randrange(1, 5) for _ in range(rng.randrange(1, 4))]
        places = [rng.choice([None] + list(range(len(shape)))) for _ in mesh]
        yield shape, mesh, places
    yield from strided_layouts()


def strided_layouts():
    """One strided shard of every small length; two mesh dimensions, one of
    them strided, on one dimension or two; then larger ones at random."""
    for n in (2, 3, 4):
        for length in range(1, 10):
            for factor in (2, 3, 4):
                yield [length, 4], [n], ((0, factor),)
    for mesh in ([2, 2], [2, 3], [4, 2]):
        for places in itertools.product([0, 1, (0, 2), (0, 3), (1, 4)],
                                        repeat=2):
            for shape in ([9, 5], [18, 16]):
                if any(isinstance(p, tuple) for p in places):
                    yield shape, mesh, places
    rng = random.Random(7)
    for _ in range(60):
        shape = [rng.randrange(1, 200) for _ in range(rng.randrange(1, 4))]
        mesh = [rng.randrange(1, 5) for _ in range(rng.randrange(1, 4))]
        yield shape, mesh, [(rng.randrange(len(shape)), rng.randrange(1, 9))
                            for _ in mesh]


def main():
    version = torch.__version__ if torch else None
    origin = f"PyTorch {version} and " if version else ""
    print(f"# random_offsets.txt - made by random_offsets.py from {origin}"
          "the formula")
    print("# tensor shape, mesh, placements, rank, then the start and the end "
          "of the")
    print("# offsets that the tracker gives to this rank")
    for shape, mesh, places in layouts():
        text = ",".join(word(p) for p in places)
        for rank, coord in enumerate(itertools.product(*map(range, mesh))):
            start, end = formula(shape, mesh, places, coord)
            if torch and real(shape, mesh, places, coord) != (start, end):
                sys.exit(f"{shape} {mesh} {text} {rank}: the formula says "
                         f"{start}, {end}, PyTorch "
                         f"{real(shape, mesh, places, coord)}")
            print("x".join(map(str, shape)), "x".join(map(str, mesh)), text,
                  rank, start, end)
    return 0


if __name__ == "__main__":
    sys.exit(main())
