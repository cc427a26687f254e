# SPDX-License-Identifier: Apache-2.0
"""Containers, running: a specification of gpucache-run --cdi in Podman, with images that nobody changed."""
import json
import os
import re
import shutil
import subprocess

from containers import MUSL, SPEC
from harness import TOP, Skip, expect, expect_equal
from page import replay

TRAIN = ("python3", "/usr/local/bin/train.py", "--oom")
ON = "--device=gpucache.dev/memory=all"


def case_container_says_why(podman):
    """A device on the command line, and the container's log says why; the host reads the recording.  Read-only root, no root user."""
    podman.forget()
    for options in ((ON,), (ON, "--read-only", "--user=1000:1000")):
        done = podman.run(*TRAIN, options=options)
        expect_equal("status", done.returncode, 1)
        expect("gpucache: OUT OF MEMORY on GPU 0" in done.stderr and "remember_loss" in done.stderr, done.stderr)
    expect_equal("recordings", [os.path.basename(path) for path in podman.taken()], ["box-1.1.gpucache", "box-1.gpucache"])
    for path in podman.taken():
        expect_equal("the cause", podman.world.report_json("oom", path)["verdict"]["word"], "growth")


def case_container_without_the_device(podman):
    """Without the device there is nothing of ours in it."""
    done = podman.run("sh", "-c", "env; find /opt -type f -size +0", options=())
    # The mount points of earlier containers stay in the root.
    expect("GPUCACHE" not in done.stdout and "LD_PRELOAD" not in done.stdout and "gpucache" not in done.stdout, done.stdout + done.stderr)


def case_container_as_it_was(podman):
    """Arguments, status and children of what runs; only the first process is executed twice."""
    script = 'echo "$0|$1|$2|$LD_PRELOAD"; sh -c "echo \\$LD_PRELOAD"; exit 7'
    done = podman.run("sh", "-c", script, "name", "a b", "")
    expect_equal("status", done.returncode, 7)
    expect_equal("it says", done.stdout, "name|a b||/opt/gpucache/libgpucache.so\n/opt/gpucache/libgpucache.so\n")
    expect_equal("on stderr", done.stderr, "")
    done = podman.run("sh", "-c", "echo $LD_PRELOAD; sh -c :", options=(ON, "--env=GPUCACHE=0"))
    expect_equal("switched off", (done.stdout, done.stderr), ("/opt/gpucache/libgpucache-gate.so\n", ""))


def case_container_of_an_old_glibc(podman):
    """Debian 11 has glibc 2.31: one line, and the program runs."""
    root = podman.with_program("bullseye", "python3")
    done = podman.run("sh", "-c", "python3 -c 'print(40 + 2)'; ls -d /usr; exit 3", root=root)
    expect_equal("status", done.returncode, 3)
    expect_equal("it says", done.stdout, "42\n/usr\n")
    lines = [line for line in done.stderr.splitlines() if not line.startswith("ERROR: ld.so: object '/opt/gpucache/simcuda/libgpusim-audit.so'")]
    expect_equal("on stderr", lines, ["gpucache: the program's glibc is older than 2.34: it runs without gpucache"])


def case_container_of_musl(podman):
    """A program linked with musl: one line, and it runs."""
    if not shutil.which("musl-gcc"):
        raise Skip("there is no musl-gcc here: Debian's musl-tools")
    root = podman.folder + "/musl"
    os.makedirs(root + "/lib")
    shutil.copy(os.path.realpath(MUSL), root + MUSL)
    source = podman.folder + "/musl.c"
    with open(source, "w", encoding="ascii") as file:
        file.write('#include <stdio.h>\nint main(void) { puts("runs"); return 5; }\n')
    subprocess.run(["musl-gcc", "-o", root + "/program", source], check=True)
    done = podman.run("/program", root=root)
    expect_equal("it", (done.returncode, done.stdout, done.stderr),
                 (5, "runs\n", "gpucache: the program's C library is not glibc: it runs without gpucache\n"))


