#!/usr/bin/env python3
"""step_torch.py - the step of step.c in PyTorch, eager or DDP over gloo

    python3 tests/peers/step_torch.py RANKS ROWS WIDTH HIDDEN

A thread for each rank.  Prints the microseconds of a step, the least mean of
ROUNDS rounds.
"""
import os
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

ROUNDS, STEPS = 9, 200


def run(rank, ranks, file, rows, width, hidden):
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    net = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(),
                        nn.Linear(hidden, width))
    if ranks > 1:
        dist.init_process_group('gloo', init_method='file://' + file,
                                rank=rank, world_size=ranks)
        net = DistributedDataParallel(net)
    x, want = torch.randn(2, rows // ranks, width)
    descent = torch.optim.SGD(net.parameters(), lr=0.01)
    least = None
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        for _ in range(STEPS):
            loss = ((net(x) - want) ** 2).mean()
            descent.zero_grad()
            loss.backward()
            descent.step()
            loss.item()
        us = (time.perf_counter() - begin) / STEPS * 1e6
        least = us if least is None else min(least, us)
    if rank == 0:
        print(f'torch   {least:7.1f} us a step, ranks {ranks}', flush=True)
    if ranks > 1:
        dist.barrier()
        os._exit(0)               # threads of gloo abort an ordinary exit


def main():
    ranks, *sizes = map(int, sys.argv[1:])
    os.environ.setdefault('GLOO_SOCKET_IFNAME', 'lo')
    with tempfile.TemporaryDirectory() as folder:
        args = (ranks, folder + '/join', *sizes)
        if ranks == 1:
            run(0, *args)
        else:
            mp.spawn(run, args, ranks)


if __name__ == '__main__':
    main()
