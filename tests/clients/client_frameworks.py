# SPDX-License-Identifier: Apache-2.0
"""Trainers and what runs programs for others, on the simulated GPU, each plain and with the library: frameworks/<program>.

Both runs print the same, what PyTorch counted at its peak included.  Then each runs out of memory: what the library prints
first names the cause, the program's line and a setting; with that setting the program runs, plain and with the library.
"""
import collections
import glob
import os
import re
import tempfile

from world import BUILD, HERE, TOP, Result, simulated, tell

COLUMNS = ("cause", "setting that runs", "printed, or peak in tensors, B")
FIRST_LINES = 15
FOLDER = os.path.join(HERE, "frameworks")
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "RAY_AUTH_MODE": "disabled",
               "PYTHONPATH": os.path.join(TOP, "python"), "PATH": f"{BUILD}:{os.environ['PATH']}"}

# What runs, of what program; how many ranks torchrun starts (0: none), and the arguments; what is read for a result.
Case = collections.namedtuple("Case", "name program ranks gpu arguments fails reads", defaults=(None, "zero"))
# What runs out of memory: with which arguments, the causes that are right, a word that marks the line (or the place itself),
# the setting that has to be named, what must not be, and the arguments with the setting.
Fails = collections.namedtuple("Fails", "arguments causes line setting never fixed")

KEEP = "keep on the host what"

CASES = [
    Case("SFT with LoRA", "train_lora.py", 0, "6GiB", "2",
         Fails("16", {"exhausted"}, "HERE", "gradient_checkpointing=True", "bf16=True", "16 checkpointing")),
    Case("ZeRO-1", "train_zero.py", 2, "3GiB", "2 1024 4 1",
         Fails("2 2048 8 1", {"exhausted"}, "STATES", "offload_optimizer to the CPU", "half precision", "2 2048 8 1 offload")),
    Case("ZeRO-2", "train_zero.py", 2, "3GiB", "2 1024 4 2",
         Fails("2 2048 8 2", {"exhausted"}, "STATES", "offload_optimizer to the CPU", "half precision", "2 2048 8 2 offload")),
    Case("ZeRO-3", "train_zero.py", 2, "3GiB", "2 1024 4 3",
         Fails("2 2048 12 3", {"exhausted"}, "STATES", "offload_param to the CPU", "half precision", "2 2048 12 3 offload")),
    Case("ZeRO activations", "train_zero.py", 2, "3GiB", "2 1024 4 2 bucket",
         Fails("48 1024 8 2 bucket", {"exhausted"}, "ACTIVATIONS", "torch.utils.checkpoint", "offload",
               "48 1024 8 2 bucket checkpoint")),
    # The thread of the backward pass has no line of the program.
    Case("ZeRO's bucket", "train_zero.py", 2, "3GiB", "2 1024 4 2",
         Fails("48 1024 8 2 checkpoint", {"exhausted"}, "grad_handling_hook", "a smaller reduce_bucket_size", "offload",
               "48 1024 8 2 checkpoint bucket")),
    Case("ZeRO-1 offloaded", "train_zero.py", 2, "3GiB", "2 1024 4 1 offload"),
    Case("ZeRO-2 offloaded", "train_zero.py", 2, "3GiB", "2 1024 4 2 offload"),
    Case("ZeRO-3 offloaded", "train_zero.py", 2, "3GiB", "2 1024 4 3 offload"),
    Case("FSDP2", "train_fsdp.py", 2, "2GiB", "2 4",
         Fails("2 24", {"exhausted"}, "STATES", "CPUOffloadPolicy", "ZeRO", "2 24 offload")),
    Case("FSDP2 activations", "train_fsdp.py", 2, "3GiB", "2 4",
         Fails("32 8", {"exhausted"}, "ACTIVATIONS", "torch.utils.checkpoint", "ZeRO", "32 8 checkpoint")),
    Case("generate", "use_generate.py", 0, "3GiB", "2 8192",
         Fails("8 8192", {"exhausted"}, "HERE", "prefill_chunk_size", "checkpoint", "8 8192 chunks offloaded"), "one/16"),
    Case("generate with a KV cache that grows", "use_generate.py", 0, "3GiB", "2 8192 chunks",
         Fails("8 8192 chunks", {"exhausted", "growth"}, "HERE", 'cache_implementation="offloaded"', "checkpoint",
               "8 8192 chunks offloaded"), "one/16"),
    # Its threads load the weights, so there is no line of the program.
    Case("from_pretrained", "use_device_map.py", 0, "2GiB", "8",
         Fails("56", {"exhausted"}, "core_model_loading.py", 'device_map="auto"', "half", "56 auto")),
    Case("diffusers", "use_diffusers.py", 0, "3GiB", "2",
         Fails("24", {"exhausted", "spike"}, "HERE", "enable_model_cpu_offload()", "checkpoint", "24 offload")),
    Case("Jupyter", "use_notebook.py", 0, "1GiB", "2", Fails("20", {"exhausted"}, ".py:3", f"{KEEP} fill", "half", "20 host")),
    Case("Jupyter with %load_ext gpucache", "use_notebook.py", 0, "1GiB", "2 extension",
         Fails("20 extension", {"exhausted"}, "In[3]:3", f"{KEEP} fill In[3]:3", "half", "20 host extension")),
    Case("Ray", "use_ray.py", -2, "1GiB", "3", Fails("20", {"exhausted"}, "HERE", KEEP, "half", "20 host")),
    Case("PyTorch Geometric", "use_graphs.py", 0, "2GiB", "20000",
         Fails("400000", {"exhausted", "spike", "impossible"}, "HERE", "a smaller batch", "half", "400000 batches")),
    Case("torchao", "use_torchao.py", 0, "576MiB", "8",
         Fails("36", {"exhausted"}, "HERE", "8 bits, made on the host", "half precision", "36 host")),
]