def case_container_specification(podman):
    """It has nothing but what version 0.3.0 names, and can be merged into NVIDIA's as docs/user/CONTAINERS.md says."""
    spec = json.loads(podman.specify())
    expect_equal("keys", (sorted(spec), spec["cdiVersion"]), (["cdiVersion", "devices", "kind"], "0.3.0"))
    device, = spec["devices"]
    expect_equal("keys of the device", (sorted(device), sorted(device["containerEdits"])), (["containerEdits", "name"], ["env", "mounts"]))
    for variable in device["containerEdits"]["env"]:
        expect(re.fullmatch(r"[A-Z0-9_]+=.*", variable), variable)
    for mount in device["containerEdits"]["mounts"]:
        expect_equal("keys of a mount", sorted(mount), ["containerPath", "hostPath", "options"])
        expect(mount["hostPath"][0] == mount["containerPath"][0] == "/" and all(isinstance(option, str) for option in mount["options"]), mount)
    if not shutil.which("jq"):
        raise Skip("there is no jq here")
    nvidia = {"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": [{"name": "all", "containerEdits": {"env": ["NVIDIA=1"]}}],
              "containerEdits": {"env": ["BOTH=1"]}}
    with open(podman.folder + "/nvidia.json", "w", encoding="ascii") as file:
        json.dump(nvidia, file)
    with open(os.path.join(TOP, "docs", "user", "CONTAINERS.md"), encoding="utf-8") as file:
        command = next(line[2:] for line in file if line.startswith("$ jq "))
    merged = subprocess.run(["sh", "-c", command.replace("/etc/cdi/gpucache.json", SPEC).replace("nvidia-ctk.json", "nvidia.json")],
                            cwd=podman.folder, capture_output=True, text=True, check=True).stdout
    with open("/run/cdi/nvidia.json", "w", encoding="ascii") as file:
        file.write(merged)
    done = podman.run("sh", "-c", "echo $NVIDIA $BOTH $LD_PRELOAD", options=("--device=nvidia.com/gpu=all",))
    os.unlink("/run/cdi/nvidia.json")
    expect_equal("both", done.stdout, "1 1 /opt/gpucache/libgpucache.so\n")


def case_container_termination_message(podman):
    """The last 2,048 bytes and 80 lines of a failed container's log, which are Kubernetes' message, hold the whole verdict."""
    podman.forget()
    sizes = []
    for options in (), ("--env=RANK=3", "--env=LOCAL_RANK=3", "--env=WORLD_SIZE=16384"):
        # A traceback as long as PyTorch's comes first.
        script = f"for i in $(seq 100); do echo \"  File 'x.py', line $i\" >&2; done; exec {' '.join(TRAIN)}"
        done = podman.run("sh", "-c", script, options=(ON, *options))
        end = b"".join((done.stdout + done.stderr).encode()[-2048:].splitlines(True)[-80:]).decode(errors="replace")
        block = done.stderr[done.stderr.index("gpucache: OUT OF MEMORY"):]
        expect(block in end and "WHY    growth" in block and "FULL   gpumem-report oom" in block, end)
        sizes.append(len(block.encode()))
    return f"blocks of {sizes} bytes"


def case_container_transcript(podman):
    """docs/user/CONTAINERS.md shows what happens."""
    podman.forget()

    def typed(command):
        if command.startswith("gpucache-run --cdi"):
            podman.specify()
            return ""
        if command.startswith("podman run"):
            words = command.split()
            done = podman.run(*words[words.index("IMAGE") + 1:][:1], *TRAIN[1:],
                              options=[word for word in words[2:words.index("IMAGE")] if word != "--rm"])
            return done.stdout + done.stderr
        return subprocess.run(["sh", "-c", command.replace("/var/lib/gpucache", podman.recordings)], capture_output=True, text=True, check=False,
                              env={**os.environ, "PATH": podman.world.build + ":" + os.environ["PATH"], "COLUMNS": "100"}).stdout

    replay("CONTAINERS.md", "podman", "box", typed)
