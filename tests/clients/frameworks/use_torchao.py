# SPDX-License-Identifier: Apache-2.0
"""torchao: linear layers quantized to 8 bits in place; more of them than fit run out of memory.

use_torchao.py LAYERS [host]: quantized before they are moved."""
import gc
import sys

import torch
from torch import nn
from torchao.quantization import Float8WeightOnlyConfig, Int8DynamicActivationInt8WeightConfig, Int8WeightOnlyConfig, quantize_

WIDTH = 2048


def main(n, is_on_host):
    for config in Int8WeightOnlyConfig(), Int8DynamicActivationInt8WeightConfig(), Float8WeightOnlyConfig():
        net = nn.Sequential(*(nn.utils.skip_init(nn.Linear, WIDTH, WIDTH, dtype=torch.bfloat16) for _ in range(n)))
        if is_on_host:
            quantize_(net, config)
        net.cuda()  # HERE
        before = torch.cuda.memory_allocated()
        if not is_on_host:
            quantize_(net, config)
        with torch.no_grad():
            y = net(torch.randn(64, WIDTH, device="cuda", dtype=torch.bfloat16))
        print(type(config).__name__, tuple(y.shape), before, torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated())
        del net, y
        gc.collect()  # of cycles in what was quantized


main(int(sys.argv[1]), "host" in sys.argv)
