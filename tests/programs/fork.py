# SPDX-License-Identifier: Apache-2.0
"""Uses the GPU, forks a child that ends without using it, and goes on."""
import os
import signal
import sys

from train import Device, Tensor


def main():
    device = Device()
    tensors = [Tensor(device, 3 << 20)]
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        # Ends by exit, not _exit: every handler of the process runs in the child too.
        sys.exit(7)
    _, status = os.waitpid(child, 0)
    print(f"child: {os.waitstatus_to_exitcode(status)}")
    tensors.append(Tensor(device, 5 << 20))
    tensors[0].fill(9)
    print(f"first byte: {tensors[0].first_byte()}")
    print(f"live bytes: {device.live_bytes}", flush=True)
    if "--hold" in sys.argv:
        signal.pause()
    for tensor in tensors:
        tensor.free()


if __name__ == "__main__":
    main()
