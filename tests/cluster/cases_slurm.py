# SPDX-License-Identifier: Apache-2.0
"""Slurm, running: tools/slurm in the tasks of real jobs."""
import os
import re
import shutil

from harness import TOP, expect, expect_equal
from page import replay
from slurm import TOOLS, run

# The job's user may not read every Python.
TRAIN = f"/usr/bin/python3 -B {TOP}/tests/programs/train.py"
ODD_RANK = f"srun -n2 sh -c 'if [ $SLURM_PROCID = 1 ]; then exec {TRAIN} --oom; fi; exec {TRAIN} --steps 3'"
ON = ("-p", "gpu", "--gpus=2", "-n2")
ASK = "env | grep -E '^(LD_PRELOAD|GPUCACHE_)' || echo nothing of ours"


def verdict_in(said):
    lines = re.findall(r"^gpucache: GPU OOM.*$", said, re.M)
    expect(len(lines) == 1, f"{len(lines)} verdicts in {said[-3000:]}")
    return lines[0]


def collect(slurm):
    return run(os.path.join(TOOLS, "collect"), slurm.folder + "/verdicts", env=slurm.env).stdout


def case_one_rank_of_two(slurm):
    """The verdict of the rank that failed comes into the job's output, a file, and the accounting."""
    job, said = slurm.batch(ODD_RANK, *ON, "--comment=night run")
    found = re.fullmatch(r"gpucache: (GPU OOM rank 1: growth, .*remember_loss:\d+.*) \(step (\d+)\.0 on \S+; recordings: (\S+)\)",
                         verdict_in(said))
    expect(found, said)
    expect("gpucache: OUT OF MEMORY" in said, "the failed rank's own report is missing")
    expect_equal("the file", slurm.read(os.path.join(found[3], "verdict")), found[1] + "\n")
    expect_equal("the job", found[2], job)
    # Of two ranks and the batch script.
    expect_equal("epilogs", len(slurm.epilogs(job)), 3)
    expect_equal("comments", collect(slurm), "1 comments\n")
    # sacctmgr writes comments in small letters.
    expect_equal("the comment", slurm.account(job, "JobID,Comment"), f"{job}|night run; {found[1].lower()}\n")
    expect_equal("what is left to collect", slurm.verdicts(), [])
    return found[1]


def case_off(slurm):
    """Another partition, GPUCACHE=0, or no GPU: no variable, no folder, no line."""
    before = slurm.left()
    for options, variables in ((("-p", "plain", "--gpus=1"), {}), (("-p", "gpu", "--gpus=1"), {"GPUCACHE": "0"}),
                               (("-p", "gpu"), {}), (("-p", "gpu"), {"GPUCACHE": "1"})):
        job, said = slurm.batch(f"{ASK}; srun sh -c '{ASK.replace(chr(39), chr(34))}'", *options, **variables)
        expect_equal(f"{options} {variables}", said, "nothing of ours\n" * 2)
        slurm.epilogs(job)
    expect_equal("folders", slurm.left(), before)


def case_on_by_the_job(slurm):
    """A comment of a batch job, or GPUCACHE=1 of any, switches it on; a step without a failure leaves nothing."""
    before = slurm.left()
    job, said = slurm.batch(f"srun {TRAIN} --steps 2 | tail -n 1; {ASK}", "-p", "plain", "--gpus=1", "--comment=my gpucache run")
    expect("LD_PRELOAD=" in said and f"/{job}.batch.0/%r-%p.gpucache" in said, said)
    said = slurm.command("srun", "-p", "plain", "--gpus=1", "sh", "-c", ASK, GPUCACHE="1").stdout
    expect(re.search(r"/\d+\.0\.0/%r-%p\.gpucache", said), said)
    said = slurm.command("srun", "-p", "plain", "--gpus=1", "sh", "-c", ASK, GPUCACHE="1", GPUCACHE_OUTPUT="/my/%p", LD_PRELOAD="/other.so").stdout
    expect("GPUCACHE_OUTPUT=/my/%p\n" in said and "libgpucache.so:/other.so\n" in said, said)
    expect_equal("folders", slurm.left(), before)


