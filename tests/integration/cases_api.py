# SPDX-License-Identifier: Apache-2.0
"""Programs that know gpucache.h: linked with either form of the library, preloaded, switched off."""
import os
import re
import shutil
import subprocess

from harness import TOP, Skip, expect, expect_equal

FORMS = ("api", "api_static", *(("api_cxx",) if shutil.which("g++") else ()))
HEADER = os.path.join(TOP, "include", "gpucache.h")

# Every memset takes long enough that the stream is still busy at the program's next request.
SLOW = "memory:4GiB,copy_us:300000"

PROMISES = (
    "its own stream gets busy memory at once",
    "another stream does not get it",
    "nobody gets what two streams use",
    "done",
)


def linked(world, **extra):
    """The environment of a program that links our library, so nothing is preloaded."""
    return {"with_us": False, "LD_LIBRARY_PATH": f"{world.library_path}:{world.build}",
            "GPUCACHE_OUTPUT": world.pattern, **extra}


def expect_promises(result, form):
    expect_equal(f"{form}: the exit status", (result.status, result.err[-300:] if result.status else ""), (0, ""))
    lines = result.out.splitlines()
    missing = [promise for promise in PROMISES if promise not in lines]
    expect(not missing, f"{form} did not see: {missing}; it said {result.out!r}")


def case_a_program_linked_with_us_gets_what_the_header_promises(world):
    quiet = "oom_report:never"
    for form in FORMS:
        expect_promises(world.run([world.program(form)], sim=SLOW, **linked(world, GPUCACHE_CONF=quiet)), form)
    # Without its own word on it, the recording was made.
    expect_equal("the number of recordings", len(world.recordings()), len(FORMS))


def case_a_program_that_knows_us_and_has_us_preloaded_gets_it_too(world):
    result = world.run([world.program("api")], sim=SLOW, GPUCACHE_CONF="oom_report:never")
    expect_promises(result, "api")
    path = re.search(r"^gpumem-report summary (.*)$", result.out, re.M)
    expect(path and path[1] == world.recording(), "the program was told another recording")


def case_before_CUDA_the_C_functions_say_so(world):
    for form in FORMS:
        result = world.run([world.program(form), "early"], **linked(world))
        expect_equal(f"{form}: the run", (result.status, result.out, result.err), (0, "", ""))
    expect_equal("the recordings", world.recordings(), [])


def case_switched_off_the_C_functions_give_memory_of_the_driver(world):
    for form in FORMS:
        result = world.run([world.program(form), "off"], **linked(world, GPUCACHE="0"))
        expect_equal(f"{form}: the run", (result.status, result.out, result.err), (0, "", ""))
    expect_equal("the recordings", world.recordings(), [])


def examples_of(header):
    """The lines of each example: behind a line "Example" of a comment, deeper than its text."""
    found = []
    for text in re.findall(r"^ \* Example\n((?: \*     .*\n)+)", header, re.M):
        found.append([" ".join(line[2:].split()) for line in text.splitlines()])
    return found


def case_every_example_of_the_C_header_is_in_the_program_that_is_run(world):
    with open(HEADER, encoding="utf-8") as file:
        header = file.read()
    with open(os.path.join(TOP, "tests", "programs", "api.c"), encoding="utf-8") as file:
        program = " ".join(file.read().split())
    examples = examples_of(header)
    expect_equal("the number of examples", len(examples), header.count(" * Example\n"))
    expect(len(examples) >= 10, f"only {len(examples)} examples")
    for example in examples:
        expect(" ".join(example) in program, f"tests/programs/api.c has not: {example}")
    functions = re.findall(r"^GPUCACHE_API.*?(gpucache_\w+)\(", header, re.M)
    unused = [name for name in functions if name + "(" not in program]
    expect(len(functions) >= 15 and not unused, f"tests/programs/api.c does not call {unused}")


def case_the_C_header_compiles_alone_as_C99_and_as_CXX(world):
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Wstrict-prototypes", "-Werror", "-fsyntax-only"]
    for compiler, flags in (("gcc", ["-x", "c", "-std=c99", *strict]),
                            ("gcc", ["-x", "c", "-std=c17", *strict]),
                            ("g++", ["-x", "c++", "-std=c++11", *[f for f in strict if "proto" not in f]]),
                            ("g++", ["-x", "c++", "-std=c++20", *[f for f in strict if "proto" not in f]])):
        if not shutil.which(compiler):
            raise Skip(f"no {compiler} here")
        done = subprocess.run([compiler, *flags, "-include", HEADER, "/dev/null"],
                              capture_output=True, text=True, check=False)
        expect_equal(f"{compiler} {flags[2]}", (done.returncode, done.stderr), (0, ""))


