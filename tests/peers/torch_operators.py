"""torch_operators.py - calls of operators at random, ours and PyTorch's

Used by torch_programs.py.  A family takes a random generator and a tensor, and
gives one call that the tensor is in the domain of: our operator and arguments,
PyTorch's function, and which inputs it has beside the tensor, by kind and
shape: n normal numbers, p positive ones, b bool, iN indices below N.
"""
import math

import torch
from torch.nn import functional

# Where a rounding may change a gradient by more than a rounding.
KINKS = ("relu", "abs", "clamp", "maximum", "minimum", "amax", "amin", "sort",
         "topk")


class Op:
    """One call.  `order` says which inputs, counted from the tensor, ours takes
    first; of `outputs` that ours makes number `take` is used."""

    def __init__(self, name, args, run, more=(), order=None, outputs=1, take=0):
        self.name, self.args, self.run, self.more = name, args, run, more
        self.order = order or range(len(more) + 1)
        self.outputs, self.take = outputs, take


def unary(rng, x):
    """An operator element by element that x is in the domain of."""
    low, high = x.min().item(), x.max().item()
    free = {"relu": torch.relu, "sigmoid": torch.sigmoid, "tanh": torch.tanh,
            "asinh": torch.asinh, "atan": torch.atan, "erf": torch.erf,
            "neg": torch.neg, "abs": torch.abs, "square": torch.square,
            "gelu": functional.gelu, "sin": torch.sin,
            "silu": functional.silu, "cos": torch.cos,
            "softplus": functional.softplus, "clone": torch.clone}
    if high < 3:
        free |= {"exp": torch.exp, "expm1": torch.expm1}
    if low > 0.2:
        free |= {"log": torch.log, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt,
                 "reciprocal": torch.reciprocal, "log1p": torch.log1p}
    name = rng.choice(sorted(free))
    return Op(name, "", free[name])


def numbered(rng, x):
    value = rng.choice((-1.5, 0.5, 2, 3))
    return rng.choice((
        Op("shift", f"value={value}", lambda x: x + value),
        Op("scale", f"value={value}", lambda x: x * value),
        Op("pow", "p=3", lambda x: x.pow(3)),
        Op("clamp", "low=-0.5,high=0.75", lambda x: x.clamp(-0.5, 0.75))))


def fits(rng, shape):
    """A shape that is broadcast to this one."""
    cut = rng.randint(0, len(shape))
    return tuple(1 if rng.random() < 0.25 else n for n in shape[cut:])


def binary(rng, x):
    shape = x.shape if rng.random() < 0.5 else fits(rng, x.shape)
    names = {"add": torch.add, "sub": torch.sub, "mul": torch.mul,
             "maximum": torch.maximum, "minimum": torch.minimum,
             "div": lambda a, b: a / b}
    name = rng.choice(sorted(names))
    if rng.random() < 0.2:
        return Op("addcmul", "value=2", lambda a, b, c: a + 2 * b * c,
                  (("n", shape), ("n", x.shape)))
    if rng.random() < 0.2:
        return rng.choice((
            Op("where", "", lambda a, b, c: torch.where(b, a, c),
               (("b", shape), ("n", x.shape)), (1, 0, 2)),
            Op("lerp", "", torch.lerp, (("n", x.shape), ("n", shape))),
            Op("addcdiv", "value=2", lambda a, b, c: a + 2 * b / c,
               (("n", shape), ("p", x.shape)))))
    return Op(name, "", names[name], (("p" if name == "div" else "n", shape),))


def varies(x, dims):
    """Do elements along dimensions differ, so that a root magnifies nothing?"""
    return (math.prod(x.shape[d] for d in dims) > 2
            and x.var(dims).min().item() > 0.01)


