# SPDX-License-Identifier: Apache-2.0
"""Memory exchanged by handle between two processes: right data or a clear error, never wrong data."""
import itertools
import os
import subprocess

from exchange import KIB, End, exchange
from harness import MIB, Failed, expect, expect_equal


def registry_file(end):
    """The path and inode of the file in which a process describes its exports."""
    folder = f"/proc/{end.child.pid}/fd"
    for name in os.listdir(folder):
        path = os.readlink(os.path.join(folder, name))
        if os.path.basename(path).startswith("ipc-"):
            return path, os.stat(path).st_ino
    raise Failed("the exporter has no such file")


def expect_ends_and_takes_it_along(end):
    """Returns the stderr of the process."""
    path, inode = registry_file(end)
    _, err = end.end()
    expect(not os.path.exists(path) or os.stat(path).st_ino != inode, f"{path} is left")
    return err


def case_two_processes_exchange_a_block_or_get_a_clear_error(world):
    table = []
    for inside, ours_exports, ours_imports in itertools.product((False, True), repeat=3):
        found = exchange(world, ours_exports, ours_imports, inside)
        wanted = "open error 1" if inside and ours_exports and not ours_imports else "right"
        where = "inside" if inside else "base"
        table.append(f"\n    {where:6} exporter {'with' if ours_exports else 'plain':5} "
                     f"importer {'with' if ours_imports else 'plain':5} {found}")
        expect_equal("".join(table) + "\n    the last of these", found, wanted)
    return "".join(table)


def case_blocks_inside_one_segment_are_exported_each_for_itself(world):
    exporter, importer = End(world, True), End(world, True)
    handles = []
    for n in range(5):
        exporter.make(f"block{n}", 100 * KIB, 20 + n)
    for n in range(5):
        handles.append(exporter.do("export", f"block{n}"))
        expect_equal("the handle, asked for again", exporter.do("export", f"block{n}"), handles[n])
        # As the driver does for an allocation.
        expect_equal("that of the middle", exporter.do("export", f"block{n}", 50 * KIB), handles[n])
    expect_equal("different handles", len(set(handles)), 5)
    for n in (3, 0, 4, 2, 1):
        importer.do("open", f"copy{n}", handles[n])
        expect_equal(f"block {n}", importer.do("look", f"copy{n}", 100 * KIB), str(20 + n))
        expect_equal("its range", importer.do("range", f"copy{n}", 10).split()[0], "10")
    # A handle opened twice gives one pointer, which must be closed twice.
    importer.do("open", "again", handles[3])
    importer.do("close", "copy3")
    expect_equal("after one close", importer.do("look", "again", 100 * KIB), "23")
    for name in ("again", "copy0", "copy1", "copy2", "copy4"):
        importer.do("close", name)
    expect_equal("a close too many", importer.ask("close", "again"), "error 1")
    importer.do("open", "copy1", handles[1])
    expect_equal("opened again", importer.do("look", "copy1", 100 * KIB), "21")
    # What the importer writes, the exporter reads.
    importer.do("fill", "copy1", 9, 100 * KIB)
    expect_equal("the exporter's block", exporter.do("look", "block1", 100 * KIB), "9")
    status, err = importer.end()
    expect_equal("the importer's end", (status, err), (0, ""))
    expect_equal("lines of the exporter", expect_ends_and_takes_it_along(exporter).count("\n"), 1)


def case_an_exporter_that_closes_all_descriptors_keeps_its_files_and_its_exports(world):
    exporter, importer = End(world, True), End(world, True)
    for n in range(3):
        exporter.make(f"block{n}", 100 * KIB, 20 + n)
    early = exporter.do("export", "block1")
    path, inode = registry_file(exporter)
    importer.do("open", "early", early)
    exporter.do("daemon", 40)
    exporter.do("export", "block2")
    expect_equal("what it says to importers, found again", registry_file(exporter), (path, inode))
    # The simulated driver keeps memory behind a descriptor, so what is open already is all that can be read.
    expect_equal("what was exported before", importer.do("look", "early", 100 * KIB), "21")
    exporter.do("free", "block1")
    expect_equal("an export that was freed", importer.ask("open", "gone", early), "error 1")
    exporter.end()
    expect(not os.path.exists(path), f"{path} is left")
    for name in os.listdir(world.folder):
        if name.startswith("own-"):
            expect_equal(f"the size of {name}", os.path.getsize(os.path.join(world.folder, name)), 0)


def case_large_blocks_after_the_first_export_have_handles_that_everybody_can_open(world):
    exporter, importer = End(world, True), End(world, False)
    exporter.make("early", 2 * MIB, 1)
    exporter.make("inside", 2 * MIB, 2)
    exporter.do("export", "early")
    for n, size in enumerate((1 * MIB, 3 * MIB, 2 * MIB + 512, 12 * MIB)):
        exporter.make(f"block{n}", size, 30 + n)
        importer.do("open", f"block{n}", exporter.do("export", f"block{n}"))
        expect_equal(f"block {n}", importer.do("look", f"block{n}", size), str(30 + n))
    expect_equal("the block before", importer.ask("open", "x", exporter.do("export", "inside")), "error 1")


