# SPDX-License-Identifier: Apache-2.0
"""Leaks GPU memory from every kind of Python frame, and prints the stack of each leak.

A line of JSON per leak: {"bytes": n, "frames": [[file, line, function], ...], "sure": true}, with the interpreter's own
view of the stack, innermost first, without the function that calls CUDA.  Not sure: the interpreter may be shutting
down, or is a second one, so the library need not know the frames.

    stacks.py [FOREIGN_LIBRARY]      libforeign.so, for threads that no interpreter knows of
    stacks.py --shutdown [FOREIGN]   only what happens while the interpreter ends
    stacks.py --inside               only the second interpreter
"""
import atexit
import ctypes
import functools
import gc
import itertools
import json
import os
import sys
import threading

from train import load_runtime

LIB = load_runtime()
MAX_FRAMES = 64
STATE = {"sizes": itertools.count(100_001), "sure": True}


def frames_of(frame, base=os.path.basename):
    frames = []
    while frame and len(frames) < MAX_FRAMES - 1:
        code = frame.f_code
        name = getattr(code, "co_qualname", code.co_name)
        frames.append([base(code.co_filename), frame.f_lineno, name])
        frame = frame.f_back
    return frames


def leak(state=STATE, write=os.write, getframe=sys._getframe, frames_of=frames_of, dumps=json.dumps,
         lib=LIB, pointer=ctypes.c_void_p, byref=ctypes.byref):
    """Asks for a size of its own.  All that it needs is its own: at the end there is nothing else."""
    n_bytes = next(state["sizes"])
    frames = frames_of(getframe().f_back)
    if lib.cudaMalloc(byref(pointer()), n_bytes):
        raise MemoryError(n_bytes)
    write(1, (dumps({"bytes": n_bytes, "frames": frames, "sure": state["sure"]}) + "\n").encode())
    return n_bytes


# --- Frames of every kind. ------------------------------------------------------------------------

class Layer:
    """Made often enough for the interpreter to inline its constructor."""

    def __init__(self):
        self.weight = leak()


class Attention(Layer):
    def __init__(self):
        super().__init__()
        self.key = (
            leak() +
            leak())

    @property
    def size(self):
        return leak()

    def __getattr__(self, name):
        return leak()

    def __enter__(self):
        leak()
        return self

    def __exit__(self, *error):
        leak()

    @staticmethod
    def make():
        return leak()

    @classmethod
    def build(cls):
        return leak()

    def __add__(self, other):
        return leak()


def classes():
    for _ in range(40):
        Layer()
        Attention()
    attention = Attention()
    assert attention.size and attention.missing and Attention.make() and Attention.build()
    assert attention + 1
    with attention:
        leak()


def counted(function):
    @functools.wraps(function)
    def wrapper(*arguments, **named):
        leak()
        return function(*arguments, **named)
    return wrapper


@counted
@counted
def decorated():
    return leak()


@functools.lru_cache(maxsize=None)
def cached(_key):
    return leak()


def functions():
    decorated()
    cached(1)
    functools.partial(counted(leak))()
    list(map(lambda _: leak(), range(3)))
    sorted([3, 1, 2], key=lambda x: leak() * x)
    max([1, 2], key=lambda x: (lambda: leak())())
    functools.reduce(lambda a, b: leak(), [1, 2, 3])


def comprehensions():
    outer = [[leak() for _ in range(2)] for _ in range(2)]
    assert {leak(): leak() for _ in range(2)} and {leak() for _ in outer}
    assert sum(leak() for _ in range(3))
    assert [y for x in range(2) if leak() for y in [leak(), x]]


def generate(n):
    leak()
    for _ in range(n):
        yield leak()
    try:
        yield leak()
    finally:
        leak()


def delegate():
    yield from generate(2)
    yield from (leak() for _ in range(2))


def generators():
    list(delegate())
    half = generate(5)
    next(half)
    half.close()
    thrown = generate(5)
    next(thrown)
    try:
        thrown.throw(KeyError("thrown in"))
    except KeyError:
        leak()


class Later:
    def __await__(self):
        leak()
        yield
        leak()


async def inner():
    leak()
    await Later()
    return [leak() async for _ in stream()]


async def stream():
    for _ in range(2):
        leak()
        yield 1


async def outer():
    async with Context():
        return await inner()


class Context:
    async def __aenter__(self):
        leak()

    async def __aexit__(self, *error):
        leak()


def coroutines():
    coroutine = outer()
    try:
        while True:
            coroutine.send(None)
    except StopIteration:
        leak()


def fail(depth):
    if depth:
        fail(depth - 1)
    leak()
    raise ValueError("on purpose")


