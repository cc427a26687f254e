# SPDX-License-Identifier: Apache-2.0
"""Programs that run out of memory, each by another setting, or by none: settings.py PROGRAM.

split     long-lived tensors in the segments of short-lived ones      pool   a pool of its own, whose memory is idle afterwards
fraction  a fraction of the GPU that the program sets                whole  one tensor that no GPU has
kept      the same, but it catches the failure, and ends otherwise
"""
import sys

import torch

MIB = 1 << 20


def blank(mib, **options):
    return torch.empty(mib * MIB, dtype=torch.uint8, **{"device": "cuda", **options})


def split():
    kept = []
    for i in range(12):
        large = blank(1000 + 20 * i)
        del large
        kept += [blank(30)]


def fraction():
    torch.cuda.set_per_process_memory_fraction(0.25)
    held = [blank(512) for _ in range(3)]
    del held


def pool():
    own = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(own):
        first = blank(2500)
    del first
    second = blank(2500)
    return own, second


def whole():
    blank(400 << 10)


def kept():
    try:
        blank(400 << 10)
    except torch.OutOfMemoryError:
        sys.exit("no batch size is small enough")


{f.__name__: f for f in (split, fraction, pool, whole, kept)}[sys.argv[1]]()
