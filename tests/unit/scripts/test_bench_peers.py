#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""scripts/bench-peers: what it reads of other programs, what it makes of it, and a run with programs that only pretend.

The texts of llama-bench and llama-batched-bench are what those printed, shortened."""

import http.server
import json
import pathlib
import re
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unittest

TOP = pathlib.Path(__file__).resolve().parents[3]
SCRIPTS = TOP / "scripts"
sys.path.insert(0, str(TOP / "tests/bench"))
sys.dont_write_bytecode = True
from peers import jobs, llama, quern, rounds, serving, table  # noqa: E402
from peers.engine import Failure, Variant, run  # noqa: E402

LLAMA_BENCH = """ggml_something: a line that is no JSON
[
  {
    "build_commit": "0c1e570",
    "n_prompt": 8,
    "n_gen": 0,
    "avg_ts": 12506.746618,
    "samples_ts": [ 11166.2, 12663, 13691.1 ]
  },
  {
    "build_commit": "0c1e570",
    "n_prompt": 4096,
    "n_gen": 2,
    "avg_ts": 300.5,
    "samples_ts": [ 100, 601 ]
  }
]
"""
BATCHED_BENCH = """
llama_batched_bench: n_kv_max = 1024, n_batch = 2048, flash_attn = 1, n_threads = 2

|    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |      T s |    S t/s |
|-------|--------|------|--------|----------|----------|----------|----------|----------|----------|
|     2 |      2 |    8 |     32 |    0.007 |   573.64 |    1.693 |     2.36 |    1.700 |     4.71 |
|     2 |      2 |   32 |    128 |    0.001 |  8024.07 |    0.432 |    18.53 |    0.433 |    36.98 |

