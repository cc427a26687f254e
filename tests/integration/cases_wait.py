# SPDX-License-Identifier: Apache-2.0
"""gpucache-run --wait: the full report after a program that ran out of memory, and otherwise as if it had called exec."""
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time

from cases_launcher import installed
from harness import Failed, Skip, expect, expect_equal, shorten

# Says the number of each signal that it gets, in a line, and ends at SIGWINCH.  If several wait, the lowest number comes
# first, here as in gpucache-wait: what was sent before SIGWINCH is said before it.
LISTENER = """
import os, signal
signals = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGCONT, signal.SIGWINCH}
signal.pthread_sigmask(signal.SIG_BLOCK, signals)
print("ready", os.getpid(), flush=True)
while (number := signal.sigwait(signals)) != signal.SIGWINCH:
    print("got", number, flush=True)
print("over", flush=True)
"""


def script(world, name, text):
    path = os.path.join(world.folder, name)
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
    return path


def listener(world):
    return [sys.executable, "-S", script(world, "listener.py", LISTENER)]


def waiting(world, *command):
    return [installed(world), "--wait", "--sim", "1GiB", "--", *command]


def run(world, *command, options=(), **extra):
    full = waiting(world, *command)
    full[2:2] = options
    return world.run(full, with_us=False, LD_LIBRARY_PATH=None, GPUSIM=None, GPUCACHE_OUTPUT=world.pattern, **extra)


def start(world, command, **popen):
    env = world.environment(False, LD_LIBRARY_PATH=None, GPUSIM=None, GPUCACHE_OUTPUT=world.pattern)
    popen = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **popen}
    child = subprocess.Popen(command, env=env, cwd=world.folder, text=True, **popen)
    world.children.append(child)
    return child


def read_pid(child):
    """Reads the first line of a listener."""
    word, pid = child.stdout.readline().split()
    expect_equal("the first word", word, "ready")
    return int(pid)


def got(child):
    """Reads the rest: the numbers of signals."""
    return [int(line.split()[1]) for line in child.stdout.read().splitlines() if line.startswith("got")]


def reports(text):
    """The pids that full reports are about."""
    return [int(pid) for pid in re.findall(r"^OUT OF MEMORY on GPU 0[^\n]*\n\S+, pid (\d+) on ", text, re.M)]


def read(path):
    with open(path, encoding="ascii") as file:
        return file.read()


