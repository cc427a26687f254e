# SPDX-License-Identifier: Apache-2.0
"""Trainers and what runs programs for others, on the simulated GPU, each plain and with the library: frameworks/<program>.

Both runs print the same, what PyTorch counted at its peak included.  Then each runs out of memory: what the library prints
first names the cause, the program's line and a setting; with that setting the program runs.
"""
import collections
import glob
import os
import re
import tempfile

from world import HERE, Result, simulated, tell

COLUMNS = ("cause", "setting that runs", "printed, or peak in tensors, B")
FIRST_LINES = 15
FOLDER = os.path.join(HERE, "frameworks")

# What runs, of what program; how many ranks torchrun starts (0: none), and the arguments.
Case = collections.namedtuple("Case", "name program ranks gpu arguments fails", defaults=(None,))
# What runs out of memory: with which arguments, the causes that are right, a word that marks the line, the setting that has
# to be named, what must not be, and the arguments with the setting ("": the program has none).
Fails = collections.namedtuple("Fails", "arguments causes line setting never fixed")

CASES = [
    Case("SFT with LoRA", "train_lora.py", 0, "6GiB", "2",
         Fails("16", {"exhausted"}, "HERE", "gradient_checkpointing=True", "bf16=True", "16 checkpointing")),
    Case("ZeRO-1", "train_zero.py", 2, "3GiB", "2 1024 4 1",
         Fails("2 2048 8 1", {"exhausted"}, "STATES", "offload_optimizer to the CPU", "half precision", "2 2048 8 1 offload")),
    Case("ZeRO-2", "train_zero.py", 2, "3GiB", "2 1024 4 2"),
    Case("ZeRO-3", "train_zero.py", 2, "3GiB", "2 1024 4 3",
         Fails("2 2048 12 3", {"exhausted"}, "STATES", "offload_param to the CPU", "half precision", "2 2048 12 3 offload")),
    Case("ZeRO-1 offloaded", "train_zero.py", 2, "3GiB", "2 1024 4 1 offload"),
    Case("ZeRO-2 offloaded", "train_zero.py", 2, "3GiB", "2 1024 4 2 offload"),
    Case("ZeRO-3 offloaded", "train_zero.py", 2, "3GiB", "2 1024 4 3 offload"),
    Case("FSDP2", "train_fsdp.py", 2, "6GiB", "2 4",
         Fails("2 24", {"exhausted"}, "STATES", "CPUOffloadPolicy", "ZeRO", "2 24 offload")),
    Case("FSDP2 activations", "train_fsdp.py", 2, "8GiB", "2 4",
         Fails("64 12", {"exhausted"}, "ACTIVATIONS", "torch.utils.checkpoint", "ZeRO", "64 12 checkpoint")),
    Case("Jupyter", "use_notebook.py", 0, "4GiB", "", Fails("fail", {"exhausted"}, "", "keep on the host what fill", "half", "")),
    Case("Ray", "use_ray.py", -2, "4GiB", "", Fails("fail", {"exhausted"}, "HERE", "keep on the host what", "half", "")),
    Case("PyTorch Geometric", "use_graphs.py", 0, "2GiB", "",
         Fails("fail", {"exhausted", "spike"}, "HERE", "a smaller batch", "half", "")),
    Case("torchao", "use_torchao.py", 0, "2GiB", ""),
]


def start(python, case, arguments, *options):
    program = [os.path.join(FOLDER, case.program), *arguments.split()]
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(case.ranks)] if case.ranks > 0 else []
    with tempfile.TemporaryDirectory() as folder:
        run = simulated([python, *launcher, *program], case.gpu, *options, sim=f"devices:{abs(case.ranks) or 1},reads:zero",
                        env={"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "LEFT": folder, "RAY_AUTH_MODE": "disabled"})
        left = []
        for name in sorted(glob.glob(os.path.join(folder, "rank*"))):
            with open(name) as file:
                left.append(file.read().strip())
    return run, left


def said(run, left):
    """Without Trainer's times."""
    return left or [line for line in run.stdout.splitlines() if "train_runtime" not in line and line.strip()]


def first_lines(run):
    """What was printed first of the failure, in one line; without what Ray writes before each."""
    lines = re.sub(r"\x1b\[[0-9;]*m", "", run.stderr).splitlines()
    lines = [re.sub(r"^\(\w+ pid=\d+\) ", "", line) for line in lines]
    at = [i for i, line in enumerate(lines) if line.startswith("gpucache: OUT OF MEMORY")][:1]
    return re.sub(r"\s+", " ", " ".join(lines[at[0]:at[0] + FIRST_LINES])) if at else ""


def marked(case, mark):
    with open(os.path.join(FOLDER, case.program)) as file:
        return [f"{case.program}:{i}" for i, line in enumerate(file, 1) if mark and f"# {mark}" in line]


def check_failure(python, case):
    fails, wrong = case.fails, []
    run, _ = start(python, case, fails.arguments)
    text = first_lines(run)
    cause = (re.findall(r"WHY (\w+)", text) or ["nothing"])[0]
    if run.returncode == 0 or cause not in fails.causes:
        wrong.append(f"exit status {run.returncode}, the cause is {cause}:\n{run.stderr[-1500:]}")
    wrong += [f"{word!r} is not in the first {FIRST_LINES} lines" for word in (*marked(case, fails.line), fails.setting)
              if word not in text]
    if fails.never in text:
        wrong.append(f"{fails.never!r} is in the first {FIRST_LINES} lines")
    if fails.fixed:
        fixed, _ = start(python, case, fails.fixed)
        if fixed.returncode != 0:
            wrong.append(f"the setting does not help:\n{fixed.stderr[-1500:]}")
    return [text, *wrong] if wrong else [], cause, fails.setting if fails.fixed else ""


def run_case(python, case):
    (plain, plain_left), (ours, left) = (start(python, case, case.arguments, *options) for options in (["--off"], []))
    wrong = [f"exit status {run.returncode}:\n{run.stderr[-1500:]}" for run in (plain, ours) if run.returncode]
    if not wrong and said(plain, plain_left) != said(ours, left):
        wrong.append(f"printed\n{said(plain, plain_left)}and\n{said(ours, left)}")
    failed, cause, setting = check_failure(python, case) if case.fails and not wrong else ([], "", "")
    return tell(Result(case.name, wrong + failed, (cause, setting, " and ".join(said(ours, left)[-2:]).replace("|", "/"))))


def run(_name, python):
    only = os.environ.get("CASES", "").split(",")
    return [run_case(python, case) for case in CASES if only == [""] or case.name in only]