"""
MORE = jobs.Figure("rate", "work", "tok/s", 1.5)
LESS = jobs.Figure("first_ms", "wait", "ms", 0.4, less_is_better=True)
JOB = jobs.Job("a-job", "single", "a-model", (MORE, LESS))


class Texts(unittest.TestCase):
    def test_llama_bench_gives_the_median_of_its_repetitions(self):
        self.assertEqual(llama.bench_rates(LLAMA_BENCH), {"prefill": 12663, "decode": 350.5})

    def test_batched_bench_gives_the_decoding_of_each_number_of_sequences(self):
        self.assertEqual(llama.batch_rates(BATCHED_BENCH), {"8": 2.36, "32": 18.53})

    def test_quern_bench_gives_medians(self):
        self.assertEqual(quern.rates('{"bench":"prefill","n":2,"tokens_per_second":13.5,"tokens_per_second_min":1}\n'),
                         {"prefill": 13.5})
        batches = [{"sequences": 8, "tokens_per_second": 2.5}, {"sequences": 32, "tokens_per_second": 4}]
        self.assertEqual(quern.rates(json.dumps({"bench": "batch", "batches": batches})), {"8": 2.5, "32": 4})

    def test_other_texts_are_failures(self):
        for read in (llama.bench_rates, llama.batch_rates, quern.rates):
            for text in ("", "[]x", "[\n1\n]", "| 1 | 2 |\n", '{"bench":"batch"}', "no table"):
                with self.subTest(read=read.__name__, text=text), self.assertRaises(Failure):
                    read(text)

    def test_a_program_that_fails_is_told_with_its_last_words(self):
        with self.assertRaisesRegex(Failure, "status 3: no such model"):
            run("sh", "-c", "echo no such model >&2; exit 3")
        with self.assertRaisesRegex(Failure, "/nowhere/llama-bench: No such file"):
            run("/nowhere/llama-bench")

    def test_flags_of_ik_llama_cpp_have_the_form_of_each_program(self):
        engine = llama.IkLlamaCpp(pathlib.Path("/ik"), {}, jobs.Sizes(), 2)
        self.assertEqual([label for label, _ in engine.flags], ["-fa 1", "-fa 0", "-fa 1 -rtr", "-fa 0 -rtr"])
        self.assertEqual(engine.flags[2][1], ("-fa", "1", "-rtr"))
        self.assertEqual(engine.bench_flags(engine.flags[2][1]), ("-fa", "1", "-rtr", "1"))


def samples_of(**engines):
    """{name: Samples} of name={label: {key: values}}."""
    made = {}
    for name, labels in engines.items():
        made[name] = rounds.Samples()
        made[name].values = labels
    return made


class Comparison(unittest.TestCase):
    def test_the_best_variant_of_the_best_peer_counts(self):
        samples = samples_of(Quern={"": {"rate": [30, 33, 90]}}, b={"": {"rate": [15, 14, 16]}},
                             a={"x": {"rate": [11, 10, 12]}, "y": {"rate": [21, 20, 22]}})
        self.assertAlmostEqual(table.ratio(MORE, samples), 33 / 21)
        self.assertEqual(table.row(MORE, ["Quern", "a", "b"], samples),
                         "| work, tok/s | 33 | 21 (y) | 15 | 1.57 | ≥ 1.5 |  |")

    def test_where_less_is_better_the_least_is_the_best(self):
        samples = samples_of(Quern={"": {"first_ms": [500]}}, a={"": {"first_ms": [1000]}},
                             b={"": {"first_ms": [1300]}})
        self.assertEqual(table.row(LESS, ["Quern", "a", "b"], samples),
                         "| wait, ms | 500 | 1,000 | 1,300 | 0.50 | ≤ 0.4 | missed |")

    def test_what_misses_its_goal_is_marked(self):
        samples = samples_of(Quern={"": {"rate": [14.9]}}, a={"": {"rate": [10]}})
        self.assertEqual(table.row(MORE, ["Quern", "a"], samples), "| work, tok/s | 14.9 | 10 | 1.49 | ≥ 1.5 | missed |")

    def test_without_a_peer_there_is_no_ratio(self):
        samples = samples_of(Quern={"": {"rate": [14.9]}}, a={})
        self.assertIsNone(table.ratio(MORE, samples))
        self.assertEqual(table.row(MORE, ["Quern", "a"], samples), "| work, tok/s | 14.9 | – | – | ≥ 1.5 |  |")

    def test_a_variant_of_one_lucky_round_does_not_count(self):
        samples = samples_of(a={"x": {"rate": [50]}, "y": {"rate": [40, 42, 41]}})
        self.assertEqual(samples["a"].best(MORE), (41, "y"))

    def test_the_heads_columns_are_those_of_the_rows(self):
        head = table.head(["Quern", "a", "b"]).splitlines()
        row = table.row(MORE, ["Quern", "a", "b"], samples_of(Quern={}, a={}, b={}))
        self.assertEqual({line.count("|") for line in (*head, row)}, {8})

    def test_only_what_is_behind_in_every_figure_is_hopeless(self):
        first = {"x": {"rate": 100, "first_ms": 50}, "y": {"rate": 91, "first_ms": 90},
                 "z": {"rate": 50, "first_ms": 51}, "w": {"rate": 89, "first_ms": 56}}
        self.assertEqual(rounds.hopeless(JOB, first), ["w"])


class Pretender:
    """An engine whose measurements are functions of the round."""

    def __init__(self, name, variants, order):
        self.name, self.closed, self.order = name, [], order
        self.given = [Variant(label, self.noted(label, measure), lambda label=label: self.closed.append(label))
                      for label, measure in variants.items()]

    def noted(self, label, measure):
        def measure_and_note(number):
            self.order.append(f"{self.name}{label}{number}")
            return measure(number)
        return measure_and_note

    def variants(self, job):
        return self.given


class Rounds(unittest.TestCase):
    def setUp(self):
        self.order, self.said = [], []

    def run_job(self, *engines, n=3):
        return rounds.run_job(JOB, engines, n, self.said.append)

    def test_engines_take_turns_and_the_next_round_goes_back(self):
        engines = [Pretender(name, {"": lambda number: {"rate": number, "first_ms": 1}}, self.order) for name in "ab"]
        samples, stopped = self.run_job(*engines, n=2)
        self.assertEqual((self.order, stopped), (["a1", "b1", "b2", "a2"], False))
        self.assertEqual(samples["a"].best(MORE), (1.5, ""))
        self.assertEqual([engine.closed for engine in engines], [[""], [""]])

    def test_a_variant_that_is_behind_is_asked_once_only(self):
        engine = Pretender("a", {"x": lambda number: {"rate": 10, "first_ms": 2},
                                 "y": lambda number: {"rate": 5, "first_ms": 9}}, self.order)
        samples, _ = self.run_job(engine)
        self.assertEqual(self.order, ["ax1", "ay1", "ax2", "ax3"])
        self.assertEqual(samples["a"].best(MORE), (10, "x"))
        self.assertEqual(sorted(engine.closed), ["x", "y"])

    def test_what_fails_is_told_and_the_others_go_on(self):
        def fails(number):
            raise Failure("cannot read the model")

        bad = Pretender("bad", {"": fails}, self.order)
        good = Pretender("good", {"": lambda number: {"rate": 7, "first_ms": 2}}, self.order)
        samples, stopped = self.run_job(bad, good)
        self.assertEqual(self.order, ["bad1", "good1", "good2", "good3"])
        self.assertIsNone(samples["bad"].best(MORE))
        self.assertEqual((samples["good"].best(MORE), stopped), ((7, ""), False))
        self.assertIn("a-job, round 1: bad: cannot read the model", self.said)
        self.assertEqual(bad.closed, [""])

    def test_a_measurement_without_one_of_the_figures_is_a_failure(self):
        engines = [Pretender("a", {"": lambda number: {"rate": 7}}, self.order),
                   Pretender("b", {"": lambda number: {"rate": 0, "first_ms": 1}}, self.order)]
        samples, _ = self.run_job(*engines)
        self.assertEqual((samples["a"].best(MORE), samples["b"].best(MORE)), (None, None))
        self.assertIn("a-job, round 1: a: no figure \"first_ms\" in {'rate': 7}", self.said)

    def test_an_interrupted_run_gives_what_it_has(self):
        def second_is_interrupted(number):
            if number == 2:
                raise KeyboardInterrupt
            return {"rate": 3, "first_ms": 2}

        engine = Pretender("a", {"": second_is_interrupted}, self.order)
        samples, stopped = self.run_job(engine)
        self.assertEqual((samples["a"].best(MORE), stopped, engine.closed), ((3, ""), True, [""]))


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers after WAIT seconds with two pieces and a usage of as many tokens as were asked for."""

    WAIT, PAUSE = 0.05, 0.15

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.bodies.append(body)
        if body["prompt"] == [-1]:
            self.send_error(400, "no such id")
            return
        usage = {"completion_tokens": body["max_tokens"]}
        self.send_response(200)
        self.end_headers()
        if not body["stream"]:
            self.wfile.write(json.dumps({"choices": [{"text": "two pieces"}], "usage": usage}).encode())
            return
        for pause, event in ((0, {"choices": [{"text": ""}]}),
                             (self.WAIT, {"choices": [{"text": "two"}]}),
                             (self.PAUSE, {"choices": [{"text": " pieces"}], "usage": None}),
                             (0, {"choices": [], "usage": usage})):
            time.sleep(pause)
            self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")
            self.wfile.flush()
        self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, *arguments):
        pass


