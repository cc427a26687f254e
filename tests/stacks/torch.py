# SPDX-License-Identifier: Apache-2.0
"""PyTorch: a Python extension that links libcudart dynamically; see torch.c."""
import ctypes
import os
import sys

from stack import wants

mode = os.RTLD_LOCAL | (os.RTLD_DEEPBIND if os.environ.get("DEEPBIND") else 0)
c10 = ctypes.CDLL(os.path.join(os.environ["STACKS"], "libc10_cuda.so"), mode=mode)
c10.c10_start()
for kind in ("plain", "async", "mapped"):
    if wants(kind):
        getattr(c10, "c10_" + kind)()
sys.stdout.flush()
c10.c10_hold()
