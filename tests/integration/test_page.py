#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The gateway's page in Chromium, before a pool with the demo model. scripts/check/page runs it.

    test_page.py [--screenshots DIR] --chromium FILE BUILD_FOLDER MODEL

An answer that is to last is one that repeats itself: greedy, with negative penalties. What follows are arguments of
unittest: a test by its name."""

import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

parser = argparse.ArgumentParser()
parser.add_argument("--screenshots", type=pathlib.Path)
parser.add_argument("--chromium", required=True)
parser.add_argument("build", type=pathlib.Path)
parser.add_argument("model")
arguments, rest = parser.parse_known_args()

WAIT = 60  # seconds until something that must happen counts as missing
QUESTION = "What does the broker do?"
ANSWER = ("The broker takes requests over ZeroMQ, queues them, and routes each one to a worker. "
          "It also restarts workers that die.")
KEY = "a-key-of-this-test-0123456789"
STORY = "Tell me a story."
ENDLESS = {"temperature": 0, "frequency_penalty": -2, "presence_penalty": -2, "max_tokens": 20000}  # of it

MARKUP = """# Handmills

A **quern** grinds *grain*; ~~wind~~ hands turn it. See [its history](https://example.org/quern_(stone)) or https://example.org.

> It was said:
>
> > The mill grinds slowly.

## Parts

- the upper stone
  - a handle, of `wood`
    1. oak
    2. ash
- the lower stone, for $a_1 * b_2 * c_3$ grains

| Stone | Weight | Turns |
|:------|:------:|------:|
| upper | 12 kg  | 3,000 |
| lower | 20 kg  | 0     |

$$
- x_1 * y_1
$$

---

```python
def f(x):
    return x  # """ + "long " * 40 + """
```

1. Then:
   ```
   make
   ```
2. Done.
"""


def until(condition, what):
    end = time.monotonic() + WAIT
    while time.monotonic() < end:
        try:
            found = condition()
        except StaleElementReferenceException:
            found = None  # the page has put another in its place
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"{what}: not within {WAIT} s")


class Pool:
    """A pool with two workers, and its gateway."""

    def __init__(self, folder, context, *options):
        self.rundir, self.log = folder / "run", folder / "log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [arguments.build / "quern", "serve", arguments.model, "--workers", "2", "--ctx", context, "--rundir", self.rundir,
                 "--device", "cpu", "--http", "127.0.0.1:0", *options], stdout=log, stderr=log)
        self.url = until(self.address, "the gateway listens")

    def address(self):
        text = self.log.read_text(errors="replace")
        if self.process.poll() is not None:
            raise AssertionError(f"it ended with {self.process.returncode}:\n{text}")
        return text.partition("ready: http://")[2].split("\n")[0] and f"http://{text.partition('ready: http://')[2].split()[0]}/"

    def status(self):
        said = subprocess.run([arguments.build / "quern", "status", "--json", "--connect", self.rundir], capture_output=True,
                              timeout=WAIT, check=True)
        return json.loads(said.stdout)

    def ready(self):
        return all(worker["state"] == "ready" for worker in self.status()["workers"])

    def nothing_runs(self):
        return self.status()["running"] == 0

    def ask(self, question, **request):
        """An answer by the interface, without a browser."""
        body = json.dumps({"messages": [{"role": "user", "content": question}], **request}).encode()
        asked = urllib.request.Request(f"{self.url}v1/chat/completions", body, {"Authorization": f"Bearer {KEY}"})
        with urllib.request.urlopen(asked, timeout=WAIT) as answer:
            return json.load(answer)["choices"][0]["message"]["content"]

    def end(self):
        self.process.terminate()
        try:
            self.process.wait(WAIT)
        finally:
            self.process.kill()


class Page:
    """The page as a user has it: what is seen, pressed and written."""

    def __init__(self, folder):
        options = webdriver.ChromeOptions()
        options.binary_location = arguments.chromium
        for option in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--force-device-scale-factor=1",
                       "--hide-scrollbars", "--lang=en", f"--user-data-dir={folder / 'profile'}"):
            options.add_argument(option)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
        self.driver.set_script_timeout(WAIT)

    def open(self, url):
        """Opens it as in a new tab."""
        self.driver.get(url)
        self.script("sessionStorage.clear(); localStorage.clear()")
        self.driver.get(url)

    def script(self, text, *values):
        return self.driver.execute_script(text, *values)

    def one(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def seen(self, selector):
        return [found for found in self.all(selector) if found.is_displayed()]

    def text(self, selector):
        return self.script("return document.querySelector(arguments[0])?.textContent ?? ''", selector)

    def size(self, width, height, phone=False):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone})

    def colours(self, scheme):
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia",
                                    {"features": [{"name": "prefers-color-scheme", "value": scheme}]})

    def focused(self):
        return self.script("return document.activeElement.id")

    def set(self, **settings):
        """Fills in settings, as writing would."""
        for name, value in settings.items():
            self.script("const e = document.querySelector('#setting-' + arguments[0]); e.value = arguments[1];"
                        "e.dispatchEvent(new Event('input', {bubbles: true}))", name, value)

    def write(self, text):
        self.one("#message").send_keys(text, Keys.ENTER)

    def last(self):
        """The text of the last answer."""
        return self.script("return [...document.querySelectorAll('.answer .text')].at(-1)?.textContent ?? ''")

    def busy(self):
        return self.all(".answer[aria-busy='true']")

    def answered(self):
        until(lambda: self.all(".answer") and not self.busy(), "the answer is complete")
        return self.last()

    def fits(self):
        """Whether nothing is wider than the screen."""
        return self.script("return document.documentElement.scrollWidth <= innerWidth && "
                           "[...document.querySelectorAll('#log, #pool, #settings, #history')].every(e => e.scrollWidth <= e.clientWidth)")

    def keeps(self, *messages):
        """Opens it with a conversation: questions and answers in turn."""
        roles = ({"role": "user"}, {"role": "assistant", "end": "stop"})
        kept = [{**roles[i % 2], "content": content} for i, content in enumerate(messages)]
        self.script("localStorage.setItem('quern.conversation.kept', JSON.stringify({id: 'kept', name: '', changed: 1, messages: arguments[0]}));"
                    "sessionStorage.setItem('quern.current', '\"kept\"')", kept)
        self.driver.refresh()

    def answers(self, content):
        """Has the next request answered with this, in pieces of three characters."""
        chunks = [{"choices": [{"delta": {"content": content[i:i + 3]}}]} for i in range(0, len(content), 3)]
        chunks.append({"choices": [{"delta": {}, "finish_reason": "stop"}]})
        self.script("""const send = fetch;
            window.fetch = async (path, options) => {
              if (!options?.body) return send(path, options);
              window.fetch = send;
              const body = new ReadableStream({
                async start(out) {
                  for (const chunk of [...chunks.map(JSON.stringify), "[DONE]"]) {
                    out.enqueue(new TextEncoder().encode(`data: ${chunk}\\n\\n`));
                    await new Promise((resolve) => setTimeout(resolve, 4));
                  }
                  out.close();
                },
              });
              return new Response(body);
            };""".replace("chunks.map", f"{json.dumps(chunks)}.map"))

    def complaints(self):
        """What the browser has logged: errors, scripts that were forbidden. A refusal of HTTP is none."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["source"] != "network"]

    def shoot(self, name):
        if arguments.screenshots:
            arguments.screenshots.mkdir(parents=True, exist_ok=True)
            self.driver.save_screenshot(str(arguments.screenshots / f"{name}.png"))


class Base(unittest.TestCase):
    context = "32768"  # room for an answer that lasts

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="quern-page-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, True)
        cls.pool = Pool(cls.folder, cls.context, *cls.make_options())
        cls.addClassCleanup(cls.pool.end)
        until(cls.pool.ready, "the workers are ready")
        cls.page = Page(cls.folder)
        cls.addClassCleanup(cls.page.driver.quit)

    @classmethod
    def make_options(cls):
        return ()

    def setUp(self):
        self.page.size(1280, 800)
        self.page.colours("light")
        self.page.open(self.pool.url)
        self.page.complaints()

    def tearDown(self):
        self.assertEqual(self.page.complaints(), [])
        self.page.driver.get("about:blank")
        until(self.pool.nothing_runs, "nothing is left running")


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
        page.script("window.sent = []; const send = fetch; window.fetch = (path, options) => {"
                    " if (options?.body) sent.push(JSON.parse(options.body)); return send(path, options); }")
        page.shoot("settings")
        page.write(QUESTION)
        self.assertEqual(page.answered().strip(), "The broker takes requests over")
        self.assertEqual(page.script("return sent"), [
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
        page.script("window.sent = []; const send = fetch; window.fetch = (path, options) => {"
                    " if (options?.body) sent.push(JSON.parse(options.body)); return send(path, options); }")
        page.write("Hi")
        page.answered()
        (sent,) = page.script("return sent")
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

    def test_what_a_model_writes_stays_text(self):
        page = self.page
        hostile = ("<img src=x onerror=alert(1)> **bold** <b>not</b>\n\n# <script>alert(2)</script>\n\n- [x](javascript:alert(3))\n"
                   "1. `</code><i>`\n\n```html\n<script>alert(4)</script>\n```\n\n````\n```\nopen")
        page.keeps(hostile, hostile)
        self.assertEqual(page.all("#log img, #log script, #log i, #log b, #log a"), [])
        self.assertEqual(page.text(".question .text"), hostile)
        self.assertEqual(page.text(".answer pre code"), "<script>alert(4)</script>")
        self.assertEqual(page.all(".answer pre")[1].text, "```\nopen")
        self.assertEqual(page.text(".answer strong"), "bold")
        self.assertIn("[x](javascript:alert(3))", page.text(".answer .text"))
        refused = page.script("try { document.body.innerHTML = '<p>'; return '' } catch (e) { return e.name }")
        self.assertEqual(refused, "TypeError")
        self.assertTrue(any("TrustedHTML" in line or "Trusted" in line for line in page.complaints()))

    def test_markup_is_shown(self):
        page = self.page
        page.keeps("Show me.", MARKUP)
        shown = {name: len(page.all(f".answer .text {name}")) for name in
                 ("h3", "h4", "strong", "em", "del", "blockquote blockquote", "ul ul ol", "table tr", "th", "hr", "pre", "a", "img")}
        self.assertEqual(shown, {"h3": 1, "h4": 1, "strong": 1, "em": 1, "del": 1, "blockquote blockquote": 1, "ul ul ol": 1,
                                 "table tr": 3, "th": 3, "hr": 1, "pre": 2, "a": 2, "img": 0})
        self.assertEqual([page.one(f"td:nth-child({n})").value_of_css_property("text-align") for n in (1, 2, 3)],
                         ["left", "center", "right"])
        for link in page.all(".answer a"):
            self.assertEqual((link.get_attribute("rel"), link.get_attribute("target")), ("noopener noreferrer", "_blank"))
            self.assertEqual(link.get_attribute("title"), link.get_attribute("href"))
        self.assertIn("$a_1 * b_2 * c_3$", page.last())
        self.assertIn("$$\n- x_1 * y_1\n$$", page.last())
        page.driver.execute_cdp_cmd("Browser.grantPermissions", {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]})
        page.one(".answer .code button").click()
        until(lambda: page.text(".answer .code button") == "Copied", "the code is copied")
        self.assertEqual(page.driver.execute_async_script("navigator.clipboard.readText().then(arguments[0])"),
                         "def f(x):\n    return x  # " + "long " * 40)
        page.shoot("markup-light")
        page.colours("dark")
        page.shoot("markup-dark")
        page.size(360, 740, phone=True)
        self.assertTrue(page.fits())
        page.shoot("markup-phone")
        page.script("document.querySelector('#log').scrollTop = 0")
        page.shoot("markup-phone-top")

    def test_markup_that_nobody_writes_by_hand_is_shown_too(self):
        page = self.page
        for text in ("a" * 100000, "[" * 50000, "*a " * 30000, "> " * 20000 + "end", "- " * 20000 + "end", "| " * 30000 + "\n" + "|-" * 500,
                     "```\n" * 9999, "a | b\n--|--\n" + "**1** | `2`\n" * 3000, "[x](javascript:alert(1)) " * 4000):
            page.keeps("Show me.", text)
            self.assertLess(page.script("return document.querySelectorAll('.answer *').length"), 40000, text[:20])
            self.assertEqual(page.all(".answer a"), [])
            self.assertTrue(page.fits(), text[:20])

    def test_conversations_are_kept_renamed_exported_and_deleted(self):
        page = self.page
        page.keeps("An old question", "An old answer")
        page.one("#clear").click()
        page.set(temperature="0")
        page.write(QUESTION)
        page.answered()
        page.script("sessionStorage.clear()")  # as in another tab
        page.driver.refresh()
        self.assertEqual(page.all(".answer"), [])
        page.one("[data-show=history]").click()
        names = lambda: [name.text for name in page.all("#conversations .name")]
        self.assertEqual(names(), [QUESTION, "An old question"])
        page.shoot("history")
        page.one("#conversations .name").click()
        self.assertEqual(page.last(), ANSWER)
        self.assertEqual(page.one("#conversations .name").get_attribute("aria-current"), "true")
        page.one("#conversations li:nth-child(2) .doings button").click()
        page.driver.switch_to.active_element.send_keys(Keys.CONTROL, "a")
        page.driver.switch_to.active_element.send_keys("A <b>new</b> name", Keys.ENTER)
        until(lambda: names() == [QUESTION, "A <b>new</b> name"], "it is renamed")
        page.script("URL.createObjectURL = (blob) => { window.saved = blob; return '#'; }")
        saved = lambda: page.driver.execute_async_script("saved.text().then(arguments[0])")
        page.one("#conversations li:nth-child(2) .doings button:nth-child(3)").click()
        self.assertEqual(saved(), "# A <b>new</b> name\n\n## You\n\nAn old question\n\n## Model\n\nAn old answer\n")
        page.one("#conversations li .doings button:nth-child(2)").click()
        self.assertEqual([message["content"] for message in json.loads(saved())["messages"]], [QUESTION, ANSWER])
        page.one("#conversations li .doings button:last-child").click()
        page.driver.switch_to.alert.dismiss()
        self.assertEqual(len(names()), 2)
        page.one("#conversations li .doings button:last-child").click()
        page.driver.switch_to.alert.accept()
        until(lambda: names() == ["A <b>new</b> name"], "it is deleted")
        self.assertEqual(page.all(".answer"), [])
        page.script("Storage.prototype.setItem = () => { throw new Error('full') }")
        page.write(QUESTION)
        self.assertEqual(page.answered(), ANSWER)
        self.assertTrue(page.seen("#not-kept"))

    def test_a_question_is_edited_and_asked_anew(self):
        page = self.page
        page.keeps("First", "One", "Second", "Two")
        page.set(temperature="0")
        page.one(".question .edit").click()
        page.driver.switch_to.active_element.send_keys("x", Keys.ESCAPE)
        self.assertEqual(page.text(".question .text"), "First")
        page.one(".question .edit").click()
        self.assertEqual(page.driver.switch_to.active_element.get_attribute("value"), "First")
        page.shoot("edit")
        page.driver.switch_to.active_element.send_keys(Keys.CONTROL, "a")
        page.driver.switch_to.active_element.send_keys(QUESTION, Keys.ENTER)
        until(lambda: len(page.all(".answer")) == 1 and page.last() == ANSWER, "the other question is answered")
        self.assertEqual([node.text for node in page.all(".question .text")], [QUESTION])
        self.assertEqual(page.answered(), ANSWER)

    def test_an_example_is_asked(self):
        page = self.page
        until(lambda: [b.text for b in page.all("#examples button")][1:2] == [QUESTION], "examples that the model knows")
        page.shoot("empty")
        page.set(temperature="0")
        page.all("#examples button")[1].click()
        self.assertEqual(page.answered(), ANSWER)
        self.assertFalse(page.seen("#examples"))

    def test_an_answer_that_grows_keeps_what_stands(self):
        page = self.page
        page.set(**ENDLESS)
        page.answers(MARKUP)
        page.write("Show me.")
        until(lambda: page.all(".answer blockquote"), "the beginning")
        page.script("window.first = document.querySelector('.answer .text').firstElementChild")
        page.answered()
        self.assertTrue(page.script("return document.querySelector('.answer .text').firstElementChild === window.first"))
        grown = page.script("return document.querySelector('.answer .text').innerHTML")
        page.driver.refresh()
        self.assertEqual(page.script("return document.querySelector('.answer .text').innerHTML"), grown)


class ThePool(Base):
    def test_a_worker_that_dies_does_not_end_the_answer(self):
        page = self.page
        long = {**ENDLESS, "max_tokens": 5000}
        whole = self.pool.ask(STORY, **long)
        page.set(**long)
        page.write(STORY)
        until(lambda: len(page.last()) > 200, "an answer that goes on")
        at_work = until(lambda: [worker for worker in self.pool.status()["workers"] if worker["active"]], "a worker is at work")
        self.assertEqual(len(at_work), 1)
        os.kill(at_work[0]["pid"], signal.SIGKILL)
        until(lambda: any("restarted once" in row.text for row in page.all("#workers li")), "the picture shows the new worker")
        page.shoot("killed")
        self.assertEqual(page.answered(), whole)
        self.assertEqual(page.seen(".notice"), [])
        self.assertGreaterEqual(self.pool.status()["moved"], 1)

    def test_the_picture_shows_what_is_done(self):
        page = self.page
        until(lambda: len(page.all("#workers li")) == 2, "both workers")
        self.assertIn("2 of 2 workers ready", page.text("#summary"))
        until(lambda: "idle" in page.text("#workers li"), "a worker is idle")
        page.set(**ENDLESS)
        page.write(STORY)
        until(lambda: any("answering 1" in row.text for row in page.all("#workers li")), "a worker is at work")
        until(lambda: page.text("#figures div:nth-child(2) dd") == "1", "one request is running")
        until(lambda: float(page.text("#figures dd").replace(",", "")) > 10, "tokens are made")
        until(lambda: page.script("return document.querySelector('.strip .line').getAttribute('d').split('L').length") > 3,
              "the chart has a line")
        self.assertRegex(page.one(".strip svg").get_attribute("aria-label"), r"^Tokens generated: now .* tokens/s, at most ")
        page.shoot("pool-light")
        page.colours("dark")
        page.shoot("pool-dark")
        page.one("#stop").click()
        until(lambda: page.text("#figures div:nth-child(2) dd") == "0", "none is running")

    def test_it_is_dark_where_the_system_is(self):
        page = self.page
        colours = "const s = getComputedStyle(document.body); return [s.backgroundColor, s.color]"
        light = page.script(colours)
        page.colours("dark")
        dark = page.script(colours)
        brightness = lambda colour: sum(int(part) for part in colour[4:-1].split(",")[:3])
        self.assertGreater(brightness(light[0]), brightness(light[1]) + 300)
        self.assertGreater(brightness(dark[1]), brightness(dark[0]) + 300)

    def test_it_fits_a_phone(self):
        page = self.page
        page.size(360, 740, phone=True)
        page.driver.refresh()
        page.set(temperature="0")
        page.script("document.querySelector('[data-show=chat]').click()")
        page.write("What is Quern?")
        page.answered()
        page.write(f"{'long' * 100} `{'code' * 100}`\n")
        page.answered()
        for view in ("settings", "history", "pool", "chat"):
            page.one(f"[data-show={view}]").click()
            self.assertTrue(page.seen(f"#{view}"))
            self.assertEqual(len(page.seen("#chat, #pool, #settings, #history")), 1)
            self.assertTrue(page.fits(), view)
            page.shoot(f"phone-{view}")

    def test_the_page_says_when_the_pool_is_gone(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="quern-page-"))
        self.addCleanup(shutil.rmtree, folder, True)
        other = Pool(folder, "1024")
        page = self.page
        page.open(other.url)
        until(lambda: "workers ready" in page.text("#summary"), "a pool")
        other.end()
        until(lambda: "does not answer" in page.text("#pool-trouble"), "the page says so")
        page.write("Hi")
        until(lambda: page.seen(".answer .notice"), "an answer in words")
        self.assertIn("The gateway does not answer", page.text(".answer .notice"))
        page.shoot("gone")


@unittest.skipUnless(arguments.screenshots, "there is nobody to look at it")
class Gallery(Base):
    """What docs/ shows: a pool that others use too, for as long as the chart needs."""
    context = "1024"
    SECONDS = 120

    def others(self, number):
        """Requests of somebody else, more of them in the middle of the time."""
        begun = time.monotonic()
        while (at := (time.monotonic() - begun) / self.SECONDS) < 1:
            if abs(at - 0.55) * 14 < 7 - number:
                self.pool.ask(STORY, **{**ENDLESS, "max_tokens": 900 + 15 * number})
            time.sleep(0.05 * (number + 1))

    def test_pictures(self):
        page = self.page
        asked = ["What is Quern?", QUESTION, "What happens when a worker dies?", "How do I start Quern?"]
        others = [threading.Thread(target=self.others, args=[number], daemon=True) for number in range(7)]
        for other in others:
            other.start()
        time.sleep(self.SECONDS * 0.6)
        page.set(temperature=0)
        for n, question in enumerate(asked, 1):
            page.write(question)
            until(lambda: len(page.all(".answer")) == n and not page.busy(), "an answer")
        page.write("List the days of the week in order.")
        time.sleep(self.SECONDS * 0.1)
        until(lambda: len([row for row in page.all("#workers li") if "answering" in row.text]) == 2, "both workers are at work")
        page.shoot("page-chat")
        page.one("#clear").click()
        page.colours("dark")
        page.one("#token-view").click()
        page.set(temperature=1.2, seed=11, top_k=0, top_p=1, min_p=0)
        for n, question in enumerate((STORY, "What colour is the sky?"), 1):
            page.write(question)
            until(lambda: len(page.all(".answer")) == n and not page.busy(), "an answer")
        unsure = page.all(".answer:first-of-type .level-3, .level-3, .level-2, .level-4")
        page.script("arguments[0].focus()", unsure[0])
        page.shoot("page-tokens")
        page.size(360, 740, phone=True)
        page.one("[data-show=pool]").click()
        page.shoot("page-phone")
        for other in others:
            other.join(WAIT)


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


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
