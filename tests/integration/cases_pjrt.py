# SPDX-License-Identifier: Apache-2.0
"""XLA's table of functions is replaced where its version is known, and only for CUDA."""
import sys

from harness import expect, expect_equal

LOOK = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.GetPjrtApi.restype = library.own_table.restype = ctypes.c_void_p
print(library.GetPjrtApi() == library.own_table(), library.GetPjrtApi() == library.GetPjrtApi())
"""


def look(world, plugin, **extra):
    return world.run([sys.executable, "-c", LOOK, world.program(f"pjrt_tables.d/{plugin}_plugin.so")], **extra)


def case_a_known_table_of_xla_is_copied_once(world):
    result = look(world, "known/xla_cuda")
    expect_equal("its own, and always the same; stderr", (result.out, result.err), ("False True\n", ""))


def case_an_unknown_table_of_xla_is_handed_out_with_one_line(world):
    for plugin, version in (("other/xla_cuda", "1.112"), ("small/xla_cuda", "0.112")):
        result = look(world, plugin)
        expect_equal(f"{plugin}: its own, and always the same", result.out, "True True\n")
        expect(f"has version {version} of its API" in result.err and result.err.count("\n") == 1, result.err)


def case_a_table_is_left_alone_without_cuda_and_switched_off(world):
    for plugin, extra in (("known/xla_cpu", {}), ("known/xla_cuda", {"GPUCACHE": "0"})):
        result = look(world, plugin, **extra)
        expect_equal(f"{plugin} {extra}", (result.out, result.err), ("True True\n", ""))