class Clients(unittest.TestCase):
    def setUp(self):
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.lock, self.http.bodies = threading.Lock(), []
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        self.addCleanup(self.http.server_close)
        self.addCleanup(self.http.shutdown)
        self.server = serving.Server("a server", pathlib.Path("/nowhere"), port=self.http.server_address[1])

    def test_streams_are_timed_to_their_first_text(self):
        job = jobs.Job("pool", "serving", "", (), clients=3, requests=2, prompt=5, new=20, streamed=True)
        began = time.monotonic()
        measured = serving.measure(self.server, job, 1)
        seconds = time.monotonic() - began
        self.assertGreaterEqual(measured["first_ms"], 1e3 * Handler.WAIT)
        self.assertLessEqual(measured["first_ms"], 1e3 * (seconds - 2 * Handler.PAUSE))
        self.assertGreaterEqual(measured["rate"], 3 * 2 * 20 / seconds)
        self.assertLessEqual(measured["rate"], 3 * 20 / (Handler.WAIT + Handler.PAUSE))
        prompts = [tuple(body["prompt"]) for body in self.http.bodies]
        self.assertEqual((len(set(prompts)), {len(prompt) for prompt in prompts}), (6, {5}))

    def test_every_engine_gets_the_same_prompts_and_every_round_others(self):
        job = jobs.Job("pool", "serving", "", (), prompt=130)
        self.assertEqual(serving.prompt_of(job, 1, 2, 3), serving.prompt_of(job, 1, 2, 3))
        whichs = ((1, 2, 3), (2, 2, 3), (1, 3, 3), (1, 2, 4))
        self.assertEqual(len({tuple(serving.prompt_of(job, *which)) for which in whichs}), 4)

    def test_whole_answers_count_their_tokens(self):
        job = jobs.Job("demo", "serving", "", (), clients=2, requests=1, new=30)
        self.assertGreater(serving.measure(self.server, job, 1)["rate"], 0)
        self.assertEqual({body["prompt"] for body in self.http.bodies}, {"What does the broker do?"})
        self.assertEqual(len({body["seed"] for body in self.http.bodies}), 2)

    def test_a_refused_request_is_a_failure(self):
        with self.assertRaisesRegex(Failure, "a server: HTTP status 400"):
            self.server.ask([-1], 1, 0, True)

    def test_clients_that_get_no_answer_are_a_failure(self):
        self.server.port = llama.free_port()
        job = jobs.Job("pool", "serving", "", (), clients=2, requests=1, prompt=5, new=20)
        with self.assertRaisesRegex(Failure, "a server: 2 of 2 clients failed"):
            serving.measure(self.server, job, 1)

    def test_a_stream_without_usage_is_a_failure(self):
        with self.assertRaises(ValueError):
            serving.read_stream([b'data: {"choices": [{"text": "x"}]}\n', b"data: [DONE]\n"])

    def test_a_server_that_ends_is_told_with_its_last_words(self):
        with tempfile.TemporaryDirectory() as name:
            server = serving.Server("a server", pathlib.Path(name) / "log", "sh", "-c", "echo no such model; exit 1",
                                    port=1)
            with self.assertRaisesRegex(Failure, "a server does not serve: no such model"):
                server.start()
            server.end()


