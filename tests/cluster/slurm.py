# SPDX-License-Identifier: Apache-2.0
"""A cluster of Slurm on this host: munge, accounting, controller and one node with four GPUs, in a folder of its own.

Needs root.  The GPUs are device files without a device; the library's simulated GPU is behind them.
"""
import os
import shutil
import socket
import subprocess

from daemons import Daemons, free_ports
from harness import TIMEOUT_S, TOP, Failed, Skip, expect

NEEDED = ("munged", "slurmctld", "slurmd", "slurmdbd", "mariadbd", "mariadb-install-db")
USER = "nobody"
TOOLS = os.path.join(TOP, "tools", "slurm")

SLURM_CONF = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/sock,cred_expire=20
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmdSpoolDir={folder}/slurmd
StateSaveLocation={folder}/state
SlurmctldLogFile={folder}/log/slurmctld
SlurmdLogFile={folder}/log/slurmd
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu
ReturnToService=2
KillWait=2
SchedulerParameters=sched_interval=2
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={ports[2]}
AccountingStoragePass={folder}/munge/sock
AccountingStoreFlags=job_comment
JobSubmitPlugins=lua
TaskProlog={folder}/taskprolog
TaskEpilog={folder}/taskepilog
NodeName={host} NodeAddr=127.0.0.1 CPUs=8 Boards=1 SocketsPerBoard=1 CoresPerSocket=8 ThreadsPerCore=1 Gres=gpu:4 State=UNKNOWN
PartitionName=gpu Nodes=ALL OverSubscribe=FORCE:8 State=UP
PartitionName=plain Nodes=ALL Default=YES OverSubscribe=FORCE:8 State=UP
"""

DBD_CONF = """
AuthType=auth/munge
AuthInfo=socket={folder}/munge/sock
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={ports[2]}
SlurmUser=root
LogFile={folder}/log/slurmdbd
PidFile={folder}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={ports[3]}
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm
"""

# What a site writes: docs/user/CONTAINERS.md shows it.
PROLOG = "#!/bin/sh\nexport GPUCACHE_PARTITIONS=gpu GPUCACHE_FOLDER={folder}/recordings\nexec {tools}/taskprolog\n"
EPILOG = """#!/bin/sh
export GPUCACHE_FOLDER={folder}/recordings GPUCACHE_SPOOL={folder}/verdicts
echo began >>{folder}/epilogs/$SLURM_JOB_ID
began=$(date +%s%N)
{tools}/taskepilog
echo $? $((($(date +%s%N) - began) / 1000000)) >>{folder}/epilogs/$SLURM_JOB_ID
"""


def run(*command, check=True, env=None, **more):
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=TIMEOUT_S, check=False, env=env, **more)
    if check and done.returncode != 0:
        raise Failed(f"{' '.join(command)} ended with {done.returncode}: {done.stdout[-500:]}{done.stderr[-500:]}")
    return done


class Slurm(Daemons):
    def __init__(self, world):
        missing = [name for name in NEEDED if not shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")]
        if missing or os.geteuid() != 0:
            raise Skip("needs root" if not missing else f"there is no {', '.join(missing)} here: Debian's slurm-wlm, munge, slurmdbd, "
                       "mariadb-server")
        files = os.path.join(TOP, "tests", "programs", "train.py"), os.path.join(world.build, "libgpucache.so")
        if run("runuser", "-u", USER, "--", "test", "-r", files[0], "-a", "-r", files[1], check=False).returncode:
            raise Skip(f"jobs run as {USER}, who may not read {TOP}: a clone elsewhere is needed")
        super().__init__(world, {"PATH": os.environ["PATH"] + ":/usr/sbin:/sbin", "SLURM_CONF": world.folder + "/slurm.conf", "LANG": "C.UTF-8",
                                 "HOME": world.folder})
        self.host, self.ports = socket.gethostname().split(".")[0], free_ports(4)
        values = {"folder": self.folder, "host": self.host, "tools": TOOLS, "ports": self.ports}
        os.chmod(self.folder, 0o755)
        for name in ("munge", "db", "state", "slurmd", "dev", "jobs", "recordings", "verdicts", "epilogs"):
            os.mkdir(os.path.join(self.folder, name))
            os.chmod(os.path.join(self.folder, name), 0o1777 if name in ("jobs", "recordings", "verdicts", "epilogs") else 0o755)
        for number in range(4):
            os.mknod(f"{self.folder}/dev/nvidia{number}", 0o20666, os.makedev(1, 3))
        self.write("slurm.conf", SLURM_CONF.format(**values))
        self.write("slurmdbd.conf", DBD_CONF.format(**values), 0o600)
        self.write("gres.conf", f"NodeName={self.host} Name=gpu File={self.folder}/dev/nvidia[0-3]\n")
        self.write("taskprolog", PROLOG.format(**values), 0o755)
        self.write("taskepilog", EPILOG.format(**values), 0o755)
        shutil.copy(os.path.join(TOOLS, "job_submit.lua"), self.folder)
        self.start()

    def start(self):
        folder, ports = self.folder, self.ports
        with open(folder + "/munge/key", "wb") as file:
            file.write(os.urandom(1024))
        os.chmod(file.name, 0o400)
        for name in ("munge", "munge/key"):
            shutil.chown(os.path.join(folder, name), "munge", "munge")
        os.chmod(folder + "/munge", 0o711)
        self.daemon("munged", "runuser", "-u", "munge", "--", "munged", "--foreground", f"--key-file={folder}/munge/key",
                    f"--socket={folder}/munge/sock", f"--pid-file={folder}/munge/pid", f"--log-file={folder}/munge/log",
                    f"--seed-file={folder}/munge/seed", "--force")
        shutil.chown(folder + "/db", "mysql")
        run("mariadb-install-db", "--no-defaults", "--user=mysql", f"--datadir={folder}/db", "--auth-root-authentication-method=normal")
        self.daemon("mariadbd", "mariadbd", "--no-defaults", "--user=mysql", f"--datadir={folder}/db", f"--socket={folder}/db/sock",
                    f"--port={ports[3]}", "--bind-address=127.0.0.1", f"--pid-file={folder}/db/pid", "--skip-name-resolve")
        sql = ["mariadb", "--no-defaults", "-S", folder + "/db/sock", "-e"]
        self.until("the database", lambda: run(*sql, "select 1", check=False).returncode == 0)
        run(*sql, "create user slurm@'127.0.0.1' identified by 'slurm'; grant all on slurm.* to slurm@'127.0.0.1'")
        self.until("munge", lambda: os.path.exists(folder + "/munge/sock"))
        self.daemon("slurmdbd", "slurmdbd", "-D")
        self.until("the accounting", lambda: run("sacctmgr", "-n", "show", "cluster", env=self.env, check=False).returncode == 0)
        run("sacctmgr", "-i", "add", "cluster", "test", env=self.env, check=False)
        self.daemon("slurmctld", "slurmctld", "-D", "-f", folder + "/slurm.conf")
        self.daemon("slurmd", "slurmd", "-D", "-f", folder + "/slurm.conf")
        self.until("an idle node", lambda: "idle" in run("sinfo", "-h", "-o", "%T", env=self.env, check=False).stdout)

    def command(self, *command, check=True, user=USER, **variables):
        """Runs a command of Slurm as a user without rights, in the folder `jobs`."""
        env = {**self.env, "LD_LIBRARY_PATH": self.world.library_path, "GPUSIM": "memory:2GiB,context:100MiB,devices:4", **variables}
        return run("runuser", "-u", user, "--", *command, env=env, cwd=self.folder + "/jobs", check=check)

    def batch(self, script, *options, user=USER, **variables):
        """Submits a script, waits for its end, and returns its number and what it wrote."""
        path = self.write("jobs/script", "#!/bin/sh\n" + script + "\n")
        job = self.command("sbatch", "--parsable", "-o", "%A.out", *options, path, user=user, **variables).stdout.strip()
        self.ended(job)
        return job, self.read(f"jobs/{job}.out")

    def ended(self, job):
        self.until(f"the end of job {job}", lambda: not run("squeue", "-h", "-j", job, env=self.env, check=False).stdout.strip())
        self.until(f"job {job} in the accounting", lambda: (rows := self.account(job, "End,Partition").splitlines()) and all(
            not row.startswith("Unknown") and not row.endswith("|") for row in rows))

    def account(self, job, fields):
        return run("sacct", "-n", "-P", "-X", "-a", "-j", job, "-o", fields, env=self.env).stdout

    def read(self, name):
        with open(os.path.join(self.folder, name), encoding="utf-8", errors="replace") as file:
            return file.read()

    def verdicts(self):
        return sorted(os.listdir(self.folder + "/verdicts"))

    def left(self):
        """The folders of steps that have recordings."""
        base = os.path.join(self.folder, "recordings")
        return sorted(step for user in os.listdir(base) for step in os.listdir(os.path.join(base, user)))

    def epilogs(self, job):
        """The milliseconds of a job's epilogs; each has ended with 0.  Slurm kills one that takes too long."""
        def rows():
            lines = self.read("epilogs/" + job).splitlines()
            return len(lines) == 2 * lines.count("began") and [tuple(map(int, line.split())) for line in lines if line != "began"]

        found = self.until(f"the end of each epilog of job {job}", rows)
        expect(all(status == 0 for status, _ in found), f"an epilog failed: {found}")
        return [ms for _, ms in found]
