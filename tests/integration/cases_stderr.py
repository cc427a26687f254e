# SPDX-License-Identifier: Apache-2.0
"""Standard error in every state: our lines reach its reader, end or hang no program, and enter no data file."""
import fcntl
import os
import pty
import re
import socket
import subprocess
import sys

from harness import TOP, expect, expect_equal

TALK = "oom_report:always,leak_report:on,bogus:1"
OUT = "malloc: 2\nmalloc: 0\nend\n"
# The lines that TALK causes: a warning, a report, a line at the end.
WORDS = ("bogus", "OUT OF MEMORY", "not freed")


def command(world, mode):
    return [world.program("stderr"), mode]


def run(world, words, conf=TALK, **extra):
    """Runs with this stderr, or another change at the start; the program must not notice our lines."""
    done = subprocess.run(words, env=world.environment(True, GPUCACHE_CONF=conf), cwd=world.folder, check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, timeout=world.time_limit(), **extra)
    expect_equal("the run", (done.returncode, done.stdout), (0, OUT))
    expect_equal("the state of the recording", world.state(), "ended")
    world.forget_recordings()


def expect_said(text, where):
    for word in WORDS:
        expect(word in text, f"{where}: {word!r} is not in {text!r}")


def full_pipe():
    """Both ends of a full pipe."""
    reader, writer = os.pipe()
    flags = fcntl.fcntl(writer, fcntl.F_GETFL)
    fcntl.fcntl(writer, fcntl.F_SETFL, flags | os.O_NONBLOCK)
    try:
        while True:
            os.write(writer, b"x" * 4096)
    except BlockingIOError:
        pass
    fcntl.fcntl(writer, fcntl.F_SETFL, flags)
    return reader, writer


def case_a_pipe_whose_reader_has_gone_ends_nobody(world):
    reader, writer = os.pipe()
    os.close(reader)
    run(world, command(world, "asis"), stderr=writer)
    os.close(writer)


def case_a_full_pipe_that_nobody_reads_hangs_nobody(world):
    reader, writer = full_pipe()
    run(world, command(world, "asis"), stderr=writer)
    os.close(reader)
    os.close(writer)


def case_the_table_of_options_ends_well_without_a_reader_and_in_a_full_pipe(world):
    gone, writer = os.pipe()
    os.close(gone)
    reader, full = full_pipe()
    for end in (writer, full):
        done = subprocess.run(command(world, "asis"), env=world.environment(True, GPUCACHE_CONF="help:true"), check=False,
                              stdout=subprocess.DEVNULL, stderr=end, timeout=world.time_limit())
        expect_equal("the exit status", done.returncode, 0)
        os.close(end)
    os.close(reader)


def case_a_socket_that_nobody_reads_hangs_nobody_and_one_that_is_read_gets_all(world):
    """A stream socket of AF_UNIX, like the journal's."""
    ours, theirs = socket.socketpair()
    run(world, command(world, "asis"), stderr=theirs.fileno())
    expect_said(ours.recv(65536).decode(), "the socket")
    theirs.setblocking(False)
    try:
        while True:
            theirs.send(b"x" * 4096)
    except BlockingIOError:
        pass
    theirs.setblocking(True)
    run(world, command(world, "asis"), stderr=theirs.fileno())
    ours.close()
    run(world, command(world, "asis"), stderr=theirs.fileno())
    theirs.close()


def case_a_terminal_gets_all_and_one_that_nobody_reads_hangs_nobody(world):
    master, terminal = pty.openpty()
    run(world, command(world, "asis"), stderr=terminal)
    expect_said(os.read(master, 65536).decode(), "the terminal")
    os.set_blocking(terminal, False)
    try:
        while True:
            os.write(terminal, b"x" * 1000)
    except BlockingIOError:
        pass
    os.set_blocking(terminal, True)
    run(world, command(world, "asis"), stderr=terminal)
    os.close(terminal)
    os.close(master)


def case_a_data_file_that_got_the_number_of_stderr_is_not_written(world):
    """Closed at the start, or by the program; a database, or a file of results."""
    path = os.path.join(world.folder, "file")
    closed = ["/bin/sh", "-c", 'exec "$@" 2>&-', "sh"]
    for mode, content in (("data", "0123456789"), ("output", "")):
        for start in ([], closed):
            run(world, [*start, *command(world, mode)], stderr=subprocess.DEVNULL)
            with open(path, encoding="ascii") as file:
                expect_equal(f"the {mode} file after {start[:1]}", file.read(), content)
            os.unlink(path)


