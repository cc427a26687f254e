# SPDX-License-Identifier: Apache-2.0
"""gpucache-run behaves like LD_PRELOAD and the environment that it stands for."""
import os
import shutil
import sys

from harness import Skip, expect, expect_equal


def installed(world):
    """A launcher for the build under test: it finds only build/ and installations, so another build is laid out as
    one."""
    prefix = os.path.join(world.folder, "installed")
    if not os.path.isdir(prefix):
        os.makedirs(os.path.join(prefix, "bin"))
        os.makedirs(os.path.join(prefix, "lib", "gpucache"))
        shutil.copy2(os.path.join(world.build, "gpucache-run"), os.path.join(prefix, "bin"))
        os.symlink(os.path.join(world.build, "libgpucache.so"), os.path.join(prefix, "lib", "libgpucache.so"))
        for name in ("gpucache-wait", "gpucache-self-test", "gpucache-probe", "gpucache-trials"):
            os.symlink(os.path.join(world.build, name), os.path.join(prefix, "lib", "gpucache", name))
        os.symlink(os.path.join(world.build, "simcuda"), os.path.join(prefix, "lib", "gpucache", "simcuda"))
        os.symlink(os.path.join(world.build, "gpumem-report"), os.path.join(prefix, "bin", "gpumem-report"))
    return os.path.join(prefix, "bin", "gpucache-run")


def launch(world, *arguments, **extra):
    command = [installed(world), *arguments]
    extra.setdefault("LD_LIBRARY_PATH", None)
    extra.setdefault("GPUSIM", None)
    return world.run(command, with_us=False, **extra)


def case_the_launcher_does_what_LD_PRELOAD_does(world):
    command = [world.program("train"), "--steps", "20", "--print-live"]
    by_hand = world.run(command)
    launched = launch(world, "--sim", "4GiB", "-o", world.pattern, "--", *command)
    expect_equal("the run", (launched.status, launched.out, launched.err), (0, by_hand.out, ""))
    expect_equal("the number of recordings", len(world.recordings()), 2)
    counts = [world.count_calls(recording) for recording in world.recordings()]
    expect_equal("the calls", counts[0], counts[1])


def case_the_launcher_keeps_the_programs_exit_status(world):
    expect_equal("the exit status", launch(world, "/bin/sh", "-c", "exit 42").status, 42)
    oom = launch(world, "--sim", "1GiB", "-o", world.pattern, world.program("train"), "--oom")
    expect_equal("the exit status", oom.status, 1)
    expect("cudaMalloc of" in oom.err, f"the program ended for another reason: {oom.err!r}")


def case_the_launcher_passes_options_on_and_keeps_those_that_were_set(world):
    result = launch(world, "-c", "limit:1GiB", "--conf=stacks:off", "-o", "out-%p", "--sim", "2GiB",
                    "--sim-options", "devices:3", "/usr/bin/env",
                    GPUCACHE_CONF="python:off", LD_PRELOAD="libm.so.6", LD_LIBRARY_PATH="/somewhere")
    expect_equal("the exit status", result.status, 0)
    env = dict(line.split("=", 1) for line in result.out.splitlines() if "=" in line)
    expect_equal("GPUCACHE_CONF", env.get("GPUCACHE_CONF"), "python:off,limit:1GiB,stacks:off")
    expect_equal("GPUCACHE_OUTPUT", env.get("GPUCACHE_OUTPUT"), os.path.join(world.folder, "out-%p"))
    expect_equal("GPUSIM", env.get("GPUSIM"), "memory:2GiB,devices:3")
    expect(env["LD_PRELOAD"].endswith("simcuda/libgpusim-files.so") and "libgpucache.so:libm.so.6:" in env["LD_PRELOAD"],
           env["LD_PRELOAD"])
    expect(env["LD_LIBRARY_PATH"].endswith("simcuda:/somewhere"), env["LD_LIBRARY_PATH"])
    expect("GPUCACHE" not in env, "GPUCACHE is set")


