# SPDX-License-Identifier: Apache-2.0
"""gpucache's statistics of this process's GPU memory, under the names that torch.cuda uses.

    import gpucache

    gpucache.memory_allocated()             # bytes the program holds; device=None: the current one
    print(gpucache.memory_summary())
    with gpucache.tag("forward"):           # a label in the recording
        ...
    gpucache.report()                       # the text of `gpumem-report` for this process

The library must be in the process: `python -m gpucache run train.py`, gpucache-run, or LD_PRELOAD=$(python -m gpucache path).
is_active() says whether it is; if not, or if CUDA is not initialised, the other functions raise GpucacheError.

Sizes are in bytes.  Any thread may call any function.  A device is CUDA's ordinal, or an object with an `index` (torch.device).
"""
import contextlib
import ctypes
import functools
import linecache
import os
import re
import subprocess
import sys

__all__ = [
    "GpucacheError", "empty_cache", "is_active", "library_path", "max_memory_allocated", "max_memory_reserved", "memory_allocated",
    "memory_reserved", "memory_stats", "memory_summary", "on_out_of_memory", "report", "reset_peak_memory_stats", "set_limit",
    "snapshot", "stream_stats", "tag", "tag_stats", "tool",
]

_HERE = os.path.dirname(os.path.abspath(__file__))

# struct gpucache_stats of gpucache.h, behind `size`.
_FIELDS = [
    "requested_bytes", "live_bytes", "pending_bytes", "cached_bytes", "reserved_bytes", "direct_bytes", "limit_bytes",
    "peak_requested_bytes", "peak_live_bytes", "peak_reserved_bytes", "n_malloc", "n_free", "n_hit", "n_driver_malloc",
    "n_driver_free", "n_oom", "n_rescued",
]


class _Stats(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t)] + [(name, ctypes.c_uint64) for name in _FIELDS]


class _Part(ctypes.Structure):
    """struct gpucache_part_stats."""
    _fields_ = [("size", ctypes.c_size_t), ("live_bytes", ctypes.c_uint64), ("n_blocks", ctypes.c_uint64)]


_Handler = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


class GpucacheError(RuntimeError):
    """`code` is a CUresult; None: the library is not in the process."""

    def __init__(self, text, code=None):
        super().__init__(text)
        self.code = code


@functools.lru_cache(maxsize=None)
def _library():
    library = ctypes.CDLL(None)
    try:
        library.gpucache_error_text.restype = ctypes.c_char_p
    except AttributeError:
        raise GpucacheError("gpucache is not in this process: start it by `python -m gpucache run`, gpucache-run or LD_PRELOAD") from None
    library.gpucache_trim.argtypes = [ctypes.c_size_t, ctypes.POINTER(ctypes.c_size_t)]
    library.gpucache_set_limit.argtypes = [ctypes.c_int, ctypes.c_uint64]
    library.gpucache_snapshot.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    library.gpucache_set_oom_handler.argtypes = [_Handler, ctypes.c_void_p]
    library.gpucache_set_oom_handler.restype = None
    library.gpucache_tag_stats.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(_Part)]
    library.gpucache_stream_stats.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(_Part)]
    return library


def _check(error):
    if error:
        raise GpucacheError(_library().gpucache_error_text(error).decode(), error)


def _number(device):
    if device is None:
        return -1
    index = getattr(device, "index", device)
    return -1 if index is None or callable(index) else int(index)


def is_active():
    """Whether the library is in this process."""
    try:
        _library()
    except GpucacheError:
        return False
    return True


def memory_stats(device=None):
    """All fields of struct gpucache_stats (gpucache.h), by name."""
    stats = _Stats(size=ctypes.sizeof(_Stats))
    _check(_library().gpucache_stats(_number(device), ctypes.byref(stats)))
    return {name: getattr(stats, name) for name in _FIELDS}


def memory_allocated(device=None):
    """Live bytes of the cache.  Memory directly from the driver, contexts included, is memory_stats()["direct_bytes"]."""
    return memory_stats(device)["live_bytes"]


def memory_reserved(device=None):
    """Bytes that the cache holds from the driver."""
    return memory_stats(device)["reserved_bytes"]


def max_memory_allocated(device=None):
    """The peak of memory_allocated since the start or reset_peak_memory_stats."""
    return memory_stats(device)["peak_live_bytes"]


def max_memory_reserved(device=None):
    """The peak of memory_reserved since the start or reset_peak_memory_stats."""
    return memory_stats(device)["peak_reserved_bytes"]


def reset_peak_memory_stats(device=None):
    """Resets the peaks to the current values.  The recording keeps its own peaks."""
    _check(_library().gpucache_reset_peaks(_number(device)))


