# SPDX-License-Identifier: MIT
"""A conversation: questions, settings, answers that are stopped, keys."""

import time

from selenium.webdriver.common.keys import Keys

from support import ANSWER, Base, ENDLESS, KEY, QUESTION, STORY, until


class Chat(Base):
    def test_a_question_is_answered(self):
        page = self.page
        self.assertEqual(page.focused(), "message")
        page.set(temperature="0")
        page.write("What is Quern?")
        self.assertIn("pool of processes", page.answered())
        page.write(QUESTION)
        until(lambda: len(page.all(".answer")) == 2, "a second answer")
        self.assertEqual(page.answered(), ANSWER)
        self.assertRegex(page.text(".answer:last-of-type .facts"), r"^\d+ tokens · .* tokens/s · first after ")
        self.assertEqual(page.focused(), "message")
        self.assertIn(ANSWER, page.text("#announcer"))
        page.shoot("chat-light")
        page.colours("dark")
        page.shoot("chat-dark")
        page.driver.refresh()
        self.assertEqual(page.last(), ANSWER)
        page.one("#clear").click()
        self.assertEqual(page.all(".answer"), [])
        page.driver.refresh()
        self.assertEqual(page.all(".answer"), [])

    def test_what_is_set_is_sent(self):
        page = self.page
        page.one("[data-show=settings]").click()
        page.set(temperature="0", stop="ZeroMQ\n", max_tokens="100", thinking_budget="0", seed="7", top_k="3", top_p="0.5", min_p="0.1",
                 repetition_penalty="1", presence_penalty="0", frequency_penalty="0", system="You know Quern.")
        page.records()
        page.shoot("settings")
        page.write(QUESTION)
        self.assertEqual(page.answered().strip(), "The broker takes requests over")
        self.assertEqual(page.sent(), [
            {"messages": [{"role": "system", "content": "You know Quern."}, {"role": "user", "content": QUESTION}],
             "temperature": 0, "stop": ["ZeroMQ"], "max_tokens": 100, "thinking_budget": 0, "seed": 7, "top_k": 3, "top_p": 0.5, "min_p": 0.1,
             "repetition_penalty": 1, "presence_penalty": 0, "frequency_penalty": 0, "model": "Quern demo", "stream": True,
             "stream_options": {"include_usage": True}, "return_progress": True}])
        page.set(max_tokens="5", stop="")
        page.one(".answer:last-of-type .again").click()
        until(lambda: "cut off" in page.text(".answer:last-of-type .facts"), "the answer ends at its bound")
        self.assertEqual(len(page.all(".answer")), 1)

    def test_of_several_models_one_is_chosen(self):
        page = self.page
        self.assertFalse(page.seen("#model-choice"))
        page.script("""window.sent = [];
            const send = fetch;
            window.fetch = async (path, options) => {
              if (options?.body) sent.push(JSON.parse(options.body).model);
              const answer = await send(path, options);
              if (path !== "status") return answer;
              const status = await answer.json();
              status.workers[1].model = "another <b>model</b>";
              return new Response(JSON.stringify(status));
            };""")
        until(lambda: page.seen("#model-choice"), "a choice")
        self.assertEqual([option.text for option in page.all("#model option")], ["Quern demo", "another <b>model</b>"])
        page.one("#model").send_keys("another")
        page.write("Hi")
        until(lambda: page.seen(".answer .notice"), "the pool has no such model")
        self.assertIn("does not exist", page.text(".answer .notice"))
        self.assertEqual(page.script("return sent"), ["another <b>model</b>"])
        page.one("#model").send_keys("Quern")
        page.one(".answer .again").click()
        until(lambda: page.last(), "an answer")
        page.answered()

    def test_a_wrong_setting_is_named_and_nothing_is_sent(self):
        page = self.page
        page.set(top_p="2")
        page.write("Hi")
        self.assertEqual(page.focused(), "setting-top_p")
        self.assertIn("from 0 to 1", page.text("#setting-top_p-help"))
        self.assertEqual(page.all(".answer"), [])
        page.set(top_p="")
        self.assertNotIn("from 0 to 1", page.text("#setting-top_p-help"))

    def test_more_samplers_are_sent_and_shown_when_they_are_wrong(self):
        page = self.page
        page.set(max_tokens="3", dry_multiplier="0.8", xtc_probability="0.1", top_n_sigma="1.5", repeat_last_n="64")
        page.records()
        page.write("Hi")
        page.answered()
        (sent,) = page.sent()
        self.assertEqual({name: sent.get(name) for name in ("dry_multiplier", "xtc_probability", "top_n_sigma", "repeat_last_n")},
                         {"dry_multiplier": 0.8, "xtc_probability": 0.1, "top_n_sigma": 1.5, "repeat_last_n": 64})
        page.set(dry_allowed_length="0")
        self.assertFalse(page.seen("#setting-dry_allowed_length"))
        page.write("Hi")
        self.assertEqual(page.focused(), "setting-dry_allowed_length")
        self.assertTrue(page.seen("#setting-dry_allowed_length"))
        page.set(dry_allowed_length="", dry_multiplier="", xtc_probability="", top_n_sigma="", repeat_last_n="")

    def test_stop_ends_the_request_in_the_pool(self):
        page = self.page
        for press in (lambda: page.one("#stop").click(), lambda: page.driver.switch_to.active_element.send_keys(Keys.ESCAPE)):
            page.set(**ENDLESS)
            page.write(STORY)
            until(lambda: len(page.last()) > 200, "an answer that goes on")
            self.assertEqual(self.pool.status()["running"], 1)
            press()
            until(lambda: not page.busy(), "the page has stopped")
            until(self.pool.nothing_runs, "the pool has stopped")
            self.assertIn("stopped", page.text(".answer:last-of-type .facts"))
            length = len(page.last())
            time.sleep(0.3)
            self.assertEqual(len(page.last()), length)
            self.assertEqual(page.focused(), "message")
            page.one("#clear").click()

    def test_a_new_conversation_ends_the_answer_of_the_old_one(self):
        page = self.page
        page.set(**ENDLESS)
        page.write(STORY)
        until(lambda: len(page.last()) > 200, "an answer that goes on")
        page.one("#clear").click()
        page.set(temperature=0, frequency_penalty="", presence_penalty="")
        page.write(QUESTION)
        self.assertEqual(page.answered(), ANSWER)
        until(self.pool.nothing_runs, "the pool has stopped")

    def test_entries_that_others_left_in_the_browser_do_no_harm(self):
        page = self.page
        page.script("""
            const entries = {"a": {id: "a", name: "", changed: 1, messages: [{}]}, "b": {id: "b", name: "", changed: "x", messages: []},
                "c": {id: "c", name: "", changed: 1, messages: [null]}, "d": {id: "other", name: "", changed: 1, messages: []}, "e": 5};
            for (const [key, value] of Object.entries(entries)) localStorage.setItem("quern.conversation." + key, JSON.stringify(value));
            localStorage.setItem("quern.conversation.f", "{");""")
        page.driver.refresh()
        page.set(temperature="0")
        page.write(QUESTION)
        self.assertEqual(page.answered(), ANSWER)
        page.script("for (const key of 'abcdef') localStorage.removeItem('quern.conversation.' + key)")

    def test_a_reload_keeps_what_was_said_so_far(self):
        page = self.page
        page.set(**ENDLESS)
        page.write(STORY)
        until(lambda: len(page.last()) > 200, "an answer that goes on")
        page.driver.refresh()
        self.assertEqual(page.text(".question .text"), STORY)
        self.assertGreater(len(page.last()), 200)
        self.assertIn("stopped", page.text(".answer .facts"))
        until(self.pool.nothing_runs, "the pool has stopped")

    def test_tokens_show_how_sure_the_model_was(self):
        page = self.page
        page.one("#token-view").click()
        page.set(temperature="0", top_logprobs="4")
        page.write(QUESTION)
        until(lambda: page.all(".token") and not page.busy(), "tokens")
        tokens = page.seen(".token")
        said = page.script("return [...document.querySelectorAll('.token')].map(e => e.textContent).join('')")
        self.assertTrue(said.startswith(ANSWER), said)
        page.one(".question .edit").send_keys(Keys.TAB)
        self.assertTrue(page.script("return document.activeElement.classList.contains('token')"))
        page.driver.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
        page.driver.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
        self.assertEqual(page.driver.switch_to.active_element.get_attribute("textContent"), tokens[2].get_attribute("textContent"))
        shares = [float(e.text.removeprefix("< ").removesuffix(" %")) for e in page.all(".token-detail .share")]
        self.assertEqual(len(shares), 4)
        self.assertEqual(shares, sorted(shares, reverse=True))
        page.shoot("tokens")
        page.one("#token-view").click()
        self.assertEqual(page.seen(".token"), [])
        self.assertEqual(page.last(), ANSWER)