def is_gone(pid):
    """True if no process has this number, or one that nobody has reaped."""
    try:
        return read(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def instead_of_the_report(world, text):
    """Has gpucache-run find this script as gpumem-report."""
    path = os.path.join(os.path.dirname(installed(world)), "gpumem-report")
    os.unlink(path)
    script(world, path, "#!/bin/sh\n" + text)
    os.chmod(path, 0o755)


# ---- the report ----


def case_the_full_report_comes_after_a_program_that_ran_out_of_memory(world):
    for way in "exit", "_exit", "abort", "trap":
        done = run(world, world.program("ends"), way, "fatal")
        pid = int(re.search(r"-(\d+)\.gpucache", world.recording())[1])
        expect_equal(f"{way}: reports", reports(done.err), [pid])
        expect("\nHOLDERS " in done.err and done.out == "", f"{way}: {done.err}")
        world.forget_recordings()


def case_no_report_comes_after_a_program_that_ended_well_recovered_or_failed_of_something_else(world):
    for way, what, status in (("exit", "passed", 0), ("exit", "recovered", 3), ("abort", "recovered", -signal.SIGABRT)):
        done = run(world, world.program("ends"), way, what)
        expect_equal(f"{way} {what}", (done.status, reports(done.err)), (status, []))
    done = run(world, world.program("train"), "--steps", "2")
    expect_equal("train", (done.status, done.err), (0, ""))
    # A failure of another run is there.
    run(world, world.program("ends"), "exit", "fatal")
    for command, status in (("false",), 1), (("sh", "-c", "kill -TERM $$"), -signal.SIGTERM):
        done = run(world, *command)
        expect_equal(f"{command}", (done.status, done.out, done.err), (status, "", ""))


def case_of_ranks_the_first_three_that_failed_are_reported_in_their_order(world):
    ends, train = world.program("ends"), world.program("train")
    ranks = "".join(f"{ends} exit fatal & wait $!; echo $!\n" for _ in range(4))
    done = run(world, "sh", "-c", f"{train} --steps 2 >/dev/null\n{ends} exit passed\n{ranks}exit 1")
    pids = [int(line) for line in done.out.split()]
    expect_equal("the status", done.status, 1)
    expect_equal("the number of ranks", len(pids), 4)
    expect("2 more of this run ran out of memory later" in done.err, done.err)
    # The second program failed first, though the run's status is that of others.
    expect_equal("reports", reports(done.err)[1:], pids[:2])
    first, = set(reports(done.err)) - set(pids)
    expect_equal("the first", reports(done.err)[0], first)


def case_a_recording_is_found_below_a_folder_that_the_pattern_names_by_the_job(world):
    world.pattern = os.path.join(world.folder, "%j", "%h-%e", "rec-%p.gpucache")
    os.makedirs(os.path.join(world.folder, "job5", "other"))
    done = run(world, world.program("ends"), "abort", "fatal", SLURM_JOB_ID="job5")
    expect_equal("the number of reports", (done.status, len(reports(done.err))), (-signal.SIGABRT, 1))


def case_a_run_within_a_run_reports_its_own(world):
    inner = " ".join(waiting(world, world.program("ends"), "exit", "fatal"))
    done = run(world, "sh", "-c", inner)
    expect_equal("the status", done.status, 3)
    expect_equal("the number of reports", len(reports(done.err)), 1)


def case_the_failures_of_a_run_are_shown_again_by_its_name(world):
    run(world, world.program("ends"), "exit", "fatal")
    run(world, world.program("ends"), "exit", "fatal")
    one, other = world.recordings()
    setup = world.report("oom", one).out
    name = re.search(r"GPUCACHE_RUN=(\S+)", setup)[1]
    for shown in world.report("oom", f"--run={name}", GPUCACHE_OUTPUT=world.pattern), world.report("oom", f"--run={name}", world.folder):
        expect_equal("what is shown", (shown.out, shown.err), (setup, ""))
    nothing = world.report("oom", "--run=another", world.folder, status=3)
    expect_equal("of another run", (nothing.out, nothing.err), ("", ""))
    for wrong in ("summary", "--run=x"), ("oom", "--run=x", one, other):
        expect("--run" in world.report(*wrong, status=2).err, f"{wrong} is not refused")


def case_the_launcher_refuses_to_wait_where_nothing_is_recorded_or_fit_waits(world):
    for option, word in ("--off", "leave --off out"), ("--fit", "leave --wait out"):
        done = run(world, "ls", options=[option])
        expect(done.status == 2 and word in done.err, f"{option}: {done.err!r}")


# ---- the end ----


def case_the_end_of_the_program_is_the_end_of_the_launcher(world):
    for status in 0, 1, 42, 255:
        expect_equal("the status", run(world, "sh", "-c", f"exit {status}").status, status)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGPIPE, signal.SIGUSR1,
                   signal.SIGRTMIN):
        expect_equal("the end", run(world, "sh", "-c", f"kill -{int(number)} $$").status, -number)
    broken = script(world, "broken", "#!/nowhere/at/all\n")
    os.chmod(broken, 0o755)
    expect_equal("the status of what has no interpreter", run(world, broken).status, 127)
    plain = script(world, "plain", "exit 7\n")
    os.chmod(plain, 0o755)
    expect_equal("the status of a script without a first line", run(world, plain).status, 7)


