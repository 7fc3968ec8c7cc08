#!/usr/bin/env python3
"""layer_torch.py - a step of the layer of layer.c in PyTorch, over gloo

    python3 tests/peers/layer_torch.py RANKS ROWS ROUNDS

The same layer, cut by parallelize_module() with the same styles, forward and
backward, a thread for each rank.  Prints "torch MILLISECONDS" for each round.
Run by layer.sh.
"""
import os
import socket
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import (
    ColwiseParallel, RowwiseParallel, parallelize_module)

WIDTH, HEAD = 1024, 64


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH)
        self.q = nn.Linear(WIDTH, WIDTH)
        self.k = nn.Linear(WIDTH, WIDTH)
        self.v = nn.Linear(WIDTH, WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.norm2 = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        h = self.norm1(x)
        q, k, v = (m(h).unflatten(2, (-1, HEAD)).transpose(1, 2)
                   for m in (self.q, self.k, self.v))
        h = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(h.transpose(1, 2).flatten(2))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


def step(layer, x):
    layer.zero_grad(set_to_none=True)
    x.grad = None
    y = layer(x)
    y.backward(y.detach())


def rank_run(rank, ranks, rows, rounds):
    torch.set_num_threads(1)
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(ranks))
    torch.manual_seed(1)
    mesh = init_device_mesh("cpu", (ranks,))
    styles = {name: ColwiseParallel() for name in ("q", "k", "v", "up")}
    styles.update(out=RowwiseParallel(), down=RowwiseParallel())
    layer = parallelize_module(Layer(), mesh, styles)
    x = torch.randn(1, rows, WIDTH).requires_grad_()
    for i in range(-1, rounds):
        dist.barrier()
        start = time.perf_counter()
        step(layer, x)
        dist.barrier()
        if rank == 0 and i >= 0:
            print(f"torch {(time.perf_counter() - start) * 1e3:.3f}",
                  flush=True)
    dist.destroy_process_group()


def main():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
                      GLOO_SOCKET_IFNAME="lo")
    ranks, rows, rounds = (int(x) for x in sys.argv[1:4])
    mp.spawn(rank_run, args=(ranks, rows, rounds), nprocs=ranks)


if __name__ == "__main__":
    main()
