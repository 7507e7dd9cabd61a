#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""quern serve --member: the file of a pool in its fleet's folder."""

import os
import signal
import subprocess

import fleet
from pool import BUILD, MODEL, WAIT, free_ports, main, until


class Member(fleet.Base):
    def null_pool(self, name):
        return self.pool(name, "--device", "null", "--ctx", "1000000", "--frame-us", "0")

    def run_long(self, pool):
        return subprocess.Popen([str(BUILD / "quern"), "run", "x", "--max-tokens", "900000",
                                 "--connect", str(pool.home / "run")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def test_the_file_is_there_while_the_pool_takes_work(self):
        pool = self.null_pool("pool-1")
        until(pool.is_member, "the pool is a member")
        self.assertEqual(pool.file.read_text(), pool.text())
        self.assertEqual(pool.file.stat().st_mode & 0o7777, 0o644)
        self.assertEqual([entry.name for entry in self.fleet.iterdir()], ["pool-1"])
        request = self.run_long(pool)
        until(lambda: pool.status()["running"] == 1, "a request runs")
        pool.process.process.send_signal(signal.SIGTERM)
        until(lambda: not pool.is_member(), "the pool is none any more")
        self.assertIsNone(pool.process.process.poll(), "it ended before its request")
        request.kill()
        request.wait()
        self.assertEqual(pool.process.process.wait(WAIT), 0, pool.process.log())

    def test_a_broker_that_dies_takes_no_file_along_and_a_killed_pool_leaves_its_own(self):
        pool = self.null_pool("pool-1")
        until(pool.is_member, "the pool is a member")
        before = pool.file.stat()
        dead = pool.broker
        os.kill(dead, signal.SIGKILL)
        until(lambda: pool.status()["broker_pid"] != dead, "another broker serves")
        self.assertEqual(pool.file.stat().st_ino, before.st_ino)
        pool.kill()
        self.assertEqual(pool.file.read_text(), pool.text())
        pool.start()
        until(lambda: pool.file.stat().st_ino != before.st_ino, "the next pool replaces it")
        self.assertEqual(pool.file.read_text(), pool.text())

    def test_what_cannot_be_a_member_does_not_start(self):
        def refused(*arguments):
            said = subprocess.run([str(BUILD / "quern-broker"), MODEL, "--device", "null", "--rundir",
                                   str(self.folder / "run"), *arguments], capture_output=True, text=True, timeout=WAIT)
            self.assertNotEqual(said.returncode, 0)
            return said.stderr
        self.assertIn("member: requires tcp and curve-key", refused("--member", str(self.fleet / "a")))
        subprocess.run([str(BUILD / "quern"), "keys", str(self.folder)], check=True, capture_output=True)
        keys = ("--curve-key", str(self.folder / "quern.cert_secret"), "--any-client")
        self.assertIn("so public-host must say how to reach this host",
                      refused("--member", str(self.fleet / "a"), "--tcp", f"0.0.0.0:{free_ports()}", *keys))
        tcp = ("--tcp", f"127.0.0.1:{free_ports()}", *keys)
        self.assertIn("is not DIR/NAME", refused("--member", str(self.fleet / ".a"), *tcp))
        self.assertIn("No such file or directory", refused("--member", str(self.folder / "none" / "a"), *tcp))


if __name__ == "__main__":
    main()
