# SPDX-License-Identifier: Apache-2.0
"""torchao: linear layers quantized to 8 bits in place; more of them than fit run out of memory."""
import sys

import torch
from torch import nn
from torchao.quantization import Float8WeightOnlyConfig, Int8DynamicActivationInt8WeightConfig, Int8WeightOnlyConfig, quantize_


def main(n):
    for config in Int8WeightOnlyConfig(), Int8DynamicActivationInt8WeightConfig(), Float8WeightOnlyConfig():
        net = nn.Sequential(*(nn.Linear(4096, 4096) for _ in range(n))).bfloat16().cuda()  # HERE
        before = torch.cuda.memory_allocated()
        quantize_(net, config)
        with torch.no_grad():
            y = net(torch.randn(64, 4096, device="cuda", dtype=torch.bfloat16))
        print(type(config).__name__, tuple(y.shape), before, torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated())
        del net, y


main(200 if "fail" in sys.argv else 8)
