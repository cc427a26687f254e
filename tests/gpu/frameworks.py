# SPDX-License-Identifier: Apache-2.0
"""A short computation in CuPy, JAX or numba, checked against NumPy; prints one JSON object.

  frameworks.py cupy|cupy-without-pool|jax|numba [oom]

With `oom` it allocates until that fails, and reports the exception.  It knows nothing of gpucache.
"""
import ctypes
import json
import sys
import time

STEPS = 60
WARM_UP = 10
OOM_STEP_BYTES = 64 << 20
OOM_MOST_BYTES = 1 << 40
# Memory taken besides JAX, which reads the free memory once, and by itself never takes more than three quarters of it.
BESIDE_JAX_BYTES = 2 << 30


class Missing(Exception):
    pass


def give(answer):
    print(json.dumps(answer), flush=True)
    sys.exit(0)


def compute(xp, i):
    """Whole numbers so small that sums are exact in any order; sizes vary as in real programs."""
    n = 512 + 32 * (i % 5)
    a = (xp.arange(n * n) % 7).reshape(n, n).astype(xp.float32)
    b = ((xp.arange(n * n) + i) % 5).reshape(n, n).astype(xp.float32)
    return xp.sort(xp.matmul(a, b) + a.T, axis=1)


class Cupy:
    def __init__(self, with_pool=True):
        import cupy
        if cupy.cuda.runtime.getDeviceCount() == 0:
            raise Missing("CuPy sees no GPU")
        if not with_pool:
            cupy.cuda.set_allocator(None)
        self.cupy = cupy
        self.version = cupy.__version__

    def compute(self, i):
        return self.cupy.asnumpy(compute(self.cupy, i))

    def allocate(self, size):
        return self.cupy.zeros(size, dtype=self.cupy.uint8)


class Jax:
    def __init__(self):
        import jax
        if jax.default_backend() != "gpu":
            raise Missing("JAX sees no GPU")
        self.jax = jax
        self.version = jax.__version__
        self.beside = None

    def compute(self, i):
        import numpy
        return numpy.asarray(compute(self.jax.numpy, i))

    def take_beside(self):
        cuda = ctypes.CDLL("libcuda.so.1")
        context, block = ctypes.c_void_p(), ctypes.c_uint64()
        codes = (cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context),
                 cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(BESIDE_JAX_BYTES)))
        if codes != (0, 0, 0):
            raise Missing(f"there are no 2 GiB beside JAX: {codes}")
        return block.value

    def allocate(self, size):
        if self.beside is None:
            self.beside = self.take_beside()
        return self.jax.numpy.zeros(size, dtype=self.jax.numpy.uint8).block_until_ready()


class Numba:
    def __init__(self):
        import numba
        try:
            from numba import cuda
        except AttributeError as why:
            raise Missing(f"this numba does not go with this NumPy: {why}") from why
        if not cuda.is_available():
            raise Missing("numba sees no GPU")
        self.cuda = cuda
        self.version = numba.__version__

        @cuda.jit
        def multiply(a, b, c):
            row, column = cuda.grid(2)
            if row < c.shape[0] and column < c.shape[1]:
                total = a[column, row]
                for k in range(a.shape[1]):
                    total += a[row, k] * b[k, column]
                c[row, column] = total

        self.multiply = multiply

    def compute(self, i):
        import numpy
        n = 512 + 32 * (i % 5)
        a = (numpy.arange(n * n) % 7).reshape(n, n).astype(numpy.float32)
        b = ((numpy.arange(n * n) + i) % 5).reshape(n, n).astype(numpy.float32)
        c = self.cuda.device_array((n, n), numpy.float32)
        blocks = (n + 15) // 16
        try:
            self.multiply[(blocks, blocks), (16, 16)](self.cuda.to_device(a), self.cuda.to_device(b), c)
        except AttributeError as why:  # raised when numba compiles the first kernel
            raise Missing(f"this numba does not go with this NumPy: {why}") from why
        return numpy.sort(c.copy_to_host(), axis=1)

    def allocate(self, size):
        import numpy
        return self.cuda.device_array(size, numpy.uint8)


FRAMEWORKS = {"cupy": Cupy, "cupy-without-pool": lambda: Cupy(with_pool=False), "jax": Jax, "numba": Numba}


def work(framework):
    import numpy
    wrong = 0
    seconds = 0.0
    for i in range(STEPS):
        started = time.perf_counter()
        found = framework.compute(i)
        if i >= WARM_UP:
            seconds += time.perf_counter() - started
        wrong += not numpy.array_equal(found, compute(numpy, i))
    return {"wrong": wrong, "ms_per_step": round(seconds * 1000 / (STEPS - WARM_UP), 3)}


def run_out(framework):
    kept = []
    try:
        while len(kept) * OOM_STEP_BYTES < OOM_MOST_BYTES:
            kept.append(framework.allocate(OOM_STEP_BYTES))
    except Exception as error:  # the type differs between frameworks
        return {"exception": type(error).__name__, "text": str(error)[:200], "blocks": len(kept)}
    return {"exception": None, "blocks": len(kept)}


def main():
    try:
        import numpy
        framework = FRAMEWORKS[sys.argv[1]]()
    except (ImportError, Missing) as why:
        give({"skip": str(why)})
    try:
        answer = run_out(framework) if sys.argv[2:] == ["oom"] else work(framework)
    except Missing as why:
        give({"skip": str(why)})
    give({"version": framework.version, "numpy": numpy.__version__, **answer})


if __name__ == "__main__":
    main()
