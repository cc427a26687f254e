# SPDX-License-Identifier: Apache-2.0
"""Steps on streams, captures and processes, with kernels; and on the behaviour and costs of the driver."""
import concurrent.futures
import os
import subprocess
import time

from common import expect_same, need_runtime
from harness import GIB, Skip, World, expect, expect_equal

# A run of tests/programs/life takes a second or two; the first start of a driver takes longer.
LIFE_S = 20

IN_FLIGHT = (("non-blocking", "non-blocking"), ("blocking", "blocking"), ("per-thread", "non-blocking"),
             ("legacy", "non-blocking"), ("non-blocking", "legacy"))
CAPTURES = (("global",), ("thread-local",), ("relaxed",), ("global", "inside"), ("relaxed", "inside"))
WHOLE_CAPTURES = ["captures that survived: 10 of 10", "replays that were right: 20 of 20",
                  "wrong to the neighbour: 0", "refused to the neighbour: none"]


def gpu_program(suite, name):
    path = os.path.join(suite.build, "release/gpu", name)
    if not os.path.exists(path):
        raise Skip("the build has no programs of tests/gpu; `make gpu` builds them")
    return path


def step_in_flight(suite, world, data):
    """Both owners of a block freed in flight find their own data."""
    need_runtime(suite)
    for old, new in IN_FLIGHT:
        expect_same(world, [world.program("in_flight"), old, new], data, f"{old}, then {new}")
        done = world.run([world.program("in_flight"), old, new], GPUCACHE_CONF="free_order:host")
        expect("wrong" not in done.out, f"{old}, then {new}, with free_order:host: {done.out}")


def step_random_reuse(suite, world, data):
    """Random programs pass, and fail with a library whose fences do nothing, which proves the check."""
    program = gpu_program(suite, "reuse")
    for seed in ("1", "2", "3"):
        expect_same(world, [program, "20", seed], data, f"seed {seed}")
    without = world.run([program, "20", "1"], LD_PRELOAD=world.without_fences())
    data["without fences"] = without.out.strip()


def step_pages(suite, world, data):
    """Memory in handles that are mapped where they are needed: freed in flight, reused, unmapped and captured beside."""
    need_runtime(suite)
    for conf in ("vmm:on", "vmm:auto,limit:1GiB"):
        for old, new in IN_FLIGHT[:2]:
            done = world.run([world.program("in_flight"), old, new], GPUCACHE_CONF=conf)
            plain = world.run([world.program("in_flight"), old, new], with_us=False)
            expect_equal(f"{conf}, {old}, then {new}", (done.status, done.out), (plain.status, plain.out))
        for seed in ("1", "2"):
            plain = world.run([gpu_program(suite, "reuse"), "20", seed], with_us=False)
            done = world.run([gpu_program(suite, "reuse"), "20", seed], GPUCACHE_CONF=conf)
            expect_equal(f"{conf}, seed {seed}", (done.status, done.out), (plain.status, plain.out))
            data[f"{conf}, seed {seed}"] = done.out.strip()
            recording = max(world.recordings(), key=os.path.getmtime)
            data[f"{conf}, seed {seed}, calls"] = world.count_calls(recording)
        done = world.run([world.program("capture"), "global"], GPUCACHE_CONF=conf)
        expect_equal(f"{conf}, captures", done.out.splitlines(), WHOLE_CAPTURES)


def step_captures(suite, world, data):
    """With us captures survive allocations of another thread, and the replayed graphs write the right data."""
    need_runtime(suite)
    wrong = []
    for arguments in CAPTURES:
        name = " ".join(arguments)
        plain = world.run([world.program("capture"), *arguments], with_us=False)
        ours = world.run([world.program("capture"), *arguments])
        data[f"{name}, without us"] = "; ".join(plain.out.splitlines()) or plain.err.strip()[-200:]
        data[f"{name}, with us"] = "; ".join(ours.out.splitlines()) or ours.err.strip()[-200:]
        if (ours.status, ours.out.splitlines()) != (0, WHOLE_CAPTURES):
            wrong.append(f"{name}: status {ours.status}, {data[f'{name}, with us']}")
    expect(not wrong, "\n".join(wrong))


def step_fork(suite, world, data):
    expect_same(world, world.script("fork.py"), data, "fork.py")
    data["state of the recording"] = world.state()


def live(suite, world, mode):
    """(status, stdout) without us and with us; a hang is a result, too."""
    program = [world.program("life"), mode] + (["libcudart.so.13"] if mode == "library" else [])
    pattern = os.path.join(world.folder, f"{mode}-%p-%n.gpucache")
    answers = []
    for with_us in (False, True):
        until = min(world.deadline, time.monotonic() + LIFE_S)
        own = World(suite.build, world.folder, world.library_path, until)
        try:
            done = own.run(program, with_us, **({"GPUCACHE_OUTPUT": pattern} if with_us else {}))
            answers.append((done.status, done.out))
        except subprocess.TimeoutExpired:
            answers.append(("none: it hangs", ""))
    return answers