def case_the_launcher_switches_us_off(world):
    result = launch(world, "--off", "--sim", "4GiB", "-o", world.pattern, world.program("train"), "--steps", "2")
    expect_equal("the run", (result.status, result.err), (0, ""))
    expect_equal("the recordings", world.recordings(), [])


def case_the_launcher_says_in_one_line_what_is_wrong(world):
    script = os.path.join(world.folder, "no-right-to-run")
    with open(script, "w", encoding="ascii") as file:
        file.write("#!/bin/sh\n")
    for arguments, status, word in (
            ((), 2, "--help"),
            (("--simm",), 2, "--simm"),
            (("-c",), 2, "-c"),
            (("--sim=lots", "ls"), 2, "lots"),
            (("--sim", "16XiB", "ls"), 2, "16XiB"),
            (("no-such-program",), 127, "no-such-program"),
            ((script,), 126, "not executable"),
            ((world.folder,), 126, "folder")):
        result = launch(world, *arguments)
        expect_equal(f"the status of {arguments}", result.status, status)
        lines = result.err.splitlines()
        expect(len(lines) == 1 and word in lines[0], f"{arguments}: stderr is {result.err!r}")
        expect_equal(f"stdout of {arguments}", result.out, "")


def case_a_gpu_by_name_is_one_of_the_list(world):
    listed = launch(world, "--sim", "list")
    expect_equal("the list", (listed.status, listed.err), (0, ""))
    names = [line.split()[0] for line in listed.out.splitlines()[1:]]
    expect("h100" in names and "t4" in names, f"the list is {names}")
    for name in names:
        env = launch(world, "--off", "--sim", name, "/usr/bin/env")
        expect(f"GPUSIM=gpu:{name}\n" in env.out, f"{name}: {env.err}")


def case_an_unknown_gpu_is_answered_with_the_nearest(world):
    for asked, nearest in (("a100", "a100-40"), ("rtx-4090", "rtx4090"), ("h1oo", "h100")):
        result = launch(world, "--sim", asked, "ls")
        expect_equal("the status", result.status, 2)
        expect(f"{nearest}?" in result.err and len(result.err.splitlines()) == 1, f"stderr is {result.err!r}")


def case_what_the_tables_of_the_simulated_libraries_promise_is_so(world):
    result = launch(world, "--off", "--sim", "1GiB", "--sim-options", "clock:virtual,kernel_us:1000",
                    world.program("standins"))
    expect_equal("the program", (result.status, len(result.out.splitlines())), (0, 4))
    told = [line for line in result.err.splitlines() if "is not simulated" in line]
    expect(told and max(map(told.count, told)) <= 2, "a function is named more than once by each of the two cuBLAS")


def case_a_kernel_is_of_the_image_that_a_driver_would_load(world):
    answers = {"v100": "209", "t4": "209", "a100-40": "80 80", "rtx3090": "86 86", "l4": "86 86", "8GiB": "90 90",
               "b200": "90 100"}
    for gpu, versions in answers.items():
        for options in (), ("--off",):
            result = launch(world, *options, "--sim", gpu, world.program("images"))
            expect_equal(f"kernels on {gpu}", result.out, f"runtime {versions}\ndriver {versions}\n")


def case_collectives_of_the_simulated_nccl_move_what_the_ranks_have(world):
    for ranks in (), ("threads",), ("together",):
        for options in (), ("--off",):
            result = launch(world, *options, "--sim", "1GiB", "--sim-options", "devices:3", world.program("ranks"), *ranks)
            expect_equal(f"the program, {ranks}", (result.status, result.out), (0, "0 of 3 failed\n"))


def case_who_asks_for_private_tables_is_named_whatever_the_driver_was_opened_as(world):
    for name in "libcuda.so", "libcuda.so.1":
        ask = f"import ctypes; ctypes.CDLL('{name}').cuGetExportTable(ctypes.byref(ctypes.c_void_p()), None)"
        result = launch(world, "--off", "--sim", "1GiB", sys.executable, "-c", ask)
        expect_equal("the status", result.status, 0)
        expect("private tables" in result.err and "libcuda.so" not in result.err, f"stderr is {result.err!r}")


