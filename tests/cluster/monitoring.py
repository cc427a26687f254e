# SPDX-License-Identifier: Apache-2.0
"""node_exporter, Prometheus and Alertmanager of Debian on ports of their own, with the rules of docs/user/fleet, and one that is told.

The rules' minutes are seconds here, so that they fire within a minute; promtool tests them as they are (tests/fleet).
"""
import http.server
import json
import os
import re
import shutil
import threading
import urllib.parse
import urllib.request

from daemons import Daemons, free_ports
from harness import TIMEOUT_S, TOP, Skip

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


class Monitoring(Daemons):
    def __init__(self, world):
        missing = [name for name in NEEDED if not shutil.which(name)]
        if missing:
            raise Skip(f"there is no {', '.join(missing)} here: Debian's prometheus, prometheus-alertmanager, prometheus-node-exporter")
        self.alerts, self.ports = [], free_ports(3)
        self.server = http.server.HTTPServer(("127.0.0.1", 0), self.handler())
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        super().__init__(world)
        self.textfiles = self.folder + "/textfile"
        os.mkdir(self.textfiles)
        values = {"folder": self.folder, "ports": self.ports, "told": self.server.server_address[1]}
        with open(os.path.join(TOP, "docs", "user", "fleet", "alerts.yml"), encoding="utf-8") as file:
            self.write("alerts.yml", in_seconds(file.read()))
        self.write("prometheus.yml", PROMETHEUS.format(**values))
        self.write("alertmanager.yml", ALERTMANAGER.format(**values))
        self.daemon("exporter", "prometheus-node-exporter", "--collector.disable-defaults", "--collector.textfile",
                    f"--web.listen-address=127.0.0.1:{self.ports[0]}", "--collector.textfile.directory=" + self.textfiles)
        self.daemon("alertmanager", "prometheus-alertmanager", "--config.file=alertmanager.yml", "--storage.path=am", "--cluster.listen-address=",
                    f"--web.listen-address=127.0.0.1:{self.ports[2]}")
        self.daemon("prometheus", "prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=tsdb",
                    f"--web.listen-address=127.0.0.1:{self.ports[1]}")
        self.daemon("watch", os.path.join(world.build, "gpumem-report"), "export", "--format=prometheus", "--watch=1s", "-o",
                    self.textfiles + "/gpucache.prom", self.folder)
        self.until("a scrape", lambda: self.query("up") == [({}, 1.0)])

    def stop(self):
        super().stop()
        self.server.shutdown()

    def said(self):
        return f"alerts: {[(one['status'], one['labels']) for one in self.alerts]}\n" + super().said()

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
        """[(labels without the name and those of the scrape, value)]"""
        url = f"http://127.0.0.1:{self.ports[1]}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
        try:
            with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
                found = json.load(answer)["data"]["result"]
        except OSError:
            return []
        return [({key: value for key, value in one["metric"].items() if key not in ("__name__", "instance", "job")}, float(one["value"][1]))
                for one in found]

    def told(self, name, pid, status="firing"):
        """Waits until the receiver was told of an alert of a process; returns the alert."""
        return self.until(f"{name} of {pid} {status}", lambda: next(
            (one for one in self.alerts if one["status"] == status and one["labels"]["alertname"] == name and one["labels"].get("pid") == str(pid)),
            None))
