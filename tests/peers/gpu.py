#!/usr/bin/env python3
"""gpu.py - fills on a GPU beside PyTorch's and CuPy's, in the same run

    python3 tests/peers/gpu.py LIBDTENSOR.so

First values: with fill = cuda, each fill on the GPU has the bits of PyTorch's
generator on that GPU, and moves its offset as far.  It has those of the host
too, but for normals, which are within a bound (dtensor-random(7)).  Then rates of what both do; a ratio is of ours to
theirs, above 1 we are faster.  What is not there is "not measured", with the
reason.  Run by make bench-gpu; on the driver of tests/standin all lines are
marked, since none is of a GPU.
"""
import array
import ctypes
import os
import sys
import tempfile
import time

SEED = 20261127
FILE = """[cluster]
version = 1
[nodes "here"]
hosts = localhost
ranks = 1
hca = none
[transport]
intra_node = shm
[mesh "world"]
dims = x=1
memory = cuda
[mesh "host"]
dims = x=1
"""
# function, its numbers, dtype, format of array
FILLS = {
    "uniform f32": ("uniform", (0.0, 1.0), "f32", "f"),
    "uniform f64": ("uniform", (0.0, 1.0), "f64", "d"),
    "bernoulli f32": ("bernoulli", (0.3,), "f32", "f"),
    "integers i64": ("integers", (0, 100), "i64", "q"),
    "normal f32": ("normal", (0.0, 1.0), "f32", "f"),
}

# radius of at most 6.765, error of a GPU's sine, 2^-20.5, and roundings
NEAR = {"normal f32": 6.765 * 7e-7 + 1e-6}


class Rule(ctypes.Structure):
    _fields_ = [("tracker", ctypes.c_int), ("fill", ctypes.c_int),
                ("pytorch", ctypes.c_int), ("sms", ctypes.c_int),
                ("threads_per_sm", ctypes.c_int),
                ("parallel_dims", ctypes.c_char * 100),
                ("distinct_replicas", ctypes.c_int)]


class NoDevice(RuntimeError):
    """The machine has no GPU, or no driver."""


ENODEV = -5                   # DTENSOR_ENODEV
LOCAL, CUDA = 3, 1            # DTENSOR_TRACKER_LOCAL, DTENSOR_FILL_CUDA


class Library:
    """libdtensor through ctypes; structs are opaque, and large enough."""

    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        self.lib.dtensor_generator_offset.restype = ctypes.c_int64
        self.lib.dtensor_dtype_size.restype = ctypes.c_size_t
        self.error = ctypes.create_string_buffer(8192)
        self.ctx = ctypes.c_void_p()
        with tempfile.NamedTemporaryFile("w", suffix=".ini") as file:
            file.write(FILE)
            file.flush()
            self.good(self.lib.dtensor_init(
                file.name.encode(), ctypes.byref(self.ctx), self.error))

    def good(self, rc):
        if rc != 0:
            text = self.error.raw[12:].split(b"\0")[0].decode()
            raise (NoDevice if rc == ENODEV else RuntimeError)(text)

    def tensor(self, mesh, dtype, count):
        spec = ctypes.create_string_buffer(8192)
        number, tensor = ctypes.c_int(), ctypes.c_void_p()
        self.good(self.lib.dtensor_dtype_parse(
            dtype.encode(), ctypes.byref(number), self.error))
        self.good(self.lib.dtensor_spec_init(
            spec, self.ctx, mesh.encode(), b"R", number, 1,
            (ctypes.c_int64 * 1)(count), self.error))
        self.good(self.lib.dtensor_zeros(spec, ctypes.byref(tensor),
                                         self.error))
        return tensor

    def generator(self, sms, threads):
        gen = ctypes.c_void_p()
        self.good(self.lib.dtensor_generator_create(
            ctypes.c_uint64(SEED), ctypes.byref(gen), self.error))
        rule = Rule(tracker=LOCAL, fill=CUDA, sms=sms, threads_per_sm=threads,
                    parallel_dims=b"tp")
        self.good(self.lib.dtensor_generator_set_rule(
            gen, ctypes.byref(rule), self.error))
        return gen

    def fill(self, name, tensor, gen):
        function, numbers, dtype, _ = FILLS[name]
        kind = ctypes.c_int64 if dtype == "i64" else ctypes.c_double
        self.good(getattr(self.lib, "dtensor_fill_" + function)(
            tensor, *[kind(x) for x in numbers], gen, self.error))

    def values(self, name, mesh, count, sms, threads):
        """The bytes of two fills, one after the other, and the offset then."""
        kind = FILLS[name][3]
        tensor = self.tensor(mesh, FILLS[name][2], count)
        gen = self.generator(sms, threads)
        full = bytearray(count * array.array(kind).itemsize)
        memory = (ctypes.c_char * len(full)).from_buffer(full)
        both = b""
        for _ in range(2):
            self.fill(name, tensor, gen)
            self.good(self.lib.dtensor_full_tensor(
                tensor, memory, ctypes.c_size_t(len(full)), self.error))
            both += bytes(full)
        offset = self.lib.dtensor_generator_offset(gen)
        self.lib.dtensor_generator_destroy(gen)
        self.lib.dtensor_destroy(tensor)
        return both, offset


def torch_fill(name, out, gen):
    _, numbers, _, _ = FILLS[name]
    if name.startswith("integers"):
        return out.random_(*numbers, generator=gen)
    return getattr(out, name.split()[0] + "_")(*numbers, generator=gen)


