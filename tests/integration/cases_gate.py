# SPDX-License-Identifier: Apache-2.0
"""libgpucache-gate.so: who is let in, and that the others run on.  And the specification that has it, gpucache-run --cdi."""
import json
import os
import re
import shutil
import subprocess

from harness import Skip, expect, expect_equal

TELLS = """
#include <stdio.h>
#include <stdlib.h>
#ifdef VERSION
const char *gnu_get_libc_version(void) { return VERSION; }
#endif
int main(int argc, char **argv)
{
	const char *preload = getenv("LD_PRELOAD");

	printf("%d %s|%s\\n", argc, argv[argc - 1], preload ? preload : "none");
	return 7;
}
"""


def tells(world, *options, compiler="gcc"):
    path = os.path.join(world.folder, "tells")
    subprocess.run([compiler, "-xc", "-", "-o", path, *options], input=TELLS, text=True, check=True)
    return path


def gate(world):
    return os.path.join(world.build, "libgpucache-gate.so")


def oldest(library):
    """The minor number of the newest glibc that a library asks for."""
    said = subprocess.run(["readelf", "-VW", library], capture_output=True, text=True, check=True, env={**os.environ, "LC_ALL": "C"}).stdout
    return max(int(minor) for minor in re.findall(r"Name: GLIBC_2\.(\d+)", said))