def exceptions():
    try:
        fail(5)
    except ValueError as error:
        leak()
        try:
            raise RuntimeError from error
        except RuntimeError:
            leak()
        finally:
            leak()
    for _ in range(3):
        try:
            raise KeyError
        except (KeyError, ValueError):
            leak()


def recurse(depth):
    return leak() if depth == 0 else recurse(depth - 1)


def recursion():
    for depth in (0, 1, 30, 61, 62, 63, 64, 200, 800):
        recurse(depth)


def made_up_code():
    """Code without a file, and code objects that die and whose memory the next ones use."""
    exec("leak()\n\n\nleak()", {"leak": leak})
    eval("leak() + (\n leak())", {"leak": leak})
    for i in range(200):
        text = "\n" * (i % 11) + f"def f{i % 7}():\n  x = 1\n  return leak()\nf{i % 7}()\n"
        exec(compile(text, f"made{i}.py", "exec"), {"leak": leak})
        if i % 50 == 0:
            gc.collect()
    for name in ("mödul.py", "日本.py", "\U0001f600.py"):
        exec(compile("def größe():\n\n  leak()\ngröße()", name, "exec"), {"leak": leak})
    exec(compile("x = 1\n" * 3000 + "leak()", "long.py", "exec"), {"leak": leak})


class Dying:
    def __del__(self):
        leak()


def finalizers():
    Dying()
    ring = Dying()
    ring.ring = ring
    del ring
    gc.collect()


def traced():
    def trace(frame, event, argument):
        return trace
    sys.settrace(trace)
    try:
        functions()
    finally:
        sys.settrace(None)


ALL = (classes, functions, comprehensions, generators, coroutines, exceptions, recursion,
       made_up_code, finalizers, traced)


# --- Threads. -------------------------------------------------------------------------------------

def threads():
    """Threads that run different code at once, and change places often."""
    def work(first):
        for i in range(12):
            ALL[:6][(first + i) % 6]()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    workers = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    sys.setswitchinterval(interval)


def foreign_threads(foreign):
    """A thread of C that knows no Python, and one that is called into Python."""
    n_bytes = 50_001
    assert foreign.foreign_alloc(ctypes.c_size_t(n_bytes)) == 0
    print(json.dumps({"bytes": n_bytes, "frames": [], "sure": True}), flush=True)

    callback = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(lambda _: leak() and None)
    libc = ctypes.CDLL(None)
    thread = ctypes.c_ulong()
    assert libc.pthread_create(ctypes.byref(thread), None, callback, None) == 0
    assert libc.pthread_join(thread, None) == 0


# --- The end, and a second interpreter. -----------------------------------------------------------

def shutdown(foreign):
    """Leaks while everything is taken down, with threads that go on."""
    STATE["sure"] = False

    class Last:
        def __del__(self, leak=leak):
            leak()

    def forever():
        while True:
            LIB.cudaFree(None)
            pointer = ctypes.c_void_p()
            LIB.cudaMalloc(ctypes.byref(pointer), 777)
            LIB.cudaFree(pointer)

    atexit.register(leak)
    atexit.register(lambda: [leak() for _ in range(2)])
    sys.last_of_all = Last()
    Last.ring = Last()
    STATE["last"] = Last()
    for _ in range(2):
        threading.Thread(target=forever, daemon=True).start()
    if foreign:
        foreign.foreign_churn(ctypes.c_size_t(7777))
    leak()


def second_interpreter():
    """The same in an interpreter within this one, where the version can make one."""
    STATE["sure"] = False
    text = f"""
import sys
sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})
import stacks
stacks.STATE.update(sizes=iter(range(300_001, 400_000)), sure=False)
def inside(): return stacks.leak()
inside()
for part in stacks.ALL[:6]: part()
"""
    try:
        import _interpreters as interpreters
        number = interpreters.create("legacy")
    except ImportError:
        import _xxsubinterpreters as interpreters
        number = interpreters.create(isolated=False)
    leak()
    error = interpreters.run_string(number, text)
    assert not error, error
    functions()
    interpreters.destroy(number)
    leak()


def main():
    options = [word for word in sys.argv[1:] if word.startswith("--")]
    libraries = [word for word in sys.argv[1:] if not word.startswith("--")]
    foreign = ctypes.CDLL(libraries[0]) if libraries else None
    if "--inside" in options:
        second_interpreter()
        return
    if "--shutdown" in options:
        shutdown(foreign)
        return
    for part in ALL:
        part()
    threads()
    if foreign:
        foreign_threads(foreign)


if __name__ == "__main__":
    main()