def case_batch_script_alone(slurm):
    """A program of the batch script, without srun."""
    job, said = slurm.batch(f"{TRAIN} --oom", *ON)
    expect(f"(step {job}.batch on" in verdict_in(said), said)


def case_array(slurm):
    """Each job of an array has its own verdict, also the one that has the array's number."""
    collect(slurm)
    wrap = f"[ $SLURM_ARRAY_TASK_ID = 1 ] || srun -n1 {TRAIN} --oom"
    job = slurm.command("sbatch", "--parsable", "-o", "%A-%a.out", "--array=1-3", "-p", "gpu", "--gpus=1", "--wrap", wrap).stdout.strip()
    slurm.ended(job)
    for task in (2, 3):
        verdict_in(slurm.read(f"jobs/{job}-{task}.out"))
    slurm.until("the last verdict", lambda: len(slurm.verdicts()) == 2)
    expect_equal("comments", collect(slurm), "2 comments\n")
    rows = sorted(line.split(":")[0] for line in slurm.account(job, "JobID,Comment").splitlines())
    expect_equal("comments of the array", rows, [f"{job}_1|", f"{job}_2|gpu oom rank 0", f"{job}_3|gpu oom rank 0"])


def case_overlapping_steps(slurm):
    """Two steps at a time: the verdict is of the step that failed."""
    job, said = slurm.batch(f"srun --overlap -n1 {TRAIN} --steps 400 >/dev/null & srun --overlap -n1 {TRAIN} --oom; wait", *ON)
    failed = re.search(rf"\(step {job}\.(\d) on", verdict_in(said))[1]
    expect_equal("folders of the job", [step for step in slurm.left() if step.startswith(job + ".")], [f"{job}.{failed}.0"])


def case_killed_step(slurm):
    """A step that hangs after a rank has failed is killed, and the verdict still comes."""
    script = f"srun -n2 -K0 sh -c 'if [ $SLURM_PROCID = 1 ]; then {TRAIN} --oom; fi; echo waits; exec sleep 600'"
    path = slurm.write("jobs/hangs", "#!/bin/sh\n" + script + "\n")
    job = slurm.command("sbatch", "--parsable", "-o", "%A.out", *ON, path).stdout.strip()
    slurm.until("the failure", lambda: os.path.exists(f"{slurm.folder}/jobs/{job}.out") and slurm.read(f"jobs/{job}.out").count("waits") == 2)
    slurm.command("scancel", job)
    slurm.ended(job)
    slurm.until("the verdict", lambda: any(name.startswith(job + ".") for name in slurm.verdicts()))
    verdict_in(slurm.read(f"jobs/{job}.out"))
    slurm.epilogs(job)


def case_requeue(slurm):
    """After a requeue the recordings of the earlier run are not taken for the new one's."""
    path = slurm.write("jobs/again", f"#!/bin/sh\nif [ ${{SLURM_RESTART_COUNT:-0}} = 0 ]; then srun -n1 {TRAIN} --oom; "
                       f"scontrol requeue $SLURM_JOB_ID; sleep 600; fi\nsrun -n1 {TRAIN} --steps 2\n")
    job = slurm.command("sbatch", "--parsable", "--requeue", "--open-mode=append", "-o", "%A.out", *ON, path).stdout.strip()
    slurm.until("the requeued job", lambda: slurm.read(f"jobs/{job}.out").count("GPU OOM") if os.path.exists(f"{slurm.folder}/jobs/{job}.out") else 0)
    # A requeued job waits until the first run's credential has expired.
    slurm.until("its second run", lambda: "COMPLETED" in slurm.account(job, "State"))
    verdict_in(slurm.read(f"jobs/{job}.out"))
    expect_equal("folders of the job", [step for step in slurm.left() if step.startswith(job + ".")], [f"{job}.0.0"])


