# SPDX-License-Identifier: Apache-2.0
"""Two processes that exchange memory by handle, each with or without us."""
import subprocess

from harness import TIMEOUT_S, Failed, expect, expect_equal

SIM = "memory:1GiB,context:0"
KIB = 1 << 10


class End:
    """A running tests/programs/ipc."""

    def __init__(self, world, with_us, **extra):
        extra.setdefault("sim", SIM)
        env = world.environment(with_us, **extra)
        self.child = subprocess.Popen([world.program("ipc")], env=env, cwd=world.folder, stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        world.children.append(self.child)

    def ask(self, *words):
        """Sends a command; returns the answer, an error included."""
        self.child.stdin.write(" ".join(str(word) for word in words) + "\n")
        self.child.stdin.flush()
        line = self.child.stdout.readline()
        if not line:
            raise Failed(f"{words[0]}: the program is gone: {self.child.stderr.read()}")
        return line.strip()

    def do(self, *words):
        """Sends a command that must succeed; returns the text after "ok"."""
        answer = self.ask(*words)
        if not answer.startswith("ok"):
            raise Failed(f"{' '.join(map(str, words))[:60]}: {answer}")
        return answer[3:]

    def make(self, name, size, byte):
        self.do("alloc", name, size)
        self.do("fill", name, byte)

    def end(self):
        """Ends the process; returns its exit status and stderr."""
        _, err = self.child.communicate(timeout=TIMEOUT_S)
        self.child.stdin = None
        return self.child.returncode, err


def exchange(world, ours_exports, ours_imports, inside):
    """The result of an exchange: "right", or the error of exporter or importer."""
    exporter, importer = End(world, ours_exports), End(world, ours_imports)
    for n in range(4):
        exporter.make(f"block{n}", 256 * KIB, 10 + n)
    n = 2 if inside else 0
    answer = exporter.ask("export", f"block{n}")
    if not answer.startswith("ok"):
        return f"export {answer}"
    answer = importer.ask("open", "it", answer[3:])
    found = f"open {answer}" if answer != "ok" else importer.do("look", "it", 256 * KIB)
    expect(found == str(10 + n) or found.startswith("open error"), f"the importer read wrong data: {found}")
    expect_equal("the importer's exit status", importer.end()[0], 0)
    status, err = exporter.end()
    expect_equal("the exporter's exit status", status, 0)
    expect_equal("lines of the exporter", err.count("\n"), 1 if ours_exports and inside else 0)
    return "right" if found == str(10 + n) else found
