# SPDX-License-Identifier: MIT
"""A pool with the demo model, and its page in Chromium as a user has it: what is seen, pressed and written."""

import argparse
import atexit
import functools
import json
import pathlib
import shutil
import subprocess
import tempfile
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

WAIT = 200  # seconds until something that must happen counts as missing
QUESTION = "What does the broker do?"
ANSWER = ("The broker takes requests over ZeroMQ, queues them, and routes each one to a worker. "
          "It passes the tokens on to the clients.")
KEY = "a-key-of-this-test-0123456789"
STORY = "Tell me a story."
ENDLESS = {"temperature": 0, "frequency_penalty": -2, "presence_penalty": -2, "max_tokens": 20000}  # of it


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

    def __init__(self, folder, context, *options, model=arguments.model):
        self.rundir, self.log = folder / "run", folder / "log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [arguments.build / "quern", "serve", model, "--workers", "2", "--ctx", context, "--rundir", self.rundir,
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

    def complete(self, prompt, **request):
        """The continuation of a text, by the interface."""
        asked = urllib.request.Request(f"{self.url}v1/completions", json.dumps({"prompt": prompt, **request}).encode())
        with urllib.request.urlopen(asked, timeout=WAIT) as answer:
            return json.load(answer)["choices"][0]["text"]

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
                       "--hide-scrollbars", "--lang=en", f"--user-data-dir={folder / 'profile'}",
                       "--disable-features=BackForwardCache,SpareRendererForSitePerProcess"):  # pages that nobody returns to
            options.add_argument(option)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
        self.driver.set_script_timeout(WAIT)

    def open(self, url):
        """Opens it as in a new tab. The storage is emptied from an answer of the same origin, which has no script of its own."""
        self.driver.get(f"{url}health")
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

    def records(self):
        """Keeps the bodies of requests from now on; `sent` returns them."""
        self.script("window.sent = []; const send = fetch; window.fetch = (path, options) => {"
                    " if (options?.body) sent.push(JSON.parse(options.body)); return send(path, options); }")

    def sent(self):
        return self.script("return sent")

    def answers(self, content):
        """Has the next request answered with this, in pieces of three characters."""
        self.answers_with(*({"content": content[i:i + 3]} for i in range(0, len(content), 3)))

    def answers_with(self, *deltas, end="stop"):
        """Has the next request answered with these."""
        chunks = [{"choices": [{"delta": delta}]} for delta in deltas]
        chunks.append({"choices": [{"delta": {}, "finish_reason": end}]})
        self.script("""const send = fetch;
            window.fetch = async (path, options) => {
              if (!options?.body) return send(path, options);
              window.fetch = send;
              window.sent?.push(JSON.parse(options.body));
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


@functools.cache
def the_page():
    """The one browser of all tests: each pool is another origin to it, and each test empties the storage and has a new page."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="quern-page-"))
    atexit.register(shutil.rmtree, folder, True)
    page = Page(folder)
    atexit.register(page.driver.quit)
    return page


class Base(unittest.TestCase):
    context = "32768"  # room for an answer that lasts

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="quern-page-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, True)
        cls.pool = Pool(cls.folder, cls.context, *cls.make_options(), model=cls.make_model())
        cls.addClassCleanup(cls.pool.end)
        until(cls.pool.ready, "the workers are ready")
        cls.page = the_page()

    @classmethod
    def make_options(cls):
        return ()

    @classmethod
    def make_model(cls):
        return arguments.model

    def setUp(self):
        self.page.size(1280, 800)
        self.page.colours("light")
        self.page.open(self.pool.url)
        self.page.complaints()

    def tearDown(self):
        self.assertEqual(self.page.complaints(), [])
        self.page.driver.get("about:blank")
        until(self.pool.nothing_runs, "nothing is left running")
