# SPDX-License-Identifier: Apache-2.0
"""Podman, with specifications of the Container Device Interface, and roots made by debootstrap.

Needs root.  A root is made once, in build/cluster.  The specification lies in a /run/cdi that only this process and its
children see.
"""
import os
import platform
import resource
import shutil
import subprocess

from harness import TOP, Failed, Skip

KEPT = os.path.join(TOP, "build", "cluster")
MIRROR = "http://deb.debian.org/debian"
ARCHIVE = "http://archive.debian.org/debian"
SPEC = "/run/cdi/gpucache.json"
N_FILES = resource.getrlimit(resource.RLIMIT_NOFILE)
MUSL = f"/lib/ld-musl-{platform.machine()}.so.1"


def debian(suite, packages):
    """The folder of a root, which is made where it is not there."""
    folder = os.path.join(KEPT, suite)
    if os.path.exists(folder + ".complete"):
        return folder
    if not shutil.which("debootstrap"):
        raise Skip("there is no debootstrap here")
    os.makedirs(KEPT, exist_ok=True)
    for mirror in (MIRROR, ARCHIVE):
        shutil.rmtree(folder, ignore_errors=True)
        made = subprocess.run(["debootstrap", "--variant=minbase", "--include=" + packages, suite, folder, mirror],
                              capture_output=True, text=True, check=False)
        if made.returncode == 0:
            with open(folder + ".complete", "w", encoding="ascii"):
                return folder
    raise Skip(f"debootstrap {suite}: " + (made.stdout + made.stderr).strip().splitlines()[-1])


class Podman:
    def __init__(self, world):
        if os.geteuid() != 0:
            raise Skip("needs root")
        if not shutil.which("podman"):
            raise Skip("there is no podman here: Debian's podman, crun and runc")
        self.world, self.folder = world, world.folder
        self.recordings = os.path.join(self.folder, "recordings")
        os.chmod(self.folder, 0o755)
        os.mkdir(self.recordings)
        os.chmod(self.recordings, 0o1777)
        os.makedirs(os.path.dirname(SPEC), exist_ok=True)
        # This process has a mount namespace of its own (runner.py).
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", os.path.dirname(SPEC)], check=True)
        self.runtime = None
        self.new = self.with_program("bookworm", "python3,libunwind8")
        self.runtime = self.find_runtime()
        self.specify()

    def with_program(self, suite, packages):
        root = debian(suite, packages)
        shutil.copy(os.path.join(TOP, "tests", "programs", "train.py"), root + "/usr/local/bin/")
        return root

    def podman(self, *words):
        # A host may not let us raise limits: those for a container are at most what we have.
        limits = [f"--ulimit=nofile={min(1024, N_FILES[0])}:{min(4096, N_FILES[1])}", "--ulimit=nproc=1024:4096"]
        return ["podman", *(["--runtime=" + self.runtime] if self.runtime else []), "--root", self.folder + "/podman", "--runroot",
                self.folder + "/run", "--tmpdir", self.folder + "/tmp", "--storage-driver=vfs", "--cgroup-manager=cgroupfs", *words[:1],
                *(limits if words[0] == "run" else []), *words[1:]]

    def find_runtime(self):
        said = ""
        for self.runtime in filter(shutil.which, ("crun", "runc")):
            done = self.run("true", options=())
            if done.returncode == 0:
                return self.runtime
            said += done.stderr.strip()[-200:]
        raise Skip(f"podman starts no container here: {said or 'there is neither crun nor runc'}")

    def specify(self, *options):
        """Writes the specification that gpucache-run prints, and returns it."""
        done = subprocess.run([os.path.join(self.world.build, "gpucache-run"), "--cdi", "--sim=2GiB", "--sim-options=context:100MiB", *options, "-o",
                               self.recordings + "/%h-%p.gpucache"], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failed(done.stderr)
        with open(SPEC, "w", encoding="utf-8") as file:
            file.write(done.stdout)
        return done.stdout

    def run(self, *command, root=None, options=("--device=gpucache.dev/memory=all",)):
        return subprocess.run(self.podman("run", "--rm", "--network=none", "--hostname=box", *options, "--rootfs",
                                          (root or self.new), *command), capture_output=True, text=True, check=False)

    def taken(self):
        """The recordings that are there, which are removed by the next case."""
        return sorted(os.path.join(self.recordings, name) for name in os.listdir(self.recordings))

    def forget(self):
        for path in self.taken():
            os.unlink(path)