class AskedForKeys(Base):
    @classmethod
    def make_options(cls):
        keys = cls.folder / "keys"
        keys.write_text(f"tester {KEY}\n")
        keys.chmod(0o600)
        return ("--http-keys", str(keys))

    def test_a_key_is_asked_for_and_kept_in_the_tab(self):
        page = self.page
        until(lambda: page.seen("#key-dialog"), "it asks for a key")
        self.assertEqual(page.focused(), "key")
        page.shoot("key")
        page.one("#key").send_keys("not-a-key-of-this-pool", Keys.ENTER)
        until(lambda: page.seen("#key-dialog") and "does not know this key" in page.text("#key-text"), "it asks again")
        page.one("#key").send_keys(Keys.ESCAPE)
        until(lambda: not page.seen("#key-dialog"), "it can be put off")
        page.write("Hi")
        until(lambda: page.seen(".answer .notice"), "an answer in words")
        self.assertIn("does not know this key", page.text(".answer .notice"))
        page.one("#key-button").click()
        page.one("#key").send_keys(KEY, Keys.ENTER)
        until(lambda: "workers ready" in page.text("#summary"), "the pool")
        page.set(temperature="0")
        page.write(QUESTION)
        until(lambda: len(page.all(".answer")) == 2, "a second answer")
        self.assertEqual(page.answered(), ANSWER)
        page.driver.refresh()
        until(lambda: "workers ready" in page.text("#summary"), "the key is still there")
        self.assertNotIn(KEY, page.script("return JSON.stringify({...localStorage})"))

    def test_a_late_answer_to_no_key_does_not_ask_again(self):
        page = self.page
        until(lambda: page.seen("#key-dialog"), "it asks for a key")
        page.script("""window.late = []; const send = fetch; window.fetch = async (path, options) => {
            const answer = await send(path, options);
            if (answer.status === 401) await new Promise((release) => late.push(release));
            return answer; }""")
        until(lambda: page.script("return late.length"), "an answer is late")
        page.one("#key").send_keys(KEY, Keys.ENTER)
        page.set(temperature="0")
        page.write(QUESTION)
        self.assertEqual(page.answered(), ANSWER)
        page.script("late.forEach((release) => release())")
        until(lambda: "workers ready" in page.text("#summary"), "the late answer has come, and the next one")
        self.assertFalse(page.seen("#key-dialog"))
