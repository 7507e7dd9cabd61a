#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What answers say of the drafts that were verified for them, under OpenAI's names and llama-server's."""

from pool import MODEL, Base, Process, main, with_tokens

# An answer of few different tokens, so that drafts are right now and then.
ASK = {"max_tokens": 120, "temperature": 2, "seed": 4, "ignore_eos": True, "logit_bias": {"70": 90, "71": 90, "72": 90}}
PROMPTS = (("/v1/completions", {"prompt": "a long way to go, a long way to go"}),
           ("/v1/chat/completions", {"messages": [{"role": "user", "content": "round and round"}]}))


class Drafts(Base):
    @classmethod
    def start_broker(cls):
        model = cls.folder / "model.gguf"
        model.write_bytes(with_tokens(MODEL, fim_pre=1, suffix=2, fim_mid=3))
        cls.broker = Process(cls.folder, "quern-broker", str(model), "--device", "cpu", "--draft", "8", "--rundir", cls.rundir)
        cls.broker.says("ready:")

    def counts(self, answer):
        """Of drafted tokens, and of those accepted, by both names."""
        details, timings = answer["usage"]["completion_tokens_details"], answer["timings"]
        accepted, rejected = details["accepted_prediction_tokens"], details["rejected_prediction_tokens"]
        self.assertEqual((timings["draft_n"], timings["draft_n_accepted"]), (accepted + rejected, accepted))
        return accepted + rejected, accepted

    def test_usage_and_timings_count_them(self):
        for path, prompt in PROMPTS:
            answer = self.gateway.post(path, **ASK, **prompt)[2]
            drafted, accepted = self.counts(answer)
            self.assertLess(accepted, drafted, answer)
            self.assertTrue(0 < accepted < answer["usage"]["completion_tokens"] == 120, answer)
            last = self.gateway.stream(path, **ASK, **prompt, stream_options={"include_usage": True})[-1]
            self.assertEqual(self.counts(last), (drafted, accepted))

    def test_those_of_several_choices_add_up(self):
        path, prompt = PROMPTS[0]
        one, other = (self.counts(self.gateway.post(path, **{**ASK, "seed": seed}, **prompt)[2]) for seed in (4, 5))
        drafted, accepted = self.counts(self.gateway.post(path, **ASK, **prompt, n=2)[2])
        self.assertGreater(accepted, max(one[1], other[1]) // 2)  # two at once may have other drafts than each alone
        self.assertGreaterEqual(drafted, accepted)

    def test_timings_of_infill_have_them(self):
        status, _, answer = self.gateway.post("/infill", input_prefix="a long way, a long way", input_suffix=".", **ASK)
        self.assertEqual(status, 200, answer)
        self.assertTrue(0 < answer["timings"]["draft_n_accepted"] < answer["timings"]["draft_n"], answer)

    def test_they_stand_beside_reasoning_tokens(self):
        ask = {"messages": [{"role": "user", "content": "Say quern, quern, quern, quern."}], "max_tokens": 150, "reasoning_effort": "high"}
        details = self.gateway.post("/v1/chat/completions", **ASK | ask)[2]["usage"]["completion_tokens_details"]
        self.assertEqual([*details], ["reasoning_tokens", "accepted_prediction_tokens", "rejected_prediction_tokens"])

    def test_an_answer_without_drafts_says_nothing_of_them(self):
        answer = self.gateway.post("/v1/completions", prompt="Once", max_tokens=1)[2]
        self.assertNotIn("completion_tokens_details", answer["usage"])
        self.assertNotIn("draft_n", answer["timings"])


class NoDrafts(Base):
    def test_a_pool_that_makes_none_says_nothing_of_them(self):
        for path, prompt in PROMPTS:
            answer = self.gateway.post(path, **ASK, **prompt)[2]
            self.assertNotIn("completion_tokens_details", answer["usage"])
            self.assertNotIn("draft_n", answer["timings"])


if __name__ == "__main__":
    main()
