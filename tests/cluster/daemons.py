# SPDX-License-Identifier: Apache-2.0
"""Daemons that run in the folder of a world until its end."""
import contextlib
import os
import signal
import socket
import subprocess

from harness import Failed


def free_ports(n):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(n)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


class Daemons:
    def __init__(self, world, env=None):
        self.world, self.folder, self.env, self.children = world, world.folder, env, []
        os.mkdir(self.folder + "/log")
        world.at_end(self.stop)

    def write(self, name, text, mode=0o644):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def daemon(self, name, *command):
        with open(f"{self.folder}/log/{name}.out", "wb") as out:
            self.children.append(subprocess.Popen(command, cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                                  start_new_session=True))

    def until(self, what, function):
        try:
            return self.world.until(what, function)
        except Failed as never:
            raise Failed(f"{never}\n{self.said()}") from never

    def said(self):
        """For a look when something never came: the ends of the logs."""
        return subprocess.run("tail -n 5 log/*", shell=True, cwd=self.folder, capture_output=True, text=True, errors="replace", check=False).stdout

    def stop(self):
        for child in reversed(self.children):
            child.send_signal(signal.SIGTERM)
            try:
                child.wait(20)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
