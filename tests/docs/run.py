#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py BUILD_DIR [FILE...]: runs every command of the README and of docs/, in order.

Each section runs in one shell, in a folder of its own with build/ and tests/, on a simulated GPU; `python` is this
interpreter, train.py a program that allocates.  A command must end with 0 unless EXPECTED gives another status, and
must run unless NOT_HERE gives a reason.  A command in SHOWS must print what the page shows it for.  Prints a line per
page; the last line is "N passed, N failed".
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# Commands that a test cannot run, by their beginning, and why.
NOT_HERE = {
    "git clone": "needs the network",
    "make": "builds; check_docs.sh knows the targets, tests/integration/cases_first.py runs the demo",
    "docker": "needs Docker",
    "kubectl": "needs a cluster",
    "sudo": "changes this machine",
    "apt": "changes this machine",
    "pip install": "tests/package/run.py installs it",
    "tests/": "a test that others run",
    "gpucache-run --cdi": "writes into /etc/cdi; tests/cluster/run.py replays the transcript",
    "podman": "as gpucache-run --cdi",
    "amtool": "needs Alertmanager; tests/cluster/run.py replays the transcript",
    "jq": "tests/cluster/run.py runs it",
    "sbatch": "needs Slurm; tests/cluster/run.py replays the transcript",
    "sacct": "as sbatch",
    "cat train.sh": "as sbatch",
    "grep 'GPU OOM'": "as sbatch",
    "/usr/lib/gpucache/slurm/": "as sbatch",
}

# Pages about building and installing, which tests/package/run.py covers, and about vLLM, which tests/clients/client_serving.py does.
ELSEWHERE = {"docs/user/INSTALL.md", "examples/README.md", "docs/user/SERVING.md"}

# Commands that may end with another status than 0, by a part of the command.
EXPECTED = {
    "--fail-on=oom": (0, 1),    # 1: the recording has a failed request
    "gpumem-report fit": (0, 1),  # 1: the recorded run ran out of memory
    "--sweep": (0, 1),          # 1: no value fits on one of the GPUs
    "--oom": (1,),              # the program reports its own error
    "tests/programs/gpt.py": (0, 1),
}

# What a command must print, by a part of the command: exit status 0 may also come with an empty table.
SHOWS = {
    "gpumem-report leaks leak.gpucache": "remember_loss",
    "gpucache-run --sim list": "h100",
    "build/gpumem-report oom": "OUT OF MEMORY",
}

# Replacements for text that the reader fills in, and for commands that never end.
INSTEAD = {
    r"/var/lib/node_exporter/textfile/": "",
    r" --watch=\S+": "",
    r" --(sweep|cure)": r" --yes --\1",  # nobody is there to be asked
    r" (RECORDING|FILE)\b": "",
    r"/var/lib/gpucache\b": "recordings",
    r"\bDIR/": "",
    r"\bDIR\b": "recordings",
}

# Stubs for programs that this machine lacks.
STUBS = {
    "torchrun": 'while [ "${1#-}" != "$1" ]; do case $1 in *=*|--standalone) shift;; *) shift 2;; esac; done\n'
                'for rank in 0 1; do RANK=$rank WORLD_SIZE=2 LOCAL_RANK=0 python "$@" || exit; done\n',
}


def sections_of(path):
    """Yields the commands of the page's code blocks, section by section, without trailing comments."""
    inside = False
    sections = [[]]
    with open(path) as file:
        for line in file:
            if line.startswith("```"):
                inside = not inside
            elif not inside and line.startswith("## "):
                sections.append([])
            elif inside and line.startswith("$ "):
                command = re.sub(r"\s{2,}#.*$", "", line[2:].rstrip())
                for pattern, instead in INSTEAD.items():
                    command = re.sub(pattern, instead, command)
                sections[-1].append(command)
    return sections


def reason_not_here(command):
    bare = re.sub(r"^(?:[A-Z_0-9]+=\S* +)*", "", command)
    return next((why for word, why in NOT_HERE.items() if bare.startswith(word)), None)


