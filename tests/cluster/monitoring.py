# SPDX-License-Identifier: Apache-2.0
"""node_exporter, Prometheus and Alertmanager of Debian on ports of their own, with the rules of docs/fleet, and one that is told.

The rules' minutes are seconds here, so that they fire within a minute; promtool tests them as they are (tests/fleet).
"""
import http.server
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.parse
import urllib.request

from harness import TIMEOUT_S, TOP, Failed, Skip

NEEDED = ("prometheus", "prometheus-alertmanager", "prometheus-node-exporter", "promtool", "amtool")

PROMETHEUS = """
global: {{ scrape_interval: 1s, evaluation_interval: 1s }}
rule_files: [ {folder}/alerts.yml ]
scrape_configs:
  - job_name: node
    static_configs: [ {{ targets: [ "127.0.0.1:{ports[0]}" ] }} ]
alerting:
  alertmanagers:
    - static_configs: [ {{ targets: [ "127.0.0.1:{ports[2]}" ] }} ]
"""

ALERTMANAGER = """
route: {{ receiver: test, group_by: [ alertname, pid ], group_wait: 0s, group_interval: 1s }}
receivers:
  - name: test
    webhook_configs: [ {{ url: "http://127.0.0.1:{told}/", send_resolved: true }} ]
"""


def in_seconds(rules):
    """The rules with seconds for minutes: "full within 30 minutes" is 30 seconds."""
    return re.sub(r"\b1800 \*", "30 *", re.sub(r"\b(\d+)m\b", r"\1s", rules))


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Monitoring:
    def __init__(self, world):
        missing = [name for name in NEEDED if not shutil.which(name)]
        if missing:
            raise Skip(f"there is no {', '.join(missing)} here: Debian's prometheus, prometheus-alertmanager, prometheus-node-exporter")
        self.world, self.folder, self.children, self.alerts = world, world.folder, [], []
        self.ports = [free_port() for _ in range(3)]
        self.textfiles = self.folder + "/textfile"
        os.mkdir(self.textfiles)
        self.server = http.server.HTTPServer(("127.0.0.1", 0), self.handler())
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        values = {"folder": self.folder, "ports": self.ports, "told": self.server.server_address[1]}
        with open(os.path.join(TOP, "docs", "fleet", "alerts.yml"), encoding="utf-8") as file:
            self.write("alerts.yml", in_seconds(file.read()))
        self.write("prometheus.yml", PROMETHEUS.format(**values))
        self.write("alertmanager.yml", ALERTMANAGER.format(**values))
        world.at_end(self.stop)
        self.daemon("prometheus-node-exporter", "--collector.disable-defaults", "--collector.textfile", f"--web.listen-address=127.0.0.1:{self.ports[0]}",
                    "--collector.textfile.directory=" + self.textfiles)
        self.daemon("prometheus-alertmanager", "--config.file=alertmanager.yml", "--storage.path=am", "--cluster.listen-address=",
                    f"--web.listen-address=127.0.0.1:{self.ports[2]}")
        self.daemon("prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=tsdb", f"--web.listen-address=127.0.0.1:{self.ports[1]}")
        self.daemon(os.path.join(world.build, "gpumem-report"), "export", "--format=prometheus", "--watch=1s", "-o", self.textfiles + "/gpucache.prom",
                    self.folder)
        self.until("a scrape", lambda: self.query("up") == [({"job": "node"}, 1.0)])

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def daemon(self, *command):
        with open(f"{self.folder}/{os.path.basename(command[0])}.log", "wb") as log:
            self.children.append(subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    def stop(self):
        for child in self.children:
            child.send_signal(signal.SIGTERM)
            try:
                child.wait(20)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        self.server.shutdown()

    def handler(self):
        alerts = self.alerts

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                alerts.extend(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["alerts"])
                self.send_response(200)
                self.end_headers()

            def log_message(self, *arguments):
                pass

        return Handler

    def query(self, expression):
        """[(labels without the scrape's own, value)]"""
        url = f"http://127.0.0.1:{self.ports[1]}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
        try:
            with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
                found = json.load(answer)["data"]["result"]
        except OSError:
            return []
        return [({key: value for key, value in one["metric"].items() if key not in ("__name__", "instance")}, float(one["value"][1])) for one in found]

    def until(self, what, function):
        end = time.monotonic() + TIMEOUT_S
        while time.monotonic() < end:
            answer = function()
            if answer:
                return answer
            time.sleep(0.2)
        raise Failed(f"{what}: never. Alerts: {[(one['status'], one['labels']) for one in self.alerts]}")

    def told(self, name, pid, status="firing"):
        """Waits until the receiver was told of an alert of a process; returns the alert."""
        return self.until(f"{name} of {pid} {status}", lambda: next(
            (one for one in self.alerts if one["status"] == status and one["labels"]["alertname"] == name and one["labels"].get("pid") == str(pid)),
            None))
