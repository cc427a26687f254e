# SPDX-License-Identifier: Apache-2.0
"""The option vmm: when memory has pages, which requests that serves, and where pages cannot be used."""
import os
import subprocess

from exchange import KIB, End
from harness import MIB, expect, expect_equal

SIM = "memory:25088MiB,context:0,clock:virtual"
SHORT = "memory:256MiB,context:0"

ON = {"GPUCACHE_CONF": "vmm:on,oom_report:never"}
AUTO = {"GPUCACHE_CONF": "vmm:auto,oom_report:never"}


def expect_as_plain(world, script, *args, **conf):
    command = world.script(script) + [str(arg) for arg in args]
    plain = world.run(command, with_us=False, sim=SIM)
    ours = world.run(command, sim=SIM, **conf)
    check = subprocess.run([os.path.join(world.build, "gpumem-report"), "check", world.folder], capture_output=True, text=True)
    world.forget_recordings()
    expect_equal(f"{args} with {conf}: the end", (ours.status, ours.err), (0, ""))
    expect_equal(f"{args} with {conf}", ours.out, plain.out)
    expect_equal(f"{args} with {conf}: the recording's check", check.returncode, 0)


def case_with_pages_freed_stripes_serve_large_blocks_as_on_the_plain_driver(world):
    expect_as_plain(world, "stripes.py", 4 * MIB, 64 * MIB, 3000, **ON)


def case_with_pages_what_fits_on_a_full_gpu_fits_as_on_the_plain_driver(world):
    for conf in (ON, AUTO):
        expect_as_plain(world, "room.py", "large", **conf)
        expect_as_plain(world, "room.py", "piece", 100, **conf)
        expect_as_plain(world, "room.py", "vary", 1, **conf)


def case_blocks_on_pages_are_not_exported_and_the_error_is_the_drivers(world):
    exporter = End(world, True, **ON)
    exporter.make("large", 30 * MIB, 5)
    exporter.make("small", 100 * KIB, 6)
    expect_equal("a block on pages", exporter.ask("export", "large"), "error 1")
    expect(exporter.ask("export", "small").startswith("ok"), "a small block is never on pages")
    expect_equal("the rest of its life", exporter.end(), (0, ""))


def expect_exports(world, *args, large, preload=""):
    """A request of another size than the cached blocks needs the whole GPU, and is served from pages, if there are any."""
    library = os.path.join(world.build, "libgpucache.so")
    result = world.run(world.script("export.py") + list(args), sim=SHORT, LD_PRELOAD=f"{library}:{preload}", **AUTO)
    early = "early 0\n" * len(args)
    expect_equal(f"{args} beside {preload}", (result.status, result.err), (0, ""))
    expect_equal(f"{args} beside {preload}", result.out, f"{early}large {large}\nother 0\n")


def case_memory_gets_pages_when_it_is_short_and_none_after_the_first_export(world):
    expect_exports(world, large=1)


def case_after_an_export_or_a_question_for_a_range_there_are_never_any_pages(world):
    expect_exports(world, "export", large=0)
    expect_exports(world, "range", large=0)


def case_a_program_that_can_export_what_it_allocated_when_memory_was_short_can_with_us(world):
    end = End(world, True, sim=SHORT, **AUTO)
    end.do("alloc", "first", 150 * MIB)
    end.do("free", "first")
    end.make("large", 220 * MIB, 5)
    handle = end.do("export", "large")
    importer = End(world, True, sim=SHORT, **AUTO)
    importer.do("open", "it", handle)
    expect_equal("what the importer reads", importer.do("look", "it", 220 * MIB), "5")
    expect_equal("the importer's end", importer.end()[0], 0)
    expect_equal("the exporter's end", end.end()[0], 0)


def build_library(world, name, function):
    path = os.path.join(world.folder, name)
    source = f"int {function}(void *, void *); int use_{function}(void) {{ return {function}(0, 0); }}" if function else ""
    command = [os.environ.get("CC", "gcc").split()[-1], "-shared", "-fPIC", "-Wl,-z,lazy", "-o", path, "-x", "c", "-"]
    subprocess.run(command, input=source, text=True, check=True)
    return path


def case_beside_libraries_that_export_there_are_no_pages(world):
    for name, function, large in (("libmpi.so.40", "", 0), ("libmpi_like.so", "", 0), ("libnvshmem_host.so.3", "", 0),
                                  ("libempty.so", "", 1), ("libother.so", "cudaFree", 1),
                                  ("libexporter.so", "cuIpcGetMemHandle", 0), ("libpinning.so", "gdr_pin_buffer", 0),
                                  ("libtorch_like.so", "cudaIpcGetMemHandle", 1)):
        expect_exports(world, large=large, preload=build_library(world, name, function))


def case_the_range_of_a_block_on_pages_is_its_own(world):
    end = End(world, True, **ON)
    end.make("first", 30 * MIB, 5)
    end.do("free", "first")
    end.make("one", 7 * MIB, 5)
    end.make("two", 9 * MIB, 6)
    expect_equal("the second block", end.do("range", "two", 5 * MIB), f"{5 * MIB} {9 * MIB}")


def case_another_gpu_is_let_at_pages_that_are_there_and_those_that_come(world):
    result = world.run(world.script("pages.py"), sim="devices:2,memory:1GiB,context:0", **ON)
    expect_equal("each use", (result.status, result.out, result.err), (0, "0 0\n0 0\n", ""))


def case_captures_are_as_without_pages(world):
    for mode in ("global", "thread-local", "relaxed"):
        for conf in (ON, AUTO):
            plain = world.run([world.program("capture"), mode], with_us=False)
            ours = world.run([world.program("capture"), mode], **conf)
            expect_equal(f"capture {mode} with {conf}", (ours.status, ours.err), (plain.status, plain.err))