def start(python, case, arguments, *options):
    program = [os.path.join(FOLDER, case.program), *arguments.split()]
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(case.ranks)] if case.ranks > 0 else []
    with tempfile.TemporaryDirectory() as folder:
        env = {**ENVIRONMENT, "LEFT": folder, **({"GPUCACHE_CONF": "oom_report:never"} if "extension" in arguments else {})}
        sim = f"devices:{abs(case.ranks) or 1},reads:{case.reads}"
        run = simulated([python, *launcher, *program], case.gpu, *options, sim=sim, env=env)
        left = []
        for name in sorted(glob.glob(os.path.join(folder, "rank*"))):
            with open(name) as file:
                left.append(file.read().strip())
    return run, left


def said(run, left):
    """Without Trainer's times."""
    return left or [line for line in run.stdout.splitlines() if "train_runtime" not in line and line.strip()]


def first_lines(run):
    """What was printed first of the failure, in one line; without what Ray writes before each.  A cell's output is on stdout."""
    text = run.stdout if "OUT OF MEMORY on" in run.stdout else run.stderr
    lines = [re.sub(r"^\(\w+ pid=\d+\) ", "", line) for line in re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()]
    at = [i for i, line in enumerate(lines) if re.match(r"(gpucache: )?OUT OF MEMORY on", line)][:1]
    return re.sub(r"\s+", " ", " ".join(lines[at[0]:at[0] + FIRST_LINES])) if at else ""


def places(case):
    """Of the marked lines, or the place that is given instead."""
    with open(os.path.join(FOLDER, case.program)) as file:
        return [f"{case.program}:{i}" for i, line in enumerate(file, 1) if f"# {case.fails.line}" in line] or [case.fails.line]


def check_cell(case, out):
    """A cell that failed shows the report once; with the extension below the traceback."""
    at = [found.start() for found in re.finditer("OUT OF MEMORY on", out)]
    is_below = "extension" in case.arguments
    return [] if len(at) == 1 and (at[0] > out.find("OutOfMemoryError")) == is_below else [f"the cell shows\n{out}"]


def check_failure(python, case):
    fails, wrong = case.fails, []
    run, _ = start(python, case, fails.arguments)
    text = first_lines(run)
    cause = (re.findall(r"WHY (\w+)", text) or ["nothing"])[0]
    if run.returncode == 0 or cause not in fails.causes:
        wrong.append(f"exit status {run.returncode}, the cause is {cause}:\n{run.stderr[-1500:]}")
    wrong += [f"{word!r} is not in the first {FIRST_LINES} lines" for word in (*places(case), fails.setting) if word not in text]
    if fails.never in text:
        wrong.append(f"{fails.never!r} is in the first {FIRST_LINES} lines")
    if case.program == "use_notebook.py":
        wrong += check_cell(case, run.stdout)
    more, _ = check_alike(python, case, fails.fixed)
    return [text, *wrong] if wrong else [f"with {fails.fixed}:", *more] if more else [], cause, fails.setting


def check_alike(python, case, arguments):
    """What is wrong of a run plain and one with the library, which print the same; and what was printed."""
    (plain, plain_left), (ours, left) = (start(python, case, arguments, *options) for options in (["--off"], []))
    wrong = [f"exit status {run.returncode}:\n{run.stderr[-1500:]}" for run in (plain, ours) if run.returncode]
    if not wrong and said(plain, plain_left) != said(ours, left):
        wrong.append(f"printed\n{said(plain, plain_left)}and\n{said(ours, left)}")
    return wrong, said(ours, left)


def run_case(python, case):
    wrong, printed = check_alike(python, case, case.arguments)
    failed, cause, setting = check_failure(python, case) if case.fails and not wrong else ([], "", "")
    return tell(Result(case.name, wrong + failed, (cause, setting, " and ".join(printed[-2:]).replace("|", "/"))))


def run(_name, python):
    only = os.environ.get("CASES", "").split(",")
    return [run_case(python, case) for case in CASES if only == [""] or case.name in only]
