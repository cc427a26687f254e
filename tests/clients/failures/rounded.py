# SPDX-License-Identifier: Apache-2.0
"""PyTorch rounds each size up to the next half of a power of two: 260 MiB are 384 MiB."""
import os
import sys

if "fixed" not in sys.argv:
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "roundup_power2_divisions:2"

import torch  # noqa: E402

kept = [torch.zeros(260 << 18, device="cuda") for _ in range(12)]
print(len(kept))