def case_the_program_finds_what_it_would_find_without_us(world):
    """The mask and what is ignored of signals, descriptors, variables."""
    look = script(world, "look.py", """
import os, re
status = open("/proc/self/status").read()
print(re.findall("^Sig(?:Blk|Ign|Cgt):.*", status, re.M), os.getsid(0), sorted(map(int, os.listdir("/proc/self/fd"))))
print(sorted(item for item in os.environ.items() if item[0] not in ("_", "GPUCACHE_RUN")))
""")
    told = []
    for options in (), ("--wait",):
        command = [installed(world), *options, "--sim", "1GiB", "--", "env", "--ignore-signal=CHLD,HUP", "--block-signal=USR2", *waiting(
            world, sys.executable, "-S", look)]
        if not options:
            command.remove("--wait")
        told.append(start(world, command).communicate())
    expect("SigBlk" in told[0][0], f"nothing is told: {told[0]}")
    expect_equal("with --wait", told[1], told[0])


# ---- signals ----


def case_a_signal_to_the_launcher_or_to_its_group_gets_to_the_program_once(world):
    numbers = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1]
    for send in os.kill, os.killpg:
        child = start(world, waiting(world, *listener(world)), start_new_session=True)
        read_pid(child)
        for number in numbers:
            send(child.pid, number)
            expect_equal("the next line", child.stdout.readline(), f"got {int(number)}\n")
        os.kill(child.pid, signal.SIGWINCH)
        expect_equal("the rest", (got(child), child.wait()), ([], 0))


def has_pending(pid, number):
    masks = re.findall(r"^(?:SigPnd|ShdPnd):\s*(\w+)$", read(f"/proc/{pid}/status"), re.M)
    return any(int(mask, 16) >> (number - 1) & 1 for mask in masks)


def is_taken(launcher, number):
    """Linux makes one signal of two that are pending: the launcher and its witness have taken the one before."""
    children = read(f"/proc/{launcher}/task/{launcher}/children").split()
    return not any(has_pending(pid, number) for pid in (launcher, *children))


def case_what_the_group_and_the_launcher_alone_get_is_told_apart_in_any_order(world):
    child = start(world, waiting(world, *listener(world)), start_new_session=True)
    read_pid(child)
    for send in os.kill, os.killpg, os.killpg, os.kill, os.killpg, os.kill, os.kill:
        send(child.pid, signal.SIGTERM)
        expect_equal("the next line", child.stdout.readline(), f"got {int(signal.SIGTERM)}\n")
        world.until("the signal is taken", lambda: is_taken(child.pid, signal.SIGTERM))
    os.kill(child.pid, signal.SIGWINCH)
    expect_equal("the rest", (got(child), child.wait()), ([], 0))


def case_a_launcher_of_ranks_ends_them_by_their_group(world):
    """As torchrun does: each rank in a session of its own, SIGTERM to the group, then SIGKILL."""
    for number in signal.SIGTERM, signal.SIGKILL:
        child = start(world, waiting(world, "sh", "-c", "sleep 1000 & echo $!; wait"), start_new_session=True)
        pid = int(child.stdout.readline())
        os.killpg(child.pid, number)
        expect_equal("the rest", (child.stdout.read(), child.wait()), ("", -number))
        world.until("the worker of the rank is gone", lambda: is_gone(pid))


def case_timeout_ends_it_as_it_ends_a_program(world):
    """timeout passes SIGTERM on to its child, then to its group."""
    if not shutil.which("timeout"):
        raise Skip("no timeout here")
    for options, number in ((), signal.SIGTERM), (("--foreground",), signal.SIGTERM), (("-s", "INT"), signal.SIGINT):
        command = waiting(world, sys.executable, "-S", "-c", """
import os, signal
signal.signal(signal.SIGINT, signal.SIG_DFL)
print("ready", os.getpid(), flush=True)
signal.pause()""")
        child = start(world, ["timeout", *options, "1000", *command], start_new_session=True)
        read_pid(child)
        os.kill(child.pid, number)
        expect_equal(f"{options}: the rest", (child.stdout.read(), child.wait()), ("", -number))