def case_nvrtc_that_does_without_its_private_table_is_not_told_to_be_linked_otherwise(world):
    table = "da9151d33ae6cc41a5c04f26d533e328"
    ask = f"""import ctypes
print(ctypes.CDLL("libcuda.so.1").cuGetExportTable(ctypes.byref(ctypes.c_void_p()), bytes.fromhex("{table}")))"""
    result = launch(world, "--off", "--sim", "1GiB", sys.executable, "-c", ask)
    expect_equal("what it got and was told", (result.out, result.err), ("500\n", ""))  # CUDA_ERROR_NOT_FOUND


def case_a_gpu_has_one_place_on_the_bus_however_many_are_hidden(world):
    ask = """import ctypes
cuda, number, name = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.create_string_buffer(16)
cuda.cuInit(0)
for i in range(2):
    cuda.cuDeviceGetAttribute(ctypes.byref(number), 33, i), cuda.cuDeviceGetPCIBusId(name, 16, i)
    print(number.value, name.value.decode())"""
    result = launch(world, "--off", "--sim", "1GiB", "--sim-options", "devices:4", sys.executable, "-c", ask,
                    CUDA_VISIBLE_DEVICES="3,1")
    expect_equal("where they are", result.out, "4 0000:04:00.0\n2 0000:02:00.0\n")


def case_an_unknown_pointer_has_attributes_of_zeros(world):
    sizes = {1: 8, 2: 4, 3: 8, 4: 8, 5: 16, 7: 8, 8: 4, 9: 4, 10: 4, 11: 8, 12: 8, 13: 4, 17: 8}
    ask = f"""import ctypes
cuda, context, sizes = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), {sizes}
cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context)
for which, size in sizes.items():
    room = ctypes.create_string_buffer(b"\\xff" * 24, 24)
    status = cuda.cuPointerGetAttributes(1, (ctypes.c_int * 1)(which), (ctypes.c_void_p * 1)(ctypes.addressof(room)), ctypes.c_uint64(0x1234))
    if status or room.raw != bytes(size) + b"\\xff" * (24 - size): print(which, status, room.raw.hex())"""
    result = launch(world, "--off", "--sim", "1GiB", sys.executable, "-c", ask)
    expect_equal("attributes that are not zeros, or of another size", (result.out, result.err), ("", ""))


def case_names_of_the_32_bit_abi_are_there_and_refused(world):
    ask = """import ctypes; cuda = ctypes.CDLL("libcuda.so.1")
print(cuda.cuMemAlloc(None, 1), cuda.cuMemFree(0), cuda.cuMemsetD8(0, 0, 1), cuda.cuMemsetD32(0, 0, 1))"""
    result = launch(world, "--off", "--sim", "1GiB", sys.executable, "-c", ask)
    expect_equal("the answers", result.out, "801 801 801 801\n")  # CUDA_ERROR_NOT_SUPPORTED


def case_what_the_driver_lacks_is_there_and_says_so_once(world):
    ask = "import ctypes; print([ctypes.CDLL('libcuda.so.1').cuTexRefCreate(None) for _ in range(2)])"
    result = launch(world, "--off", "--sim", "1GiB", sys.executable, "-c", ask)
    expect_equal("the answers", (result.out, result.err), ("[801, 801]\n", "gpusim: libcuda: cuTexRefCreate is not simulated\n"))


