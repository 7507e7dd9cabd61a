#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""contrib/fleet/pools.sbatch under a real Slurm: a controller and two nodes, each on a host of its own (hosts.py). Called
with BUILD_FOLDER MODEL. Skipped where Slurm is missing (Debian: slurmctld slurmd slurm-client munge)."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent / "gateway"))

import hosts  # noqa: E402

TOOLS = ("slurmctld", "slurmd", "sbatch", "scancel", "munged")
for tool in TOOLS:
    if not shutil.which(tool, path=hosts.tools()):
        hosts.skip(f"no {tool} here (Debian: slurmctld slurmd slurm-client munge)")
hosts.enter()

from fleet import key_of  # noqa: E402
from pool import BUILD, MODEL, until  # noqa: E402

SBATCH = FOLDER.parents[2] / "contrib/fleet/pools.sbatch"
CONF = """ClusterName=quern
SlurmctldHost=ctl({here})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmdPidFile={folder}/%n.pid
SlurmctldPidFile={folder}/ctl.pid
SlurmctldLogFile={folder}/ctl.log
SlurmdLogFile={folder}/%n.log
KillWait=30
ReturnToService=2
MailProg=/bin/true
{nodes}
PartitionName=pools Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class Slurm:
    def __init__(self, folder, n):
        self.folder = folder
        hosts.build_bridge()
        self.hosts = [hosts.Host(f"n{i}", f"10.77.0.{i}") for i in range(1, n + 1)]
        nodes = "\n".join(f"NodeName={host.name} NodeAddr={host.address} NodeHostname={host.name} Port={17000 + i} CPUs=1 "
                          "RealMemory=500" for i, host in enumerate(self.hosts))
        (folder / "slurm.conf").write_text(CONF.format(here=hosts.HERE, folder=folder, nodes=nodes))
        names = "".join(f"{host.address} {host.name}\n" for host in self.hosts)
        (folder / "hosts").write_text(f"127.0.0.1 localhost\n{hosts.HERE} ctl\n{names}")
        hosts.sh(f"mount --bind {folder}/hosts /etc/hosts; mkdir -p {folder}/state {folder}/spool")
        os.environ.update(SLURM_CONF=str(folder / "slurm.conf"), USER="root", TMPDIR=str(folder), PATH=f"{BUILD.resolve()}:{os.environ['PATH']}")
        self.programs = []
        self.begin_munge()
        self.begin("ctl", "slurmctld", "-D")
        for host in self.hosts:
            self.begin(host.name, *host.within, "slurmd", "-D", "-N", host.name)
        until(lambda: self.ask("sinfo", "-h", "-o", "%t %D") == f"idle {n}", "the nodes are idle")

    def begin(self, hostname, *command):
        with open(self.folder / "said.log", "ab") as log:
            self.programs.append(subprocess.Popen(
                ["unshare", "-u", "sh", "-c", f'hostname {hostname}; exec "$@"', "sh", *command], stdout=log, stderr=log))

    def begin_munge(self):
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        self.begin("ctl", "munged", "-F", "--force", *(f"--{what}={self.folder}/munge.{end}" for what, end in (
            ("key-file", "key"), ("socket", "socket"), ("pid-file", "pid"), ("seed-file", "seed"), ("log-file", "log"))))
        until((self.folder / "munge.socket").exists, "munge listens")

    def ask(self, *command):
        said = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=self.folder)
        return said.stdout.strip() if said.returncode == 0 else said.stderr

    def members(self):
        return sorted(path.name for path in (self.folder / "fleet").glob("pool-*"))

    def file(self, name):
        try:
            return (self.folder / "fleet" / name).read_text()
        except FileNotFoundError:
            return ""

    def status(self):
        return self.ask("quern", "status", "--fleet", "fleet", "--client-key", "door.cert_secret")

    def end(self):
        for program in reversed(self.programs):
            program.terminate()
            try:
                program.wait(20)
            except subprocess.TimeoutExpired:
                program.kill()


def check(slurm):
    subprocess.run([str(BUILD / "quern"), "keys", "--client", "door", str(slurm.folder / "clients")], check=True,
                   capture_output=True)
    shutil.move(slurm.folder / "clients/door.cert_secret", slurm.folder)
    shutil.copy(slurm.folder / "clients/door.cert", slurm.folder)
    job = slurm.ask("sbatch", "--parsable", "--array=1-2", str(SBATCH), str(pathlib.Path(MODEL).resolve()))
    until(lambda: slurm.members() == ["pool-1", "pool-2"], f"both tasks of job {job} are members")
    file = slurm.file("pool-1")
    assert key_of(slurm.folder / "keys/pool-1") in file and "tcp://n" in file, file
    said = slurm.status()
    assert said.count("ready") == 2, said
    print(said)
    slurm.ask("scancel", f"{job}_1")
    until(lambda: slurm.members() == ["pool-2"], "a task that is cancelled takes its file away")
    until(lambda: "draining:" in (slurm.folder / f"quern-{job}_1.log").read_text(), "it finishes what runs")
    slurm.ask("scancel", "--full", "--signal=TERM", f"{job}_2")
    until(lambda: slurm.members() == [], "so does one that gets SIGTERM")
    until(lambda: slurm.ask("squeue", "-h") == "", "no task is left")


def check_requeue(slurm):
    """A node dies with its pool: Slurm runs the task again on the other one, whose pool replaces the file."""
    job = slurm.ask("sbatch", "--parsable", "--array=7-7", str(SBATCH), str(pathlib.Path(MODEL).resolve()))
    until(lambda: slurm.members() == ["pool-7"], f"job {job} is a member")
    lost = next(host for host in slurm.hosts if f"tcp://{host.name}:" in slurm.file("pool-7"))
    left, = set(slurm.hosts) - {lost}
    lost.kill_all()
    assert slurm.members() == ["pool-7"], "a pool that is killed leaves its file"
    slurm.ask("scontrol", "update", f"nodename={lost.name}", "state=down", "reason=died")
    until(lambda: "PENDING" in slurm.ask("squeue", "-h", "-o", "%T"), "the task waits to run again")
    # Slurm itself waits some two minutes first.
    until(lambda: slurm.ask("scontrol", "update", f"jobid={job}_7", "starttime=now") == "", "it need not wait")
    until(lambda: f"tcp://{left.name}:" in slurm.file("pool-7"), "the task's new pool replaces the file")
    until(lambda: slurm.status().count("ready") == 1, "and serves")
    print(slurm.status())
    slurm.ask("scancel", f"{job}_7")
    until(lambda: slurm.members() == [], "the file goes with it")


def main():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="quern-slurm-"))
    try:
        slurm = Slurm(folder, 2)
        check(slurm)
        check_requeue(slurm)
        slurm.end()
    except AssertionError:
        for log in folder.glob("*.log"):
            print(log.name, log.read_text(errors="replace")[-3000:], sep="\n", file=sys.stderr)
        raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