def case_a_program_that_works_with_ranges_gets_bases(world):
    """What UCX and NCCL do: the base by cuMemGetAddressRange, and the offset told to the importer."""
    exporter, importer = End(world, True), End(world, False)
    for n in range(3):
        exporter.make(f"block{n}", 512 * KIB, 40 + n)
    offset, size = map(int, exporter.do("range", "block2").split())
    expect_equal("the truth", (offset, size), (MIB, 2 * MIB))
    # Its importer adds the offset: a handle that adds it as well would lead beyond the block.
    handle = exporter.do("export", "block2")
    expect_equal("that of the base", exporter.do("export", "block2", -offset), handle)
    importer.do("open", "segment", handle)
    expect_equal("the base", importer.do("look", "segment", 512 * KIB), "40")
    # In the other order, the range must fit the handle exported first.
    handle = exporter.do("export", "block1")
    expect_equal("the range of an exported block", exporter.do("range", "block1", 100), f"100 {512 * KIB}")
    ours = End(world, True)
    ours.do("open", "block1", handle)
    expect_equal("the importer's range", ours.do("range", "block1", 100), f"100 {512 * KIB}")
    expect_equal("the block", ours.do("look", "block1", 512 * KIB), "41")


def case_exported_memory_goes_back_behind_its_fence(world):
    exporter, importer = End(world, True), End(world, True)
    exporter.make("keep", 256 * KIB, 1)
    exporter.make("block", 256 * KIB, 50)
    handle = exporter.do("export", "block")
    exporter.do("kernel", "block", 200)
    exporter.do("free", "keep")
    exporter.do("free", "block")
    expect_equal("used while the kernel runs", exporter.do("used"), str(2 * MIB))
    exporter.do("alloc", "other", 4 * KIB)
    expect_equal("the segment is not used again", exporter.do("used"), str(4 * MIB))
    expect_equal("the handle of what was freed", importer.ask("open", "late", handle), "error 1")
    exporter.do("wait")
    expect_equal("used when it has ended", exporter.do("used"), str(2 * MIB))


def case_an_exporter_that_dies_takes_nothing_from_the_importer(world):
    exporter, importer = End(world, True), End(world, True)
    for n in range(2):
        exporter.make(f"block{n}", 256 * KIB, 60 + n)
    handles = [exporter.do("export", f"block{n}") for n in range(2)]
    importer.do("open", "copy", handles[1])
    exporter.child.kill()
    exporter.child.wait()
    expect_equal("the copy", importer.do("look", "copy", 256 * KIB), "61")
    importer.do("close", "copy")
    for handle in handles:
        expect(importer.ask("open", "late", handle).startswith("error"), "memory of a dead process was opened")
    # The next one takes its place.
    second = End(world, True)
    for n in range(2):
        second.make(f"block{n}", 256 * KIB, 70 + n)
    importer.do("open", "copy", second.do("export", "block1"))
    expect_equal("the new copy", importer.do("look", "copy", 256 * KIB), "71")
    expect(importer.ask("open", "late", handles[1]).startswith("error"), "an old handle leads to new memory")
    expect_ends_and_takes_it_along(second)


def case_a_child_of_an_exporter_takes_nothing_along(world):
    exporter, importer = End(world, True), End(world, True)
    for n in range(3):
        exporter.make(f"block{n}", 256 * KIB, 80 + n)
    handle = exporter.do("export", "block1")
    expect_equal("an export in the child", exporter.ask("child", "export", "block2"), "error 3")
    importer.do("open", "copy", handle)
    expect_equal("the copy", importer.do("look", "copy", 256 * KIB), "81")
    importer.do("open", "copy2", exporter.do("export", "block2"))
    expect_equal("the other copy", importer.do("look", "copy2", 256 * KIB), "82")


def case_opened_memory_is_of_others_in_the_books(world):
    exporter = End(world, False)
    exporter.make("block", 3 * MIB, 1)
    handle = exporter.do("export", "block")
    importer = End(world, True)
    importer.do("alloc", "own", 4 * KIB)
    before = importer.do("used")
    importer.do("open", "copy", handle)
    expect_equal("used by the importer", importer.do("used"), before)
    expect_equal("by a process that opens its own", exporter.ask("open", "own", handle), "error 201")
    importer.end()
    held = world.held_bytes()
    expect_equal("held by the importer", held, 4 * KIB)


def case_without_a_place_to_say_where_the_export_is_refused(world):
    """With files limited to one byte our writes fail, and must raise no signal."""
    exporter = End(world, True, GPUCACHE_CONF="record:off")
    exporter.make("block0", 256 * KIB, 1)
    exporter.make("block1", 256 * KIB, 2)
    exporter.do("export", "block0")  # the simulated GPU has no file to make after this
    subprocess.run(["prlimit", "--pid", str(exporter.child.pid), "--fsize=1"], check=True)
    expect_equal("the export", exporter.ask("export", "block1"), "error 801")
    expect_equal("it runs on", exporter.do("look", "block1", 256 * KIB), "2")