def case_a_killed_launcher_takes_the_program_along(world):
    child = start(world, waiting(world, *listener(world)))
    pid = read_pid(child)
    pids = [int(word) for word in read(f"/proc/{child.pid}/task/{child.pid}/children").split()]
    expect(pid in pids, f"{pid} is none of {pids}")
    child.kill()
    expect_equal("the rest", (child.stdout.read(), child.stderr.read(), child.wait()), ("", "", -signal.SIGKILL))
    for pid in pids:
        world.until(f"{pid} is gone", lambda pid=pid: is_gone(pid))


def case_a_signal_during_the_report_ends_it_and_the_end_is_the_programs(world):
    instead_of_the_report(world, "echo reporting >&2; exec sleep 1000\n")
    child = start(world, waiting(world, "sh", "-c", "exit 9"), start_new_session=True)
    expect_equal("what is said", child.stderr.readline(), "reporting\n")
    os.kill(child.pid, signal.SIGTERM)
    expect_equal("the end", (child.wait(), child.stderr.read()), (9, ""))


# ---- descriptors ----


def case_who_reads_the_programs_output_learns_of_its_end_before_the_report(world):
    fifo, told = os.path.join(world.folder, "fifo"), os.path.join(world.folder, "told")
    os.mkfifo(fifo)
    instead_of_the_report(world, f"read line <{fifo}; echo \"$@\" >{told}; ls /proc/self/fd; echo on stdout\n")
    ours, theirs = os.pipe()
    child = start(world, waiting(world, "sh", "-c", f"echo hello >&{theirs}; echo hello; exit 5"), stdin=subprocess.PIPE, pass_fds=[theirs])
    os.close(theirs)
    # Each ends, though the report does not begin yet.
    expect_equal("stdout", child.stdout.read(), "hello\n")
    with os.fdopen(ours) as file:
        expect_equal("another pipe", file.read(), "hello\n")
    try:
        child.stdin.write("x" * (1 << 20))
        raise Failed("who writes to its stdin does not learn of its end")
    except BrokenPipeError:
        pass
    with open(fifo, "w", encoding="ascii") as file:
        file.write("go\n")
    expect_equal("stderr", child.stderr.read().split(), ["0", "1", "2", "3", "on", "stdout"])
    expect_equal("the status", child.wait(), 5)
    expect(re.fullmatch(r"oom --run=[0-9a-f-]{36}\n", read(told)), "the report is called otherwise")


def case_a_program_whose_stderr_is_closed_runs_the_same(world):
    waiter = os.path.join(world.build, "gpucache-wait")
    done = world.run(["sh", "-c", f"{waiter} true -- sh -c 'kill -TERM $$' 2>&-; echo $?"], with_us=False)
    expect_equal("what is said", (done.status, done.out), (0, "143\n"))


# ---- a terminal ----


class Terminal:
    """A shell on a terminal of its own, and what it prints."""

    def __init__(self, world, command):
        self.world, self.text = world, ""
        env = world.environment(False, LD_LIBRARY_PATH=None, GPUSIM=None, PS1="$ ", TERM="dumb", HISTFILE=None)
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(world.folder)
            os.execvpe(command[0], command, env)
        world.at_end(self.close)

    def type(self, text):
        os.write(self.fd, text.encode())

    def see(self, pattern):
        """Reads on until the pattern comes; returns its match."""
        end = time.monotonic() + self.world.time_limit()
        while not (found := re.search(pattern, self.text)):
            ready, _, _ = select.select([self.fd], [], [], max(0, end - time.monotonic()))
            expect(ready, f"never seen: {pattern!r}; there is {shorten(self.text)}")
            self.text += os.read(self.fd, 65536).decode(errors="replace").replace("\r", "")
        self.text = self.text[found.end():]
        return found

    def close(self):
        os.close(self.fd)
        for word in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.getsid(int(word)) == self.pid:
                    os.kill(int(word), signal.SIGKILL)
            except ProcessLookupError:
                pass
        os.waitpid(self.pid, 0)