def first_process(command, preload, **variables):
    """Runs it as process 1 of a namespace: only that is told."""
    wrap = ["unshare", "--map-root-user", "--pid", "--fork", "--kill-child"]
    if subprocess.run([*wrap, "true"], capture_output=True, check=False).returncode:
        raise Skip("this user may not make namespaces")
    command = ["env", f"LD_PRELOAD={preload}", *(f"{key}={value}" for key, value in variables.items()), *command]
    done = subprocess.run([*wrap, *command], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def case_gate_lets_in(world):
    """A program with this glibc gets the library in the gate's place: same arguments, status, and nothing said."""
    library = os.path.join(world.build, "libgpucache.so")
    program = tells(world)
    expect_equal("it", first_process([program, "a b", ""], gate(world)), (7, f"3 |{library}\n", ""))
    expect_equal("between others", first_process([program], f"{library}x:{gate(world)} {library}y")[1], f"1 {program}|{library}x:{library} {library}y\n")
    expect_equal("switched off", first_process([program], gate(world), GPUCACHE="0"), (7, f"1 {program}|{gate(world)}\n", ""))


def case_gate_keeps_out(world):
    """An older glibc, musl, no library beside it, and a name that is too long: one line of process 1, and the program runs on."""
    # As the library asks for; and by that alone, wherever the gate was made.
    library = os.path.join(world.build, "libgpucache.so")
    least = max(34, oldest(library))
    for version in f"2.{least - 1}", "2.5", "1.99":
        program = tells(world, "-rdynamic", f'-DVERSION="{version}"')
        status, said, complaint = first_process([program], gate(world))
        expect_equal(version, (status, said), (7, f"1 {program}|{gate(world)}\n"))
        expect_equal(version, complaint, f"gpucache: the program's glibc is older than 2.{least}: it runs without gpucache\n")
    for version in f"2.{least}", f"2.{least + 1}":
        program = tells(world, "-rdynamic", f'-DVERSION="{version}"')
        expect_equal(version, first_process([program], gate(world)), (7, f"1 {program}|{library}\n", ""))
    program = tells(world)
    alone = shutil.copy(gate(world), world.folder)
    expect_equal("alone", first_process([program], alone), (7, f"1 {program}|{alone}\n", "gpucache: libgpucache.so is not beside "
                                                             "libgpucache-gate.so, or not readable: the program runs without it\n"))
    done = world.run([program], with_us=False, LD_PRELOAD=alone)
    expect_equal("not process 1", (done.status, done.err), (7, ""))
    status, said, _ = first_process([program], gate(world) + ":" + "/x" * 5000)
    expect_equal("too long", (status, said[:len(program) + 2]), (7, f"1 {program}"))


def case_gate_of_musl(world):
    """musl's loader takes the gate, and not the library."""
    if not shutil.which("musl-gcc"):
        raise Skip("there is no musl-gcc here; Debian's package is musl-tools")
    program = tells(world, compiler="musl-gcc")
    for preload in gate(world), gate(world) + ":/none.so":
        # The program is set to work by a shell without the gate, which would put the library into its place.
        done = subprocess.run([program], env={"LD_PRELOAD": preload}, capture_output=True, text=True, check=False)
        expect_equal("it", (done.returncode, done.stdout), (7, f"1 {program}|{preload}\n"))


def case_gate_of_the_loader(world):
    """A program started by the loader's name has the loader's arguments, and is let alone."""
    loader = next(line.split()[0] for line in subprocess.run(["ldd", shutil.which("true")], capture_output=True, text=True, check=True)
                  .stdout.splitlines() if "/ld-" in line)
    program = tells(world)
    done = world.run([loader, program, "x"], with_us=False, LD_PRELOAD=gate(world))
    expect_equal("it", (done.status, done.out), (7, f"2 x|{gate(world)}\n"))


def case_cdi(world):
    """The specification has what a container needs; what cannot be in it is refused."""
    run = os.path.join(world.build, "gpucache-run")
    spec = json.loads(world.run([run, "--cdi", "-c", "cache:off", "-o", world.folder + "/%p.gpucache"], with_us=False).out)
    edits = spec["devices"][0]["containerEdits"]
    expect_equal("kind", (spec["kind"], spec["devices"][0]["name"], spec["cdiVersion"]), ("gpucache.dev/memory", "all", "0.3.0"))
    variables = dict(one.split("=", 1) for one in edits["env"])
    expect_equal("variables", (variables["GPUCACHE_CONF"], variables["GPUCACHE_OUTPUT"]), ("cache:off", world.folder + "/%p.gpucache"))
    inside = {mount["containerPath"]: mount for mount in edits["mounts"]}
    for path in variables["LD_PRELOAD"], variables["NVTX_INJECTION64_PATH"]:
        expect("ro" in inside[path]["options"] and os.path.isfile(inside[path]["hostPath"]), inside)
    expect("rw" in inside[world.folder]["options"], inside)
    # As the wheel has it: with a libunwind of its own, which the library looks for below its own folder.
    tree = world.folder + "/tree"
    os.makedirs(tree + "/bin")
    os.makedirs(tree + "/lib/gpucache")
    for name, to in ("gpucache-run", "bin"), ("gpucache-cdi", "lib/gpucache"), ("libgpucache.so", "lib"), ("libgpucache-gate.so", "lib"):
        shutil.copy(os.path.join(world.build, name), f"{tree}/{to}")
    unwind = tree + "/lib/gpucache/libunwind-gpucache.so.8"
    for is_there in False, True:
        if is_there:
            shutil.copy(os.path.join(world.build, "libgpucache.so"), unwind)
        spec = json.loads(world.run([tree + "/bin/gpucache-run", "--cdi", "-o", world.folder + "/%p"], with_us=False).out)
        mounts = {mount["containerPath"]: mount["hostPath"] for mount in spec["devices"][0]["containerEdits"]["mounts"]}
        expect_equal("libunwind", mounts.get("/opt/gpucache/gpucache/libunwind-gpucache.so.8"), unwind if is_there else None)
    simulated = json.loads(world.run([run, "--cdi", "--sim", "l4", "-o", world.folder + "/%p"], with_us=False).out)
    expect("GPUSIM=gpu:l4" in simulated["devices"][0]["containerEdits"]["env"], simulated)
    done = world.run([run, "--cdi", "-o", world.folder + "/new/%p"], with_us=False)
    expect_equal("no folder yet", (done.status, done.err.split(": ", 1)[1]),
                 (0, f"there is no {world.folder}/new yet: install -d -m 1777 {world.folder}/new\n"))
    for wrong in (["true"], ["--wait"], ["--off"], ["--fit"], ["-o", "/%p"], ["-o", "/a b/%p"], ["-c", 'output:"']):
        done = world.run([run, "--cdi", *wrong], with_us=False)
        expect_equal(f"--cdi {wrong}", (done.status, done.out), (2, ""))