def case_a_program_started_without_stderr_runs_in_silence(world):
    run(world, ["/bin/sh", "-c", 'exec "$@" 2>&-', "sh", *command(world, "asis")])
    run(world, ["/bin/sh", "-c", 'exec "$@" <&- 2>&-', "sh", *command(world, "asis")])


def case_a_log_that_the_program_puts_over_stderr_gets_all(world):
    path = os.path.join(world.folder, "file")
    for mode in ("append", "dup2", "freopen"):
        run(world, command(world, mode), stderr=subprocess.DEVNULL)
        with open(path, encoding="ascii") as file:
            expect_said(file.read(), mode)
        os.unlink(path)


def case_files_and_pipes_from_the_start_get_all(world):
    """2>file, 2>>file, 2>&1, nohup, and a pipe with a slow reader."""
    path = os.path.join(world.folder, "file")
    for mode in ("w", "a", "r+"):
        with open(path, "w" if mode != "r+" else "w+", encoding="ascii"):
            pass
        with open(path, mode, encoding="ascii") as file:
            run(world, command(world, "asis"), stderr=file)
        with open(path, encoding="ascii") as file:
            expect_said(file.read(), mode)
        os.unlink(path)
    run(world, ["nohup", *command(world, "asis")], stderr=subprocess.DEVNULL)
    done = world.run(command(world, "asis"), GPUCACHE_CONF=TALK)
    expect_said(done.err, "a pipe")
    done = subprocess.run(command(world, "asis"), env=world.environment(True, GPUCACHE_CONF=TALK), check=True, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=world.time_limit())
    expect_said(done.stdout, "2>&1")


# Redirects descriptor 2 as Python programs do, then requests too much memory; prints why if the redirection fails.
PYTHON = """
import ctypes, os, sys
{redirect}
cudart = ctypes.CDLL("libcudart.so.13")
pointer = ctypes.c_void_p()
print("malloc:", cudart.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(1 << 46)))
print("malloc:", cudart.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(1000)))
print("end")
"""


def case_python_redirects_stderr_and_keeps_its_data_files(world):
    path = os.path.join(world.folder, "file")
    log = "log = open('file', 'w'); os.dup2(log.fileno(), 2)"
    daemon = "log = os.open('file', os.O_RDWR | os.O_CREAT | os.O_APPEND); os.dup2(log, 2); os.close(log)"
    data = "os.close(2); data = open('file', 'wb', buffering=0); assert data.fileno() == 2; data.write(b'0123456789')"
    for redirect, is_log in ((log, True), (daemon, True), (data, False)):
        run(world, [sys.executable, "-c", PYTHON.format(redirect=redirect)], stderr=subprocess.DEVNULL)
        with open(path, encoding="ascii") as file:
            text = file.read()
        if is_log:
            expect_said(text, redirect)
        else:
            expect_equal("the data file", text, "0123456789")
        os.unlink(path)


def case_frees_that_the_driver_refuses_are_told_with_their_line(world):
    """It frees an address behind a header, as a wrapper might that has forgotten to go back."""
    code = """import ctypes
from train import load_runtime
lib, p = load_runtime(), ctypes.c_void_p()
def get():
    while lib.cudaMalloc(ctypes.byref(p), (4 << 20) + 256) == 0:
        lib.FREE(ctypes.c_void_p(p.value + OFFSET), None)
        if OFFSET == 0: break
get()
raise SystemExit(1)
"""
    for offset, free, is_told in ((256, "cudaFree", True), (256, "cudaFreeAsync", True), (0, "cudaFree", False)):
        done = world.run([sys.executable, "-B", "-c", code.replace("OFFSET", str(offset)).replace("FREE", free)], sim="memory:1GiB,context:50MiB",
                         PYTHONPATH=os.path.join(TOP, "tests", "programs"))
        expect_equal("the exit status", done.status, 1)
        text = " ".join(done.err.split())
        expect_equal("told", bool(re.search(r"WHY growth .* TRY look at what cudaFree returns: the driver refused \d\d+ frees, the first by get", text)), is_told)