PRETENDED_QUERN = """#!/bin/sh
case "$*" in
--version) echo quern 9.8.7 ;;
"synth --layers"*) echo "$3 layers" >"$6" ;;
synth*) echo GGUF >"$4" ;;
"bench decode"*) echo '{"bench":"decode","tokens_per_second":30}' ;;
"bench prefill"*) echo '{"bench":"prefill","tokens_per_second":120}' ;;
"bench batch"*)
    echo '{"bench":"batch","batches":[{"sequences":8,"tokens_per_second":80},'
    echo '{"sequences":32,"tokens_per_second":90}]}'
    ;;
*) exit 1 ;;
esac
"""
PRETENDED_LLAMA = {
    "llama-server": "echo 'version: 123 (abc)' >&2",
    "llama-bench": """[ -f "$4" ] || exit 1
echo all that I did >llama.log
case "$*" in *" -fa 1"*) n=2 ;; *) n=1 ;; esac
printf '[\\n{"n_prompt":8,"n_gen":0,"samples_ts":[%s0]},{"n_prompt":0,"n_gen":8,"samples_ts":[%s0]}\\n]\\n' $n $n""",
    "llama-batched-bench": """echo '|  2 |  2 |  8 | 3 | 1 | 1 | 1 | 50 | 1 | 1 |'
echo '|  2 |  2 | 32 | 3 | 1 | 1 | 1 | 30 | 1 | 1 |'""",
}


