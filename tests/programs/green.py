# SPDX-License-Identifier: Apache-2.0
"""Copies on streams of green contexts, and frees the memory meanwhile.

Prints the byte that arrived: the memory's when the copy was submitted, or that of its next owner.
"""
import ctypes

SIZE = 64 << 20
PART = 1 << 20  # written by the next owner: faster than the copy
NON_BLOCKING = 1
MULTIPROCESSOR_COUNT = 16
SM_COUNT_AT = 96  # in CUdevResource
DRIVER = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments):
    status = getattr(DRIVER, name)(*arguments)
    if status:
        raise SystemExit(f"{name}: {status}")


def made(name, *arguments):
    handle = ctypes.c_void_p()
    call(name, ctypes.byref(handle), *arguments)
    return handle


def green_context():
    """A part of device 0: the green context, and the handle to make it current by."""
    whole = (ctypes.c_char * 144)()
    call("cuDeviceGetDevResource", 0, whole, 1)
    n_multiprocessors = ctypes.c_uint()
    call("cuDeviceGetAttribute", ctypes.byref(n_multiprocessors), MULTIPROCESSOR_COUNT, 0)
    if ctypes.c_uint.from_buffer(whole, SM_COUNT_AT).value != n_multiprocessors.value:
        raise SystemExit("the resource is not the whole device")
    part, n = (ctypes.c_char * 144)(), ctypes.c_uint(1)
    call("cuDevSmResourceSplitByCount", part, ctypes.byref(n), whole, None, 0, 16)
    green = made("cuGreenCtxCreate", made("cuDevResourceGenerateDesc", part, 1), 0, 1)
    return green, made("cuCtxFromGreenCtx", green)


def filled_block(value, size):
    block = ctypes.c_uint64()
    call("cuMemAlloc_v2", ctypes.byref(block), ctypes.c_size_t(SIZE))
    call("cuMemsetD8_v2", block, ctypes.c_ubyte(value), ctypes.c_size_t(size))
    return block


def what_arrives(host, stream, between):
    """A copy that takes long, and a next owner of its source."""
    source = filled_block(1, SIZE)
    call("cuCtxSynchronize")
    call("cuMemcpyDtoHAsync_v2", host, source, ctypes.c_size_t(SIZE), stream)
    call("cuMemFree_v2", source)
    between()
    owner = filled_block(2, PART)
    call("cuStreamSynchronize", stream)
    call("cuMemFree_v2", owner)
    return ctypes.cast(host, ctypes.POINTER(ctypes.c_ubyte))[0]


def main():
    call("cuInit", 0)
    primary = made("cuDevicePrimaryCtxRetain", 0)
    call("cuCtxSetCurrent", primary)
    host = made("cuMemHostAlloc", ctypes.c_size_t(SIZE), 0)
    own = made("cuStreamCreate", NON_BLOCKING)
    (a, handle_a), (b, handle_b) = green_context(), green_context()
    stream_a = made("cuGreenCtxStreamCreate", a, NON_BLOCKING, 0)

    print("freed in the primary context:", what_arrives(host, stream_a, lambda: None))
    call("cuCtxSetCurrent", handle_b)
    print("freed in another green context:", what_arrives(host, stream_a, lambda: None))
    # To wait for one green context is not to wait for what another, or the primary one, still does.
    print("after a wait for that one:", what_arrives(host, stream_a, lambda: call("cuCtxSynchronize")))
    print("with the primary one's stream:", what_arrives(host, own, lambda: call("cuCtxSynchronize")))
    # The green contexts end; the memory is their primary context's, and stays.
    kept = filled_block(7, SIZE)
    call("cuStreamDestroy_v2", stream_a)
    for green, handle in ((a, handle_a), (b, handle_b)):
        call("cuCtxSetCurrent", handle)
        call("cuGreenCtxDestroy", green)
    call("cuCtxSetCurrent", primary)
    call("cuMemcpyDtoH_v2", host, kept, ctypes.c_size_t(1))
    print("kept:", ctypes.cast(host, ctypes.POINTER(ctypes.c_ubyte))[0])
    call("cuMemFree_v2", kept)


main()