def shell(world):
    if not shutil.which("bash"):
        raise Skip("no bash here")
    return Terminal(world, ["bash", "--norc", "--noprofile", "-i"])


def typed(world, *command):
    return " ".join(f"'{word}'" for word in waiting(world, *command))


def case_ctrl_c_gets_to_the_program_once_and_its_death_to_the_shell(world):
    terminal = shell(world)
    terminal.type(typed(world, *listener(world)) + "\n")
    pid = int(terminal.see(r"ready (\d+)\n")[1])
    terminal.type("\x03")
    terminal.see(r"got 2\b")
    os.kill(pid, signal.SIGWINCH)
    expect(" got" not in terminal.see(r"(?s)(.*)over\n")[1], "it got there twice")
    terminal.type("echo status=$?; " + typed(world, "sh", "-c", "echo up; exec sleep 1000") + "; echo status=$?\n")
    terminal.see(r"status=0\n")
    terminal.see(r"(?m)^up\n")
    terminal.type("\x03")
    terminal.see(r"\$ $")
    terminal.type("echo status=$?\n")
    terminal.see(r"\nstatus=130\n")


def case_ctrl_c_ends_the_loop_of_a_script_around_it(world):
    terminal = shell(world)
    loop = script(world, "loop.sh", f"for i in 1 2 3; do {typed(world, 'sh', '-c', 'echo up; exec sleep 1000')}; echo next; done\n")
    terminal.type(f"bash {loop}; echo status=$?\n")
    terminal.see(r"(?m)^up\n")
    terminal.type("\x03")
    terminal.see(r"\$ $")
    terminal.type("echo status=$?\n")
    expect_equal("behind the loop", terminal.see(r"(?s)(next|status=\d+)\n")[1], "status=130")


def case_ctrl_z_stops_it_and_fg_or_bg_goes_on(world):
    terminal, heard = shell(world), os.path.join(world.folder, "heard")

    def hears(*words):
        """Waits until the listener has said just this.  On the terminal the shell could write in between."""
        text = "".join(f"{word}\n" for word in words)
        world.until(f"it says {words}", lambda: os.path.exists(heard) and re.sub(r"ready \d+", "ready", read(heard)) == text)

    terminal.type(typed(world, *listener(world)) + f" >{heard}\n")
    hears("ready")
    pid = int(read(heard).split()[1])
    terminal.type("\x1a")
    terminal.see(r"Stopped ")
    expect("State:\tT" in read(f"/proc/{pid}/status"), "the program is not stopped")
    terminal.type("fg\n")
    hears("ready", "got 18")
    terminal.type("\x03")
    hears("ready", "got 18", "got 2")
    # Alone it stops, too, and takes the launcher along.
    os.kill(pid, signal.SIGSTOP)
    terminal.see(r"Stopped ")
    terminal.type("bg\n")
    hears("ready", "got 18", "got 2", "got 18")
    terminal.type("kill %1\n")
    hears("ready", "got 18", "got 2", "got 18", "got 15")
    os.kill(pid, signal.SIGWINCH)
    hears("ready", "got 18", "got 2", "got 18", "got 15", "over")
    terminal.type("wait %1; echo status=$?\n")
    terminal.see(r"\nstatus=0\n")


def case_in_the_background_it_stops_when_it_reads_the_terminal_as_a_program_does(world):
    terminal = shell(world)
    terminal.type(typed(world, "sh", "-c", "read line; echo \"read $line\"") + " &\n")
    terminal.see(r"\[1\] \d+\n")
    terminal.type("wait %1\n")
    terminal.see(r"Stopped ")
    terminal.type("fg\n")
    terminal.see(r"read \$line")
    terminal.type("a word\n")
    terminal.see(r"\nread a word\n")