def case_rows_of_16_and_32_bits_are_filled(world):
    ask = """import ctypes
cuda, context, there, back = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64(), ctypes.create_string_buffer(24)
cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context)
cuda.cuMemAlloc_v2(ctypes.byref(there), ctypes.c_size_t(24))
def fill(name, pitch, value, n, rows, *stream):
    status = getattr(cuda, name)(there, ctypes.c_size_t(pitch), value, ctypes.c_size_t(n), ctypes.c_size_t(rows), *stream)
    cuda.cuMemcpyDtoH_v2(back, there, ctypes.c_size_t(24))
    print(status, back.raw.hex())
fill("cuMemsetD2D8_v2", 24, 0, 24, 1)
fill("cuMemsetD2D16_v2", 12, 0x2211, 2, 2)
fill("cuMemsetD2D32Async", 8, 0x66554433, 1, 3, None)"""
    result = launch(world, "--off", "--sim", "1GiB", sys.executable, "-c", ask)
    expect_equal("what is there", result.out.split(), ["0", "00" * 24, "0", ("11221122" + "00" * 8) * 2, "0",
                 "33445566" + "00" * 4 + "33445566" + "11221122" + "33445566" + "00" * 4])


def case_the_oldest_nvml_says_where_a_gpu_is_and_no_more(world):
    ask = """import ctypes
nvml = ctypes.CDLL("libnvidia-ml.so.1")
nvml.nvmlInit_v2()
gpu, old, new = ctypes.c_void_p(), ctypes.create_string_buffer(b"\\xff" * 68, 68), ctypes.create_string_buffer(68)
nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(gpu))
print(nvml.nvmlDeviceGetPciInfo(gpu, old), nvml.nvmlDeviceGetPciInfo_v3(gpu, new), nvml.nvmlDeviceGetPciInfo(gpu, None))
print(old.raw[:32] == new.raw[:32], old.raw[32:] == b"\\xff" * 36, new.raw[:12])"""
    result = launch(world, "--off", "--sim", "1GiB", sys.executable, "-c", ask)
    expect_equal("what it says", result.out, "0 0 2\nTrue True b'0000:01:00.0'\n")


def case_what_kernels_that_do_nothing_mean_is_said_at_the_end(world):
    launched = launch(world, "--off", "--sim", "1GiB", world.program("standins")).err
    expect("gpusim: kernels do nothing here: " in launched.splitlines()[-1], f"the last line is {launched[-300:]!r}")


def read(world, reads, *arguments, ours=False):
    return launch(world, *([] if ours else ["--off"]), "--sim", "1GiB", "--sim-options", f"reads:{reads}", *arguments)


def case_a_line_that_reads_a_thousand_results_that_no_kernel_computed_is_named(world):
    program = world.program("reads")
    for ours in False, True:
        line = [line for line in read(world, "garbage", program, "loop", "1001", ours=ours).err.splitlines() if "1000 results" in line]
        expect(len(line) == 1 and "is_done reads.c:" in line[0] and "< main" in line[0], f"said {line}")
    for quiet in ("loop", "999"), ("growing", "2000"):
        said = read(world, "garbage", program, *quiet).err
        expect("1000 results" not in said, f"{quiet}: {said}")


def case_the_line_of_a_python_program_that_waits_for_a_result_is_named(world):
    result = read(world, "zero", *world.script("reads.py"))
    with open(world.script("reads.py")[-1], encoding="ascii") as file:
        line = [number for number, text in enumerate(file, 1) if "cudaMemcpy" in text][0]
    expect_equal("how long it waited", result.out, "2000\n")
    expect(f"is_done reads.py:{line}" in result.err, f"said {result.err}")


def case_results_that_no_kernel_computed_are_what_the_option_says(world):
    fives = "55 5555 55555555 5555555555555555 555555555555555555555555 55555555555555555555555555555555\n"
    zeros = fives.replace("5", "0")
    ones = "01 0100 01000000 0100000000000000 010000000100000001000000 01000000000000000100000000000000\n"
    for reads, wanted in ("garbage", fives), ("zero", zeros), ("one", ones):
        expect_equal(reads, read(world, reads, world.program("reads"), "values").out, wanted)
    for reads, steps in ("one", "0"), ("one/1", "0"), ("one/16", "15"):
        expect_equal(reads, read(world, reads, *world.script("reads.py")).out, f"{steps}\n")