class WholeRun(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.program("build/quern", PRETENDED_QUERN)
        for name, text in PRETENDED_LLAMA.items():
            self.program(f"llama/{name}", f"#!/bin/sh\n{text}\n")

    def program(self, name, text):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def bench(self, *options):
        """In the folder, by relative paths."""
        words = [sys.executable, "-B", SCRIPTS / "bench-peers", "--build", "build", "--models", "models", "--rounds", "2"]
        return subprocess.run([*words, *options], capture_output=True, text=True, cwd=self.folder)

    def test_prints_a_table(self):
        done = self.bench("--llama-cpp", "llama", "--rows", "1b-q4,batch,depth")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertRegex(lines[0], r"quern 9\.8\.7, llama\.cpp 123 \(abc\); \d+ threads each")
        self.assertEqual(lines[2:], [
            "| work | Quern | llama.cpp | ÷ best peer | goal | |",
            "|---|---|---|---|---|---|",
            "| 1B Q4_K_M decode, tok/s | 30 | 20 (-fa 1) | 1.50 | ≥ 1.3 |  |",
            "| 1B Q4_K_M prefill 128, tok/s | 120 | 20 (-fa 1) | 6.00 | ≥ 1.5 |  |",
            "| 0.5B Q4_K_M, 8 sequences decoding, tok/s | 80 | 50 (-fa 1) | 1.60 | ≥ 2 | missed |",
            "| 0.5B Q4_K_M, 32 sequences decoding, tok/s | 90 | 30 (-fa 1) | 3.00 | ≥ 2 |  |",
            "| 1B Q4_K_M decode at depth 4,096, tok/s | 30 | 20 (-fa 1) | 1.50 | ≥ 5 | missed |",
        ])
        self.assertTrue((self.folder / "models/llama-3.2-1b-Q4_K_M.gguf").exists())
        self.assertEqual({path.name for path in self.folder.iterdir()}, {"build", "llama", "models"})

    def test_a_shape_is_cut_to_the_layers_in_the_models_name(self):
        done = self.bench("--llama-cpp", "llama", "--rows", "qwen35,gpt-oss")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| Qwen3.5-4B, 8 layers, Q4_K_M prefill 512, tok/s | 120 | 20 (-fa 1) | 6.00 |", done.stdout)
        self.assertEqual((self.folder / "models/qwen3.5-4b-8-layers-Q4_K_M.gguf").read_text(), "8 layers\n")
        self.assertTrue((self.folder / "models/gpt-oss-20b-4-layers-MXFP4_MOE.gguf").exists())

    def test_a_trained_model_that_is_there_is_not_fetched(self):
        (self.folder / "models").mkdir()
        (self.folder / "models/SmolLM2-135M-Q4_1.gguf").write_text("GGUF")
        done = self.bench("--llama-cpp", "llama", "--rows", "smollm2")
        self.assertIn("| SmolLM2-135M Q4_1 decode, tok/s | 30 | 20 (-fa 1) | 1.50 |", done.stdout, done.stderr)

    def test_folders_without_a_server_have_no_version(self):
        (self.folder / "llama/llama-server").unlink()
        done = self.bench("--llama-cpp", "llama", "--rows", "1b-q8")
        self.assertIn("llama.cpp of an unknown version", done.stdout, done.stderr)

    def test_the_ids_of_a_prompt_are_the_jobs(self):
        engine = llama.LlamaCpp(self.folder / "llama", {"m": self.folder / "llama/llama-bench"}, jobs.Sizes(), 2)
        engine.bench_command = lambda model, flags: ("sh", "-c", 'echo "$@" >&2; exit 1', "x")
        job = jobs.Job("a", "single", "m", (), prefill=512)
        with self.assertRaisesRegex(Failure, "-p 512 -n 32 -r 3"):
            engine.variants(job)[0].measure(1)
        self.assertEqual(jobs.tiny(job).prefill, 8)

    def test_a_row_without_a_peer_is_an_error_and_the_others_are_printed(self):
        self.program("llama/llama-batched-bench", "#!/bin/sh\necho no memory >&2; exit 1\n")
        done = self.bench("--llama-cpp", "llama", "--rows", "batch,1b-q8")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no memory", done.stderr)
        self.assertIn("| 0.5B Q4_K_M, 8 sequences decoding, tok/s | 80 | – | – | ≥ 2 |  |", done.stdout)
        self.assertIn("| 1B Q8_0 decode, tok/s | 30 | 20 (-fa 1) | 1.50 | ≥ 1.2 |  |", done.stdout)

    def test_a_table_on_stderr_is_read_too(self):
        self.program("llama/llama-batched-bench", f"#!/bin/sh\ncat >&2 <<'END'\n{BATCHED_BENCH}END\n")
        done = self.bench("--ik-llama-cpp", "llama", "--rows", "batch")
        self.assertIn("| 0.5B Q4_K_M, 32 sequences decoding, tok/s | 90 | 18.5 (-fa 1) |", done.stdout, done.stderr)

    def test_wrong_options_are_named(self):
        for options, reason in (((), "no peer is named"), (("--llama-cpp", "x", "--rows", "2b"), 'no row "2b"'),
                                (("--llama-cpp", "x", "--rounds", "0"), '"0" is not a number above 0')):
            done = self.bench(*options)
            self.assertEqual((done.returncode, reason in done.stderr), (2, True), done.stderr)

    def test_every_row_is_in_the_documents(self):
        text = (SCRIPTS.parent / "docs/BENCHMARKS.md").read_text()
        names = set(re.findall(r"`([\w.-]+)`", text[text.index("## Beside other engines"):]))
        self.assertLessEqual({job.name for job in jobs.JOBS}, names)


if __name__ == "__main__":
    unittest.main()
