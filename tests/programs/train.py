# SPDX-License-Identifier: Apache-2.0
"""A training loop in Python, with ctypes on the CUDA runtime.  It knows nothing of gpucache.

Nested calls and a class, as users have them, so that a report can name file, line and function.
On stdout a line every --every steps and a last line; exit status 1 if CUDA failed.
"""
import argparse
import ctypes
import signal
import sys

MARK_BYTES = 4096
OOM_GROWTH = 96 << 20
LEAK_GROWTH = 1 << 20
DEVICE_TO_HOST = 2


def load_runtime():
    for name in ("libcudart.so.13", "libcudart.so.12", "libcudart.so"):
        try:
            lib = ctypes.CDLL(name)
        except OSError:
            continue
        lib.cudaMalloc.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t]
        lib.cudaFree.argtypes = [ctypes.c_void_p]
        lib.cudaMemset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
        lib.cudaMemcpy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        lib.cudaGetErrorString.restype = ctypes.c_char_p
        return lib
    sys.exit("no CUDA runtime library found")


class CudaError(Exception):
    pass


class Device:
    def __init__(self):
        self.lib = load_runtime()
        self.live_bytes = 0

    def check(self, what, status):
        if status:
            text = self.lib.cudaGetErrorString(status).decode()
            raise CudaError(f"{what} failed: {text} ({status})")

    def alloc(self, n_bytes):
        ptr = ctypes.c_void_p()
        status = self.lib.cudaMalloc(ctypes.byref(ptr), n_bytes)
        self.check(f"cudaMalloc of {n_bytes} bytes", status)
        self.live_bytes += n_bytes
        return ptr

    def free(self, ptr, n_bytes):
        self.check("cudaFree", self.lib.cudaFree(ptr))
        self.live_bytes -= n_bytes


class Tensor:
    def __init__(self, device, n_bytes):
        self.device = device
        self.n_bytes = n_bytes
        self.ptr = device.alloc(n_bytes)

    def fill(self, value):
        n_bytes = min(self.n_bytes, MARK_BYTES)
        self.device.check("cudaMemset", self.device.lib.cudaMemset(self.ptr, value, n_bytes))

    def first_byte(self):
        out = ctypes.create_string_buffer(1)
        self.device.check("cudaMemcpy", self.device.lib.cudaMemcpy(out, self.ptr, 1, DEVICE_TO_HOST))
        return out.raw[0]

    def free(self):
        self.device.free(self.ptr, self.n_bytes)


class Trainer:
    def __init__(self, device, options):
        self.device = device
        self.options = options
        self.history = []
        self.weights = self.load_weights()

    def load_weights(self):
        weights = []
        for layer in range(self.options.layers):
            weight = Tensor(self.device, 1 << 20)
            weight.fill(0x40 + layer)
            weights.append(weight)
        return weights

    def forward(self, step):
        activations = []
        for layer in range(self.options.layers):
            activation = Tensor(self.device, (300_000 + step % 5 * 4321 + layer * 17) * self.options.batch)
            activation.fill((step + layer) & 0xFF)
            activations.append(activation)
        return activations

    def remember_loss(self):
        self.history.append(Tensor(self.device, self.options.grow))

    def backward(self, activations):
        for activation in reversed(activations):
            activation.free()

    def train_step(self, step):
        activations = self.forward(step)
        total = sum(activation.first_byte() for activation in activations)
        if step == self.options.hold_at:
            print(f"live bytes: {self.device.live_bytes}", flush=True)
            signal.pause()
        if self.options.grow:
            self.remember_loss()
        self.backward(activations)
        return total

    def train(self):
        total = 0
        step = 0
        while self.options.oom or step < self.options.steps:
            step += 1
            total += self.train_step(step)
            if step % self.options.every == 0:
                print(f"step {step}: sum {total}", flush=True)
            if self.options.print_live:
                print(f"live bytes: {self.device.live_bytes}", flush=True)
        return total

    def finish(self):
        for layer, weight in enumerate(self.weights):
            if weight.first_byte() != 0x40 + layer:
                sys.exit(f"the weight of layer {layer} came back wrong")
            weight.free()
        if not self.options.leak:
            for loss in self.history:
                loss.free()


def parse_options():
    parser = argparse.ArgumentParser(prog="train.py")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--grow", type=int, default=0, metavar="BYTES_PER_STEP")
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--every", type=int, default=10)
    parser.add_argument("--hold-at", type=int, default=0, metavar="STEP")
    parser.add_argument("--oom", action="store_true")
    parser.add_argument("--leak", action="store_true")
    parser.add_argument("--print-live", action="store_true")
    options = parser.parse_args()
    if not options.grow:
        options.grow = OOM_GROWTH if options.oom else LEAK_GROWTH if options.leak else 0
    return options


def main():
    options = parse_options()
    trainer = Trainer(Device(), options)
    total = trainer.train()
    trainer.finish()
    print(f"done: {options.steps} steps, sum {total}")


if __name__ == "__main__":
    try:
        main()
    except CudaError as error:
        sys.stdout.flush()
        sys.exit(str(error))