def _part(function, device, what):
    part = _Part(size=ctypes.sizeof(_Part))
    _check(function(_number(device), what, ctypes.byref(part)))
    return {"live_bytes": part.live_bytes, "n_blocks": part.n_blocks}


def tag_stats(name, device=None):
    """Live memory allocated in the range `name` or in ranges within it: {live_bytes, n_blocks}."""
    return _part(_library().gpucache_tag_stats, device, name.encode())


def stream_stats(stream, device=None):
    """Live memory allocated for `stream`, a torch stream or a handle: {live_bytes, n_blocks}."""
    return _part(_library().gpucache_stream_stats, device, getattr(stream, "cuda_stream", stream) or None)


def _words(count):
    size, unit = float(count), "B"
    for bigger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, bigger
    return f"{count} B" if unit == "B" else f"{size:.2f} {unit}"


def memory_summary(device=None):
    """A table of the statistics, as text."""
    stats = memory_stats(device)
    rows = [(name, stats[f"{name}_bytes"], stats.get(f"peak_{name}_bytes"))
            for name in ("requested", "live", "pending", "cached", "reserved", "direct")]
    lines = [f"{'':<10} {'now':>12} {'peak':>12}"]
    lines += [f"{name:<10} {_words(now):>12} {'' if peak is None else _words(peak):>12}" for name, now, peak in rows]
    hits = f"{100 * stats['n_hit'] / stats['n_malloc']:.1f} %" if stats["n_malloc"] else "none"
    lines.append(f"{stats['n_malloc']} allocations, {stats['n_free']} frees, from the cache {hits}, failed {stats['n_oom']}")
    return "\n".join(lines)


def empty_cache():
    """Returns the current device's idle segments to the driver; returns their bytes."""
    went = ctypes.c_size_t()
    _check(_library().gpucache_trim(ctypes.c_size_t(-1).value, ctypes.byref(went)))
    return went.value


def set_limit(limit, device=None):
    """Limits what this process may take of the device from now on; 0: no limit."""
    _check(_library().gpucache_set_limit(_number(device), limit))


@contextlib.contextmanager
def tag(name):
    """Labels this thread's allocations with `name` in the recording.  Without the library it does nothing."""
    if not is_active():
        yield
        return
    _check(_library().gpucache_tag_push(name.encode()))
    try:
        yield
    finally:
        _check(_library().gpucache_tag_pop())


_handler = None  # kept alive for as long as the library may call it


def on_out_of_memory(handler):
    """
    Sets handler(wanted_bytes, device), called before a request fails: it frees memory that the program can spare, and
    returns True if it freed any.  An exception is printed, and counts as False.  None removes the handler.
    """
    global _handler

    def call(_, wanted, device):
        try:
            return int(bool(handler(wanted, device)))
        except Exception:  # it must not pass through the library
            sys.excepthook(*sys.exc_info())
            return 0

    new = _Handler(call) if handler else _Handler()
    _library().gpucache_set_oom_handler(new, None)
    _handler = new


def snapshot():
    """Updates the recording and returns its path; "" if there is none."""
    path = ctypes.create_string_buffer(4096)
    _check(_library().gpucache_snapshot(path, len(path)))
    return os.fsdecode(path.value)


def tool(name):
    """The path of gpucache-run, gpumem-report or gpumem-replay in this package, else its name, to be found on PATH."""
    path = os.path.join(_HERE, "bin", name)
    return path if os.path.exists(path) else name


def library_path():
    """The path for LD_PRELOAD; None if this package does not contain the library."""
    path = os.path.join(_HERE, "lib", "libgpucache.so")
    return path if os.path.exists(path) else None


def environment():
    """The tools' environment: without gpucache in it."""
    return {key: value for key, value in os.environ.items() if key not in ("LD_PRELOAD", "LD_AUDIT")}


def report(*arguments):
    """What `gpumem-report ARGUMENTS` says of this process's recording, at this moment."""
    command = [tool("gpumem-report"), *arguments, snapshot()]
    return subprocess.run(command, env=environment(), check=True, capture_output=True, text=True).stdout


def load_ipython_extension(shell):
    """
    `%load_ext gpucache` in a notebook: below the traceback of a cell that runs out of memory stands why, with cells by their numbers
    where the recording has the names of temporary files.  Without the library it does nothing.
    """
    def show(result):
        if not re.search("out.of.memory", str(result.error_in_exec), re.IGNORECASE):
            return
        text = report("oom").partition("\nREQUEST")[0]
        for name in list(linecache.cache):
            label = shell.compile.format_code_name(name)
            text = text.replace(os.path.basename(name), label[1]) if label else text
        print(text.rstrip())

    if is_active():
        shell.events.register("post_run_cell", show)