def case_what_copies_and_fills_wrote_after_the_last_kernel_is_no_result(world):
    for reads, last in ("garbage", 42), ("zero", 0), ("one", 1):
        result = read(world, reads, world.program("reads"), "known")
        expect_equal(reads, result.out, f"{7 * 0x01010101} {0 if reads != 'one' else 1} 42 {last}\n")
        expect("read back by 2 x" in result.err, f"said {result.err}")


def case_a_size_that_no_kernel_computed_is_told_at_once(world):
    lines = read(world, "garbage", world.program("reads"), "nonzero").err.splitlines()
    expect(len(lines) == 2 and "nonzero() of a count" in lines[0] and "is_done reads.c:" in lines[0], f"said {lines}")
    lines = read(world, "zero", world.program("reads"), "nonzero").err.splitlines()
    expect_equal("lines", len(lines), 1)


def case_the_launcher_without_the_library_says_what_to_type(world):
    alone = os.path.join(world.folder, "alone")
    os.mkdir(alone)
    shutil.copy2(os.path.join(world.build, "gpucache-run"), alone)
    result = world.run([os.path.join(alone, "gpucache-run"), "ls"], with_us=False)
    expect_equal("the status", result.status, 2)
    expect("make" in result.err and len(result.err.splitlines()) == 1, f"stderr is {result.err!r}")


def case_the_launchers_help_opens_with_examples(world):
    result = launch(world, "--help")
    expect_equal("the run", (result.status, result.err), (0, ""))
    expect(result.out.index("Examples:") < result.out.index("Usage:"), "the examples come late")


def case_a_simulated_gpu_has_its_device_files(world):
    seen = "import os; print(os.path.exists('/dev/nvidia0'), os.access('/dev/nvidiactl', os.R_OK), os.path.exists('/dev/nvidia9'))"
    result = launch(world, "--off", "--sim", "1GiB", sys.executable, "-c", seen)
    expect_equal("the files", result.out, "True True False\n")


def case_the_launcher_makes_relative_preloads_absolute_and_loads_us_once(world):
    os.mkdir(os.path.join(world.folder, "other"))
    harmless = os.path.join(world.build, "simcuda", "libgpusim-audit.so")
    shutil.copy(harmless, os.path.join(world.folder, "other", "libgpucache.so"))
    shutil.copy(harmless, os.path.join(world.folder, "harmless.so"))
    ours = os.path.join(world.folder, "installed", "lib", "libgpucache.so")
    result = launch(world, "--sim", "1GiB", "/usr/bin/env", LD_PRELOAD=f"./harmless.so {ours}")
    preload = next(line for line in result.out.splitlines() if line.startswith("LD_PRELOAD="))
    files = os.path.realpath(os.path.join(world.folder, "installed", "lib", "gpucache", "simcuda", "libgpusim-files.so"))
    expect_equal("LD_PRELOAD", preload, f"LD_PRELOAD={ours}:{world.folder}/./harmless.so:{files}")
    expect_equal("what is said", result.err, "")
    result = launch(world, "--sim", "1GiB", "/usr/bin/env", LD_PRELOAD="other/libgpucache.so")
    expect("names another gpucache, other/libgpucache.so; it is left out" in result.err, result.err)
    expect(f"LD_PRELOAD={ours}:{files}\n" in result.out, result.out)
    result = launch(world, "/usr/bin/env", LD_PRELOAD="gone/x.so")
    expect_equal("the exit status", result.status, 2)
    expect("names gone/x.so, which is not in this folder" in result.err, result.err)


def case_the_launcher_tells_where_there_is_no_gpu(world):
    if any(os.path.exists(path) for path in ("/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg", "/dev/nvhost-gpu")):
        raise Skip("there is a GPU")
    expect("--sim 16GiB" in launch(world, "/bin/true").err, "nothing is said")
    for words, extra in ((("--sim", "1GiB"), {}), (("--off",), {}), ((), {"GPUSIM": "memory:1GiB"})):
        expect_equal("what is said", launch(world, *words, "/bin/true", **extra).err, "")


def case_the_launcher_and_the_report_are_of_one_version(world):
    expect_equal("the version", launch(world, "-V").out.split()[1], world.report("-V").out.split()[1])