def torch_values(torch, name, count):
    dtype = {"f32": torch.float32, "f64": torch.float64,
             "i64": torch.int64}[FILLS[name][2]]
    gen = torch.Generator(device="cuda")
    gen.manual_seed(SEED)
    out = torch.empty(count, dtype=dtype, device="cuda")
    both = b""
    for _ in range(2):
        here = torch_fill(name, out, gen).cpu()
        both += ctypes.string_at(here.data_ptr(),
                                 count * here.element_size())
    state = bytes(gen.get_state()[8:16].tolist())
    return both, int.from_bytes(state, "little")


def compare(name, got, want, most=0.0):
    """The elements that differ, in words, and whether one does by too much."""
    if got == want:
        return "bit for bit", False
    kind = FILLS[name][3]
    one, two = array.array(kind, got), array.array(kind, want)
    far = [abs(a - b) for a, b in zip(one, two) if a != b]
    worst = max(far, default=0)
    return (f"{len(far)} of {len(one)} differ, by {worst:.3g}",
            not 0 < worst <= most)


def best_seconds(rounds, call, wait):
    least = 1e9
    for i in range(rounds + 1):
        wait()
        start = time.perf_counter_ns()
        call()
        wait()
        if i > 0:
            least = min(least, (time.perf_counter_ns() - start) / 1e9)
    return least


def calls_of(arrays, copy, add):
    """What PyTorch and CuPy both do, and how many arrays it moves."""
    a, b, c = arrays
    return {"copy": (lambda: copy(c, a), 2), "add": (lambda: add(a, b, c), 3)}


def torch_rows(torch, count):
    for dtype in (torch.float32, torch.bfloat16):
        n = count * 4 // torch.empty(0, dtype=dtype).element_size()
        arrays = [torch.ones(n, dtype=dtype, device="cuda") for _ in "abc"]
        calls = calls_of(arrays, lambda c, a: c.copy_(a),
                         lambda a, b, c: torch.add(a, b, out=c))
        for name, row in calls.items():
            yield f"torch {name} {str(dtype)[6:]}", row
        if dtype is torch.float32:
            yield "torch uniform f32", (arrays[0].uniform_, 1)
            yield "torch normal f32", (arrays[0].normal_, 1)


def cupy_rows(cupy, count):
    arrays = [cupy.ones(count, dtype="f4") for _ in "abc"]
    calls = calls_of(arrays, cupy.copyto,
                     lambda a, b, c: cupy.add(a, b, out=c))
    for name, row in calls.items():
        yield f"CuPy {name} float32", row


def our_rows(library, count):
    tensor, gen = library.tensor("world", "f32", count), library.generator(
        132, 2048)
    for name in ("uniform f32", "normal f32"):
        yield name, (lambda name=name: library.fill(name, tensor, gen), 1)


def peer(module, name):
    """The module, if it sees a GPU too; else why it is not measured."""
    try:
        found = __import__(module)
        there = (found.cuda.is_available() if module == "torch"
                 else found.cuda.runtime.getDeviceCount() > 0)
    except Exception as error:                  # whatever is in its way
        print(f"{name}: not measured: {error}")
        return None
    if not there:
        print(f"{name}: not measured: it sees no GPU")
    return found if there else None


def main(path):
    os.environ.update(DTN_RANK="0", DTN_WORLD_SIZE="1", DTN_LOCAL_RANK="0",
                      DTN_LOCAL_SIZE="1", DTN_JOB=f"gpu-{os.getpid()}")
    try:
        library = Library(path)
    except NoDevice as error:
        print(f"not measured: no GPU ({error})")
        return 0
    standin = hasattr(ctypes.CDLL("libcuda.so.1"), "dtn_standin_launches")
    mark = "  (of the stand-in, not of a GPU)" if standin else ""
    count, rounds = (1 << 12, 1) if standin else (1 << 24, 20)
    large = count if standin else 1 << 26       # beyond a GPU's cache
    torch, cupy = peer("torch", "PyTorch"), peer("cupy", "CuPy")
    sms, threads, bad = 132, 2048, 0
    if torch:
        gpu = torch.cuda.get_device_properties(0)
        sms = gpu.multi_processor_count
        threads = gpu.max_threads_per_multi_processor
    for name in FILLS:
        ours = library.values(name, "world", count, sms, threads)
        host = library.values(name, "host", count, sms, threads)
        said, wrong = compare(name, ours[0], host[0], NEAR.get(name, 0))
        bad += wrong or ours[1] != host[1]
        line = f"{name}: GPU and host: {said}"
        if torch:
            theirs = torch_values(torch, name, count)
            said, wrong = compare(name, ours[0], theirs[0])
            bad += wrong or ours[1] != theirs[1]
            line += (f"; GPU and PyTorch: {said}; offset {ours[1]}, "
                     f"PyTorch's {theirs[1]}")
        print(line + mark)
    rates = {}
    rows = list(our_rows(library, large))
    wait = torch.cuda.synchronize if torch else lambda: None
    rows += torch_rows(torch, large) if torch else []
    for name, (call, moved) in rows + (list(cupy_rows(cupy, large))
                                       if cupy else []):
        done = cupy.cuda.Device().synchronize if name[:4] == "CuPy" else wait
        rates[name] = moved * large * 4 / best_seconds(rounds, call, done)
        print(f"{name:28s} {rates[name] / 1e9:9.2f} GB/s{mark}")
    for name in ("uniform f32", "normal f32"):
        if torch:
            ratio = rates[name] / rates["torch " + name]
            print(f"{name} is {ratio:.2f} of PyTorch's; expected 1.00: "
                  f"{'reached' if ratio >= 1 else 'MISSED'}{mark}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