def reduction(rng, x):
    dims = sorted(rng.sample(range(x.dim()), rng.randint(1, x.dim())))
    keep = rng.random() < 0.5
    one = dims[0]
    names = {"sum": lambda x: x.sum(dims, keep),
             "mean": lambda x: x.mean(dims, keep),
             "logsumexp": lambda x: x.logsumexp(dims, keep)}
    if x.unique().numel() == x.numel():
        names |= {"amax": lambda x: x.amax(dims, keep),
                  "amin": lambda x: x.amin(dims, keep)}
    if varies(x, dims):
        names |= {"var": lambda x: x.var(dims, keepdim=keep),
                  "norm": lambda x: torch.linalg.vector_norm(
                      x, 2, dims, keep)}
        names |= {"std": lambda x: x.std(dims, keepdim=keep)}
    name = rng.choice(sorted(names))
    if rng.random() < 0.3:
        return rng.choice((
            Op("cumsum", f"dim={one}", lambda x: x.cumsum(one)),
            Op("cumprod", f"dim={one}", lambda x: x.cumprod(one)),
            Op("prod", f"dim={one},keep={int(keep)}",
               lambda x: x.prod(one, keep)),
            Op("powsum", f"dim={one},keep={int(keep)},p=2",
               lambda x: x.square().sum(one, keep))))
    return Op(name, f"dim={'+'.join(map(str, dims))},keep={int(keep)}"
              + (",p=2" if name == "norm" else ""), names[name])


def product(rng, x):
    k, n = x.shape[-1], rng.choice((1, 3, 5, 8))
    if x.dim() == 4 and rng.random() < 0.7:
        other = (*x.shape[:2], rng.choice((3, 4)))
        causal = rng.random() < 0.5 and x.shape[2] == other[2]
        return Op("attention", f"causal={int(causal)}",
                  lambda x, k, v: functional.scaled_dot_product_attention(
                      x, k, v, is_causal=causal),
                  (("n", (*other, k)), ("n", (*other, n))), None, 2)
    if x.dim() == 1 or rng.random() < 0.5:
        bias = (("n", (n,)),) if rng.random() < 0.5 else ()
        return Op("linear", "", functional.linear, (("n", (n, k)),) + bias)
    if x.dim() == 2 and rng.random() < 0.3:
        return Op("addmm", "", lambda x, w, b: torch.addmm(b, x, w),
                  (("n", (k, n)), ("n", (n,))), (2, 0, 1))
    batch = tuple(x.shape[:-2]) if rng.random() < 0.5 else ()
    return Op("matmul", "", torch.matmul, (("n", batch + (k, n)),))


def rows(rng, x):
    d = rng.randrange(x.dim())
    last = x.shape[-1:]
    ops = [Op("softmax", f"dim={d}", lambda x: x.softmax(d)),
           Op("log_softmax", f"dim={d}", lambda x: x.log_softmax(d))]
    if varies(x, [x.dim() - 1]):
        ops += [Op("layer_norm", "count=1",
                   lambda x, w, b: functional.layer_norm(x, last, w, b),
                   (("n", last), ("n", last)), None, 3),
                Op("rms_norm", "count=1,eps=0.00001",
                   lambda x, w: functional.rms_norm(x, last, w, 1e-5),
                   (("n", last),), None, 2)]
    return rng.choice(ops)


def regrouped(rng, shape):
    """Another shape of as many elements."""
    left, to = math.prod(shape), []
    while left > 1:
        k = rng.choice([d for d in range(2, left + 1) if left % d == 0])
        to.append(k)
        left //= k
    return tuple(to) if 0 < len(to) < 4 else (math.prod(shape),)