def case_hostile_verdicts(slurm):
    """What others put into the folder of verdicts becomes nobody's comment, and text becomes printable ASCII."""
    job, _ = slurm.batch("true")
    collect(slurm)
    place = slurm.folder + "/verdicts/"
    with open(place + job + ".0.0.root", "w", encoding="utf-8") as file:
        file.write("1 GPU OOM of somebody else\n")
    secret = slurm.write("secret", "0 GPU OOM secret\n", 0o600)
    slurm.command("ln", "-s", secret, place + job + ".0.0.link")
    slurm.command("mkfifo", place + job + ".0.0.fifo")
    slurm.command("sh", "-c", f"printf '2 GPU OOM \\033]0;x\\007\"; \\302\\233 %0300d' 7 >{place}{job}.0.0.mine")
    slurm.command("sh", "-c", f"echo '0 GPU OOM' >{place}999999.0.0.mine; echo junk >{place}$(printf 'a\\nb')")
    expect_equal("comments", collect(slurm), "1 comments\n")
    comment = slurm.account(job, "Comment").strip()
    expect(comment.startswith("gpu oom ]0;x;  000") and len(comment) <= 200, comment)
    for name in slurm.verdicts():
        os.unlink(place + name)


def case_hostile_comments(slurm):
    """A comment in the form of what sacct prints is a comment: it makes no row of another job."""
    collect(slurm)
    victim, _ = slurm.batch("true", user="daemon")
    end = slurm.account(victim, "End,Partition").strip()
    comment = f"mine\n{victim}|{victim}|nobody|{end}|\n\xe9 \" \\"
    job, _ = slurm.batch("true", "--comment=" + comment)
    for number in victim, job:
        slurm.command("sh", "-c", f"echo '1 GPU OOM of nobody' >{slurm.folder}/verdicts/{number}.0.0.node")
    expect_equal("comments", collect(slurm), "1 comments\n")
    expect_equal("of the other job", slurm.account(victim, "Comment"), "\n")
    expect_equal("of the job", slurm.account(job, "Comment"), f"mine{victim}|{victim}|nobody|{end.lower()}|  ; gpu oom of nobody\n")
    expect_equal("what is left to collect", slurm.verdicts(), [])


def case_transcript(slurm):
    """docs/user/CONTAINERS.md shows what happens."""
    shutil.copy(os.path.join(TOP, "tests", "programs", "train.py"), slurm.folder + "/jobs/train.py")
    slurm.write("jobs/train.sh", "#!/bin/sh\n#SBATCH --gpus=2 --ntasks=2\nsrun python3 train.py --oom\n")
    numbers = {}

    def typed(command):
        """As in a shell, with this run's job number for the page's."""
        command = command.replace("4711", numbers.get("job", "4711"))
        if command.startswith("/usr/lib/gpucache/slurm/collect"):
            return collect(slurm)
        said = slurm.command("sh", "-c", command).stdout
        if command.startswith("sbatch"):
            numbers["job"] = said.split()[-1]
            slurm.ended(numbers["job"])
            slurm.until("the verdict", lambda: any(name.startswith(numbers["job"] + ".") for name in slurm.verdicts()))
        return said

    collect(slurm)
    replay("CONTAINERS.md", "slurm", slurm.host, typed)


def case_node_stays_up(slurm):
    """After all that no node is drained, and all epilogs have ended with 0."""
    expect_equal("the node", run("sinfo", "-h", "-p", "gpu", "-o", "%T", env=slurm.env).stdout, "idle\n")
    times = [ms for job in os.listdir(slurm.folder + "/epilogs") for ms in slurm.epilogs(job)]
    return f"{len(times)} epilogs took at most {max(times)} ms"
