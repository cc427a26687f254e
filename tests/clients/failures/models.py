# SPDX-License-Identifier: Apache-2.0
"""Two models on one GPU: the second does not fit beside the first."""
import sys

import torch
from torch import nn


def build(width=4096, layers=24):
    return nn.Sequential(*(nn.Linear(width, width) for _ in range(layers)))


def load_teacher():
    return build().cuda()  # HERE


def load_student():
    return build().cuda()


def main(is_fixed):
    teacher = load_teacher()
    if is_fixed:
        teacher = teacher.cpu()
    student = load_student()
    student(torch.randn(8, 4096, device="cuda"))
    print(len(teacher))


main("fixed" in sys.argv)
