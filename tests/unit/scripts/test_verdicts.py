#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""scripts/check/verdicts: what may be run once more, and what is told of it."""

import json
import pathlib
import subprocess
import tempfile
import unittest

VERDICTS = pathlib.Path(__file__).resolve().parents[3] / "scripts/check/verdicts"


def test(name, result="FAIL", stdout="", stderr="", returncode=1):
    return {"name": f"quern:unit / {name}", "result": result, "stdout": stdout, "stderr": stderr,
            "returncode": returncode, "duration": 2.4}


RIGHT = test("right", "OK", returncode=0)
CHECK = "../tests/unit/test_a.c:7:F:name:name:0: Assertion 'a == b' failed\n"
LEAK = "==1==ERROR: LeakSanitizer: detected memory leaks\n" + "    #1 0x1 in f\n" * 30


class Verdicts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def log(self, name, tests):
        path = self.folder / name
        path.write_text("".join(json.dumps(test) + "\n" for test in tests))
        return path

    def say(self, *arguments):
        return subprocess.run([VERDICTS, *arguments], capture_output=True, text=True, check=True).stdout

    def again(self, *tests):
        return self.say("again", self.log("testlog.json", [RIGHT, *tests])).split("\n")[:-1]

    def test_failed_checks_and_timeouts_are_run_once_more(self):
        self.assertEqual(self.again(), [])
        self.assertEqual(self.again(test("a", stdout=CHECK), test("b c", "TIMEOUT", returncode=-15)), ["a", "b c"])
        self.assertEqual(self.again(test("skipped", "SKIP", returncode=77)), [])

    def test_crashes_are_not(self):
        for crash in [test("a", stderr="==1==ERROR: AddressSanitizer: heap-use-after-free\n"),
                      test("a", stderr="a.c:1:2: runtime error: signed integer overflow\n"),
                      test("a", stderr="WARNING: ThreadSanitizer: data race\n"),
                      test("a", stderr=LEAK),
                      test("a", stdout="a.c:1:E:b:b:0: (after this point) Received signal 11 (Segmentation fault)\n"),
                      test("a", stderr="*** stack smashing detected ***\n"),
                      test("a", returncode=-11)]:
            self.assertEqual(self.again(crash), [], crash)
            self.assertEqual(self.again(crash, test("b", stdout=CHECK)), [], crash)

    def test_leaks_of_a_test_that_left_early_are_its_own(self):
        self.assertEqual(self.again(test("a", stdout=CHECK, stderr=LEAK)), ["a"])

    def test_when_many_fail_it_is_not_the_machine(self):
        self.assertEqual(len(self.again(*(test(f"a{i}") for i in range(5)))), 5)
        self.assertEqual(self.again(*(test(f"a{i}") for i in range(6))), [])

    def test_all_that_failed_is_told_with_its_checks(self):
        first = self.log("testlog.json", [RIGHT, test("a", stdout=CHECK, stderr=LEAK), test("b", stdout="b\n")])
        # A test of another suite may have the same name, and runs along.
        other = {**test("a", "OK", returncode=0), "name": "quern:conformance / a"}
        alone = self.log("alone.json", [test("a", "OK", returncode=0), test("b"), other])
        self.assertEqual(self.say("count", first, alone), "1\n")
        told = self.say("tell", "the plain part", first, alone)
        self.assertIn("passed when run again, alone, in the plain part: quern:unit / a (FAIL, 2 s)\n", told)
        self.assertIn(f"    {CHECK}", told)
        self.assertIn("failed, in the plain part: quern:unit / b (FAIL, 2 s)\n    b\n", told)
        self.assertNotIn("right", told)
        self.assertIn("failed, in x: quern:unit / a (FAIL, 2 s)\n", self.say("tell", "x", first))


if __name__ == "__main__":
    unittest.main()