def prepare(build):
    folder = tempfile.mkdtemp(prefix="gpucache-docs-")
    tools = os.path.join(folder, "bin")
    os.makedirs(tools)
    os.symlink(build, os.path.join(folder, "build"))
    for name in ("tests", "examples", "docs", "include", "src"):
        if os.path.isdir(os.path.join(TOP, name)):
            os.symlink(os.path.join(TOP, name), os.path.join(folder, name))
    for name in ("python", "python3"):
        with open(os.path.join(tools, name), "w") as file:
            file.write(f'#!/bin/sh\nexec {sys.executable} -B "$@"\n')
        os.chmod(file.name, 0o755)
    for name, body in STUBS.items():
        with open(os.path.join(tools, name), "w") as file:
            file.write("#!/bin/sh\n" + body)
        os.chmod(file.name, 0o755)
    for name in ("gpumem-report", "gpumem-replay", "gpucache-run"):
        os.symlink(os.path.join(build, name), os.path.join(tools, name))
    shutil.copy(os.path.join(TOP, "tests", "programs", "train.py"), os.path.join(folder, "train.py"))
    return folder


def environment(build, folder):
    env = {key: value for key, value in os.environ.items() if not key.startswith(("GPUCACHE", "GPUSIM", "LD_", "MAKE"))}
    env.update(PATH=f"{folder}/bin:{env['PATH']}", LD_LIBRARY_PATH=f"{build}/simcuda", GPUSIM="memory:4GiB", TMPDIR=folder,
               HOME=folder, GPUCACHE_OUTPUT=f"{folder}/recordings/%p.gpucache", NO_COLOR="1")
    return env


def in_own_shm(command):
    """Runs with an empty /dev/shm, where recordings go by default, if this user may mount one."""
    wrap = ["unshare", "--map-root-user", "--mount", "sh", "-c", 'mount -t tmpfs none /dev/shm && exec "$@"', "sh"]
    able = subprocess.run([*wrap, "true"], capture_output=True, check=False).returncode == 0
    return [*wrap, *command] if able else command


def run_section(build, commands):
    """Returns what went wrong, and how many commands ran."""
    typed = [command for command in commands if not reason_not_here(command)]
    if not typed:
        return [], 0
    folder = prepare(build)
    env = environment(build, folder)
    with open(os.path.join(folder, "page.sh"), "w") as file:
        # Recordings for the first commands: of a run that ended, and of one that ran out of memory.
        for arguments in ("--steps 5", "--oom"):
            file.write(f"LD_PRELOAD=$PWD/build/libgpucache.so build/programs/train {arguments} >/dev/null 2>&1\n")
        for number, command in enumerate(typed):
            file.write(f"{{ {command}\n}} >out.{number} 2>&1 </dev/null; echo $? >status.{number}\n")
    faults = []
    try:
        subprocess.run(in_own_shm(["bash", "page.sh"]), cwd=folder, env=env, capture_output=True, timeout=600, check=False)
        for number, command in enumerate(typed):
            status = int(open(os.path.join(folder, f"status.{number}")).read() or -1)
            allowed = next((what for part, what in EXPECTED.items() if part in command), (0,))
            with open(os.path.join(folder, f"out.{number}"), errors="replace") as file:
                said = file.read()
            if status not in allowed:
                faults.append(f"$ {command}\n    exit status {status}: {said[-600:]}")
            faults += [f"$ {command}\n    does not show {what!r}: {said[-600:]}"
                       for part, what in SHOWS.items() if part in command and what not in said]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return faults, len(typed)


def manifests(path):
    """Checks that blocks to be pasted parse: JSON, and YAML if a parser is installed."""
    with open(path) as file:
        text = file.read()
    for kind, body in re.findall(r"```(yaml|json|python)\n(.*?)```", text, re.S):
        try:
            if kind == "json":
                json.loads(body)
            elif kind == "python":
                compile(body, path, "exec")
            else:
                import yaml
                list(yaml.safe_load_all(body))
        except ImportError:
            pass
        except Exception as error:  # whatever the parser raises
            yield f"a block of {kind} is none: {error}"


def main():
    if len(sys.argv) < 2 or not os.path.isdir(sys.argv[1]):
        sys.exit(__doc__)
    build = os.path.abspath(sys.argv[1])
    pages = sys.argv[2:] or [os.path.join(TOP, "README.md")] + sorted(glob.glob(os.path.join(TOP, "docs", "**", "*.md"), recursive=True))
    n_bad = 0
    for path in pages:
        faults, n_commands = [], 0
        for commands in sections_of(path) if os.path.relpath(path, TOP) not in ELSEWHERE else []:
            found, n_typed = run_section(build, commands)
            faults += found
            n_commands += n_typed
        faults += manifests(path)
        n_bad += bool(faults)
        print(("FAIL " if faults else "ok ") + os.path.relpath(path, TOP) + f": {n_commands} commands")
        for fault in faults:
            print("  " + fault)
    print(f"{len(pages) - n_bad} passed, {n_bad} failed")
    sys.exit(1 if n_bad else 0)


if __name__ == "__main__":
    main()