def case_a_shell_runs_in_it_with_jobs_of_its_own(world):
    terminal = shell(world)
    terminal.type("PS1='inner> ' " + typed(world, "bash", "--norc", "--noprofile", "-i") + "\n")
    terminal.see(r"inner> $")
    terminal.type(" ".join(listener(world)) + "\n")
    pid = int(terminal.see(r"ready (\d+)\n")[1])
    terminal.type("\x1a")
    terminal.see(r"Stopped ")
    terminal.see(r"inner> $")
    terminal.type("fg\n")
    terminal.see(r"got 18\b")
    terminal.type("\x03")
    terminal.see(r"got 2\b")
    os.kill(pid, signal.SIGWINCH)
    terminal.see(r"over\b")
    terminal.type("exit 6\n")
    terminal.see(r"\$ $")
    terminal.type("echo status=$?\n")
    terminal.see(r"\nstatus=6\n")


def case_the_end_of_the_terminal_gets_to_a_program_that_leads_its_session(world):
    """Only the leader of a session is told, which is gpucache-wait."""
    heard = os.path.join(world.folder, "heard")
    text = f"trap 'echo HUP >>{heard}; exit' HUP; echo up; while :; do sleep 0.1; done"
    terminal = Terminal(world, waiting(world, "sh", "-c", text))
    terminal.see(r"up\n")
    os.close(terminal.fd)
    terminal.fd = os.open("/dev/null", os.O_RDONLY)
    world.until("the program is told", lambda: os.path.exists(heard))


# ---- process 1 ----


def in_a_container(world, *command):
    """As process 1 of a namespace of processes."""
    probe = subprocess.run(["unshare", "-p", "-f", "--mount-proc", "true"], capture_output=True, check=False) if shutil.which("unshare") else None
    if not probe or probe.returncode:
        raise Skip("no namespaces here")
    return ["unshare", "-p", "-f", "--mount-proc", "--kill-child", *waiting(world, *command)]


ORPHAN = """
import os, sys
ours, theirs = os.pipe()
if os.fork() == 0:
    if os.fork() == 0:
        os.close(ours)
        while os.getppid() != 1: pass
        os.write(theirs, str(os.getpid()).encode())
        os._exit(0)
    os._exit(0)
os.close(theirs)
os.wait()
orphan = int(os.read(ours, 64))
while os.path.exists(f"/proc/{orphan}"): pass
print("reaped", os.getppid(), flush=True)
os.abort()
"""


def case_process_1_reaps_orphans_and_ends_with_the_status_of_the_signal(world):
    child = start(world, in_a_container(world, sys.executable, "-S", script(world, "orphan.py", ORPHAN)))
    out, err = child.communicate(timeout=world.time_limit())
    expect_equal("the end", (child.returncode, out, err), (128 + signal.SIGABRT, "reaped 1\n", ""))


def case_process_1_passes_on_the_signal_that_stops_a_container(world):
    child = start(world, in_a_container(world, "sh", "-c", "trap 'echo got TERM; exit 4' TERM; echo up; while :; do sleep 0.1; done"))
    expect_equal("the first line", child.stdout.readline(), "up\n")
    init, = read(f"/proc/{child.pid}/task/{child.pid}/children").split()
    os.kill(int(init), signal.SIGTERM)
    expect_equal("the rest", (child.stdout.read(), child.wait()), ("got TERM\n", 4))


def case_process_1_reports_what_failed(world):
    child = start(world, in_a_container(world, world.program("ends"), "_exit", "fatal"))
    out, err = child.communicate(timeout=world.time_limit())
    expect_equal("the end", (child.returncode, out, len(reports(err))), (3, "", 1))