def view(rng, x):
    d, order = rng.randrange(x.dim()), list(range(x.dim()))
    rng.shuffle(order)
    to, copies = regrouped(rng, x.shape), rng.choice((2, 3))
    wide = (copies, *x.shape)
    ops = [Op("reshape", f"shape={'x'.join(map(str, to))}",
              lambda x: x.reshape(to)),
           Op("permute", f"dim={'+'.join(map(str, order))}",
              lambda x: x.permute(order)),
           Op("transpose", f"dim={d}+-1", lambda x: x.transpose(d, -1)),
           Op("flip", f"dim={d}", lambda x: x.flip(d)),
           Op("repeat", "shape=" + "x".join(["1"] * (x.dim() - 1)
                                            + [str(copies)]),
              lambda x: x.repeat([1] * (x.dim() - 1) + [copies]))]
    if x.dim() < 4:
        ops += [Op("unsqueeze", f"dim={d}", lambda x: x.unsqueeze(d)),
                Op("expand", f"shape={'x'.join(map(str, wide))}",
                   lambda x: x.expand(wide))]
    if x.dim() > 1:
        ops += [Op("tril", "start=0", torch.tril),
                Op("triu", "start=1", lambda x: x.triu(1))]
    return rng.choice(ops)


def whole_part(rng, x, d):
    """Some elements along dimension d, by their place."""
    n = x.shape[d]
    start = rng.randrange(n)
    end, step = rng.randint(start + 1, n), rng.choice((1, 1, 2))
    count = rng.randint(1, n)
    pieces = -(-n // count)
    take = rng.randrange(min(pieces, 6))
    ops = [Op("slice", f"dim={d},start={start},end={end},step={step}",
              lambda x: x[(slice(None),) * d + (slice(start, end, step),)]),
           Op("select", f"dim={d},start={start}", lambda x: x.select(d, start)),
           Op("pad", f"dim={d},start=1,end=2,value=0.5",
              lambda x: functional.pad(x, [0, 0] * (x.dim() - 1 - d) + [1, 2],
                                       value=0.5))]
    if pieces < 7:
        ops += [Op("split", f"dim={d},count={count}",
                   lambda x: x.split(count, d)[take], (), None, pieces, take)]
    if x.unique().numel() == x.numel():
        ops += [Op("sort", f"dim={d}", lambda x: x.sort(d)[0], (), None, 2),
                Op("topk", f"dim={d},count={count}",
                   lambda x: x.topk(count, d)[0], (), None, 2)]
    return rng.choice(ops)


def part(rng, x):
    d = rng.randrange(x.dim())
    n = x.shape[d]
    other = tuple(rng.choice((1, 3, 4)) if k == d else m
                  for k, m in enumerate(x.shape))
    index, some = (f"i{n}", (5,)), tuple(
        5 if k == d else m for k, m in enumerate(x.shape))
    if rng.random() < 0.5:
        return whole_part(rng, x, d)
    ops = [Op("cat", f"dim={d}", lambda a, b: torch.cat((a, b), d),
              (("n", other),)),
           Op("index_select", f"dim={d}", lambda x, i: x.index_select(d, i),
              (index,)),
           Op("gather", f"dim={d}", lambda x, i: x.gather(d, i),
              ((f"i{n}", other),)),
           Op("scatter_add", f"dim={d}",
              lambda x, i, e: x.scatter_add(d, i, e),
              ((f"i{n}", other), ("n", other))),
           Op("index_put_add", f"dim={d}",
              lambda x, e, i: x.index_add(d, i, e), (("n", some), index))]
    if x.dim() < 4:
        ops += [Op("stack", f"dim={d}", lambda a, b: torch.stack((a, b), d),
                   (("n", x.shape),))]
    if x.dim() == 2:
        ops += [Op("embedding", "", lambda x, i: functional.embedding(i, x),
                   ((f"i{x.shape[0]}", (3, 2)),))]
        ops += [Op("cross_entropy", f"reduction={how}",
                   lambda x, t, how=how: functional.cross_entropy(
                       x, t, reduction=how),
                   ((f"i{x.shape[1]}", (x.shape[0],)),), None, 3)
                for how in ("none", "sum", "mean")]
    return rng.choice(ops)


FAMILIES = (unary, unary, numbered, binary, binary, reduction, product, product,
            rows, view, part, part)
