# SPDX-License-Identifier: Apache-2.0
"""Bugs reported in other shims, each as a few calls: reports.py NAME [LIBRARY].

Prints every result.  With and without gpucache the output must be the same.
"""
import ctypes
import os
import sys
import threading

MIB = 1 << 20
DRIVER = ctypes.CDLL("libcuda.so.1", mode=ctypes.RTLD_GLOBAL)
SENTINEL = 0x1122334455667788


def say(what, number):
    print(f"{what}: {number}", flush=True)


def call(name, *arguments):
    status = getattr(DRIVER, name)(*arguments)
    say(name, status)
    return status


def start():
    call("cuInit", 0)
    context = ctypes.c_void_p()
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    call("cuCtxSetCurrent", context)


def block(size):
    ptr = ctypes.c_uint64(SENTINEL)
    call("cuMemAlloc_v2", ctypes.byref(ptr), ctypes.c_size_t(size))
    return ptr


def null_arguments():
    start()
    n = ctypes.c_size_t(7)
    for free, total in ((None, n), (n, None), (None, None)):
        call("cuMemGetInfo_v2", free and ctypes.byref(free), total and ctypes.byref(total))
    call("cuMemAlloc_v2", None, ctypes.c_size_t(5000))
    call("cuPointerGetAttributes", 0, None, None, ctypes.c_uint64(0))
    call("cuGetProcAddress_v2", None, None, 12000, ctypes.c_uint64(0), None)
    call("cuGetProcAddress_v2", b"", ctypes.byref(ctypes.c_void_p()), 12000, ctypes.c_uint64(0), None)


def memory_info():
    """Free bytes follow the program's own, and never pass the total; the total is the device's."""
    start()
    free, total, physical = ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_size_t()
    call("cuDeviceTotalMem_v2", ctypes.byref(physical), 0)
    call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    before = free.value
    ptr = block(64 * MIB)
    call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    say("the total is the device's", total.value == physical.value)
    say("less by the block", before - free.value >= 64 * MIB)
    say("free is not the total", free.value < total.value)
    call("cuMemFree_v2", ptr)
    call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    say("as before", free.value == before)


def no_context():
    """Allocations before any context is current, and on a device that is not the first."""
    call("cuInit", 0)
    block(5000)
    context = ctypes.c_void_p()
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 1)
    block(5000)
    call("cuCtxSetCurrent", context)
    ptr = block(5000)
    device = ctypes.c_int(-1)
    call("cuPointerGetAttribute", ctypes.byref(device), 9, ptr)  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    say("device", device.value)
    call("cuMemFree_v2", ptr)


def versions():
    """Each version of a name is another function; the newest that is asked for is the right one."""
    start()
    for name in (b"cuMemAlloc", b"cuMemFree", b"cuMemGetInfo", b"cuCtxCreate", b"cuGetProcAddress"):
        seen = {}
        for version in (2000, 3020, 11030, 12000, 12050, 13000, 99000):
            pointer, status = ctypes.c_void_p(), ctypes.c_int(-1)
            answer = DRIVER.cuGetProcAddress_v2(name, ctypes.byref(pointer), version, ctypes.c_uint64(0),
                                                ctypes.byref(status))
            order = seen.setdefault(pointer.value, len(seen))
            say(f"{name.decode()} of {version}", (answer, status.value, order))
    pointer = ctypes.c_void_p()
    call("cuGetProcAddress_v2", b"cuMemAlloc", ctypes.byref(pointer), 12000, ctypes.c_uint64(0), None)
    ptr = ctypes.c_uint64()
    allocate = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)(pointer.value)
    say("by pointer", allocate(ctypes.addressof(ptr), 6 * MIB))
    call("cuMemFree_v2", ptr)


def unknown_pointers():
    """A pointer of nobody, one of stream-ordered memory, one twice: the driver's own answers."""
    start()
    for address in (1, 0x1234500, ctypes.addressof(ctypes.c_int())):
        call("cuMemFree_v2", ctypes.c_uint64(address))
    ptr = ctypes.c_uint64(SENTINEL)
    call("cuMemAllocAsync", ctypes.byref(ptr), ctypes.c_size_t(5000), None)
    call("cuStreamSynchronize", None)
    call("cuMemFree_v2", ptr)
    ptr = block(5000)
    call("cuMemFreeAsync", ptr, None)
    call("cuStreamSynchronize", None)
    call("cuMemFree_v2", ptr)


def attributes():
    """What a pointer is said to be, one that is not there too."""
    start()
    device = block(5000)
    managed, host = ctypes.c_uint64(), ctypes.c_uint64()
    call("cuMemAllocManaged", ctypes.byref(managed), ctypes.c_size_t(5000), 1)
    call("cuMemHostAlloc", ctypes.byref(host), ctypes.c_size_t(5000), 0)
    wanted = (ctypes.c_int * 3)(2, 8, 9)  # memory type, is managed, device ordinal
    for what, ptr in (("device", device), ("managed", managed), ("host", host), ("nobody", ctypes.c_uint64(64))):
        values = [ctypes.c_uint(77), ctypes.c_uint(77), ctypes.c_int(77)]
        data = (ctypes.c_void_p * 3)(*(ctypes.addressof(value) for value in values))
        answer = DRIVER.cuPointerGetAttributes(3, wanted, data, ptr)
        say(what, (answer, [value.value for value in values]))


def failed_outputs():
    """After a failure the output is what the driver leaves there."""
    start()
    for size in (0, 1 << 60, (1 << 64) - 1):
        say("output", block(size).value == SENTINEL)


def names(library):
    theirs = ctypes.CDLL(library)
    for name in ("cudnnCreate", "cublasCreate_v2", "cuinterpose"):
        say(name, getattr(theirs, name)())


def next_definition(library):
    theirs = ctypes.CDLL(library)
    theirs.ompt_start_tool.restype = ctypes.c_void_p
    for _ in range(3):
        say("ompt_start_tool", theirs.ompt_start_tool())
    of_process = ctypes.CDLL(None)
    of_process.dlsym.restype = ctypes.c_void_p
    of_process.dlsym.argtypes = (ctypes.c_void_p, ctypes.c_char_p)
    for _ in range(3):
        say("a function again and again", of_process.dlsym(None, b"strlen") is not None)


def export_table():
    table = ctypes.c_void_p(SENTINEL)
    say("before cuInit", DRIVER.cuGetExportTable(ctypes.byref(table), b"\0" * 16))
    start()
    say("after it", DRIVER.cuGetExportTable(ctypes.byref(table), b"\0" * 16))
    say("table", table.value)


def constructor(library):
    """A library uses CUDA while the loader loads it, and others use it at the same time."""
    runtime = ctypes.CDLL("libcudart.so.13", mode=ctypes.RTLD_GLOBAL)
    is_over = threading.Event()
    bad = []

    def use():
        ptr = ctypes.c_void_p()
        while not is_over.is_set():
            if runtime.cudaMalloc(ctypes.byref(ptr), ctypes.c_size_t(5000)) or runtime.cudaFree(ptr):
                bad.append(1)

    # Its start holds a lock of its own and waits for the loader: with or without us no constructor may wait for that.
    say("cudaFree", runtime.cudaFree(None))
    threads = [threading.Thread(target=use) for _ in range(3)]
    for thread in threads:
        thread.start()
    os.environ["REPORT_CONSTRUCTOR"] = "1"
    ctypes.CDLL(library)
    is_over.set()
    for thread in threads:
        thread.join()
    say("failures", len(bad))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
