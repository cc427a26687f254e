# SPDX-License-Identifier: Apache-2.0
"""Drives headless Chromium by its debugging pipe: opens, queries, clicks and photographs a page.

Uses only Python's standard library: messages are NUL-terminated JSON on file descriptors 3 and 4 of the browser.
"""
import base64
import fcntl
import json
import os
import select
import shutil
import signal
import time

NAMES = ("chromium", "chromium-browser", "google-chrome")

# Only to end a hang: a busy machine may take long.
TIMEOUT_S = 120


def find():
    """The browser's path, or None."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """One browser with one page."""

    def __init__(self, path, folder):
        to_read, self.out = os.pipe()
        self.incoming, from_write = os.pipe()
        self.buffer = b""
        self.number = 0
        self.problems = []
        arguments = [path, "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                     "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions", "--disable-background-networking",
                     "--user-data-dir=" + os.path.join(folder, "profile"), "about:blank"]
        # Move both ends away from 3 and 4, so that neither dup2 overwrites the other.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (to_read, from_write)]
        quiet = os.open(os.devnull, os.O_RDWR)
        self.pid = os.posix_spawn(path, arguments, os.environ, setsid=True, file_actions=[
            *((os.POSIX_SPAWN_DUP2, quiet, fd) for fd in (0, 1, 2)),
            *((os.POSIX_SPAWN_DUP2, end, 3 + i) for i, end in enumerate(ends))])
        for fd in (to_read, from_write, quiet, *ends):
            os.close(fd)
        self.session = None
        targets = self.ask("Target.getTargets")["targetInfos"]
        target = next(one["targetId"] for one in targets if one["type"] == "page")
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.ask(domain + ".enable")

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.out)
        os.close(self.incoming)

    def read(self):
        """Reads the next message; records the page's errors and network requests."""
        end = time.monotonic() + TIMEOUT_S
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.incoming], [], [], max(0, end - time.monotonic()))
            data = os.read(self.incoming, 1 << 20) if ready else b""
            if not data:
                raise RuntimeError("the browser says nothing")
            self.buffer += data
        text, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(text)
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.problems.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.problems.append(str(params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.problems.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent" and not params["request"]["url"].startswith(("file:", "data:", "about:")):
            self.problems.append("it asked the network for " + params["request"]["url"])
        return message

    def ask(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def size(self, width, height, theme="light"):
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])

    def open(self, path):
        """Seconds until the page was ready and drawn."""
        start = time.monotonic()
        self.ask("Page.navigate", url="file://" + os.path.abspath(path))
        while self.run("document.documentElement && document.documentElement.dataset.ready || ''") != "yes":
            if time.monotonic() > start + TIMEOUT_S:
                raise RuntimeError(f"the page is not ready: {self.problems}")
            time.sleep(0.02)
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return time.monotonic() - start

    def run(self, expression):
        """The value of a JavaScript expression, passed as JSON."""
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"].get("exception", {}).get("description", str(answer)))
        return answer["result"].get("value")

    def click(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)

    def drag(self, x, y, to_x):
        self.ask("Input.dispatchMouseEvent", type="mousePressed", x=x, y=y, button="left", buttons=1, clickCount=1)
        for part in range(1, 6):
            self.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x + (to_x - x) * part / 5, y=y, button="left", buttons=1)
        self.ask("Input.dispatchMouseEvent", type="mouseReleased", x=to_x, y=y, button="left", buttons=1, clickCount=1)

    def key(self, key, text=None):
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, **({"text": text} if text and kind == "keyDown" else {}))

    def screenshot(self, path, whole=True):
        data = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        with open(path, "wb") as file:
            file.write(base64.b64decode(data["data"]))