def case_the_sums_of_pytorch_s_own_allocator_are_in_the_books_to_the_byte(world):
    if not os.path.exists(world.program("torch")):
        raise Skip("no C++ compiler here")
    ours = world.run([world.program("torch"), "tensors", "50"], sim="memory:1GiB", GPUCACHE_CONF="oom_report:never")
    sums, reports = ours.out.splitlines()
    names = ("allocated_bytes", "reserved_bytes", "allocations", "frees", "failed")
    theirs = dict(zip(names, map(int, sums.split())))
    device = world.report_json("summary")["devices"][0]
    expect_equal("PyTorch's sums", {name: device["torch"][name] for name in names}, theirs)
    expect_equal("reports that came through to libc10", int(reports),
                 theirs["allocations"] + theirs["frees"] + theirs["failed"])
    unused = theirs["reserved_bytes"] - theirs["allocated_bytes"]
    held = {row["where"]: row for row in device["holders"]}
    expect_equal("the cache in no tensor", held.pop("PyTorch's cache, in no tensor")["live_bytes"], unused)
    tensors = [row for where, row in held.items() if where.startswith("make_tensors")]
    expect_equal("tensors by line", (sum(row["live_bytes"] for row in tensors), sum(row["blocks"] for row in tensors)),
                 (theirs["allocated_bytes"], theirs["allocations"] - theirs["frees"]))
    expect_equal("asked of the driver", device["now"]["requested_bytes"], theirs["reserved_bytes"])
    text = world.report("summary", world.recording()).out
    expect("PyTorch's cache, in no tensor" in text and "CATEGORY" in text, text)


def case_the_pages_of_an_expandable_segment_are_one_request(world):
    """PyTorch makes them one by one, gives them back when one fails, and then says how much it wanted."""
    if not os.path.exists(world.program("torch")):
        raise Skip("no C++ compiler here")
    ours = world.run([world.program("torch"), "pages", str(960 << 20)], sim="memory:1GiB,context:100MiB")
    expect("SHORT  by 56.00 MiB: 960.00 MiB asked for" in ours.err, ours.err)
    expect("GPU 0: 960.00 MiB asked for" in ours.err, ours.err)
    oom = world.report_json("oom", world.recording())
    expect_equal("the balance without its pages", [oom["balance"][row] for row in ("direct_bytes", "free_bytes")],
                 [100 << 20, 904 << 20])


def case_pytorch_is_told_out_of_memory_by_its_own_exception(world):
    sim = "memory:1GiB"
    if not os.path.exists(world.program("torch")):
        raise Skip("no C++ compiler here")
    ours = world.run([world.program("torch"), "1024"], sim=sim)
    expect_equal("memory that is there", (ours.status, ours.out), (0, "memory\n"))
    ours = world.run([world.program("torch"), str(2 << 30)], sim=sim, GPUCACHE_CONF="oom_report:never")
    expect(re.fullmatch(r"OutOfMemoryError gpucache_torch_malloc: CUDA out of memory. Tried to allocate 2.00 GiB. "
                        r"GPU 0 has a total capacity of 1.00 GiB of which \S+ MiB is free. .*\ndestroyed\n", ours.out),
           ours.out)
    # Switched off, too; and another error of the driver is another exception.
    ours = world.run([world.program("torch"), str(2 << 30)], sim=sim, GPUCACHE="0")
    expect("OutOfMemoryError" in ours.out, ours.out)
    ours = world.run([world.program("torch"), "1024"], sim="memory:1GiB,fail:cuMemAlloc_v2/1/700")
    expect("Error gpucache_torch_malloc: CUDA error: CUDA_ERROR_ILLEGAL_ADDRESS (700)" in ours.out, ours.out)
    # A caller other than PyTorch gets NULL.
    ours = world.run([world.program("torch"), str(2 << 30), "own"], sim=sim, GPUCACHE_CONF="oom_report:never")
    expect_equal("any other caller", ours.out, "NULL\n")