def step_lives(suite, world, data):
    """Forks, threads and ends of every kind: the exit status and each error code are the driver's."""
    need_runtime(suite)
    modes = world.run([world.program("life"), "list"], with_us=False).out.split()
    # That mode closes the driver's own descriptors, which stops it.
    modes.remove("descriptors")
    wrong = []
    with concurrent.futures.ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        answers = list(pool.map(lambda mode: live(suite, world, mode), modes))
    for mode, (plain, ours) in zip(modes, answers):
        data[mode] = f"status {plain[0]}; {'; '.join(plain[1].splitlines()[:12])}"
        if plain != ours:
            wrong.append(f"{mode}: with us {ours[0]}, {'; '.join(ours[1].splitlines()[:12])}")
    expect(not wrong, "\n".join(wrong))


def ask(world, program, topic, data, **extra):
    """Collects answers, none of which can be wrong; returns the errors while asking."""
    try:
        done = world.run([program, topic], with_us=False, **extra)
    except subprocess.TimeoutExpired as late:
        return [f"{topic}: no end after {late.timeout:.0f} s"]
    for line in done.out.splitlines():
        question, _, answer = line.partition(": ")
        data[question] = answer
    return [f"{topic}: status {done.status}, {done.err.strip()[-200:]}"] if done.status != 0 else []


def step_fences(suite, world, data):
    """The assumptions of safe reuse; a wrong one is NOT AS BELIEVED in the results, and in the reason."""
    program = gpu_program(suite, "fences")
    failed = []
    for topic in world.run([program, "list"], with_us=False).out.split():
        failed += ask(world, program, topic, data)
    for connections in ("1", "8", "32"):
        failed += ask(world, program, "overlap", data, CUDA_DEVICE_MAX_CONNECTIONS=connections)
    failed += [f"{question}: {answer}" for question, answer in data.items() if "NOT AS BELIEVED" in answer]
    expect(not failed, "\n".join(failed))


def step_questions(suite, world, data):
    program = gpu_program(suite, "questions")
    failed = []
    for topic in world.run([program, "list"], with_us=False).out.split():
        failed += ask(world, program, topic, data)
    # One process cannot see these.
    data["cuDeviceRegisterAsyncNotification under other processes' pressure"] = \
        "not asked: it would take the memory of everybody on this device"
    data["cuCtxRecordEvent under MPS"] = "not asked: its server would have to be started on this machine"
    expect(not failed, "\n".join(failed))


def step_exit_order(suite, world, data):
    """Our handler runs while the driver still answers: the recording says that the program ended."""
    program = gpu_program(suite, "questions")
    done = world.run([program, "end"])
    expect_equal("the exit status", done.status, 0)
    data["with us"] = "; ".join(done.out.splitlines())
    data["state of the recording"] = world.state()
    expect_equal("the state of the recording", data["state of the recording"], "ended")


def step_costs(suite, world, data):
    most = GIB // 2 if suite.sim else 16 * GIB
    done = world.run([gpu_program(suite, "costs"), str(most)], with_us=False)
    for line in done.out.splitlines():
        call, circumstances, count, median, p99 = line.split("\t")
        data[f"{call}, {circumstances}" if circumstances else call] = {
            "count": int(count), "median_us": int(median) / 1000, "p99_us": int(p99) / 1000}
    expect_equal(f"the exit status ({done.err.strip()[-200:]})", done.status, 0)


def step_order(suite, world, data):
    program = gpu_program(suite, "order")
    failed = []
    for topic in world.run([program, "list"], with_us=False).out.split():
        failed += ask(world, program, topic, data)
    expect(not failed, "\n".join(failed))


MEMORY_STEPS = (
    ("memory freed in flight is right for both its owners", 60, step_in_flight),
    ("random programs that free in flight read what they wrote", 60, step_random_reuse),
    ("captures survive beside us, and graphs write what they should", 60, step_captures),
    ("the same on pages", 60, step_pages),
    ("a program that forks runs as without us", 30, step_fork),
    ("processes live and end as without us", 90, step_lives),
)
ASKING_STEPS = (
    ("what the safety of reuse takes for granted", 120, step_fences),
    ("what no document says about this driver", 60, step_questions),
    ("our handler ends before the driver does", 20, step_exit_order),
    ("what the driver's calls cost", 60, step_costs),
    ("can the device keep the order that cudaFree gives", 90, step_order),
)
