# SPDX-License-Identifier: MIT
"""The view of the pool, on screens of all kinds, and the pictures in docs/."""

import os
import pathlib
import shutil
import signal
import tempfile
import threading
import time
import unittest

from support import arguments, Base, ENDLESS, Pool, QUESTION, STORY, until, WAIT


class ThePool(Base):
    def test_a_worker_that_dies_does_not_end_the_answer(self):
        page = self.page
        long = {**ENDLESS, "max_tokens": 2000}
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
        self.assertEqual(page.text(".answer:last-of-type .facts"), "")
        figures = page.one(".answer:last-of-type .folded p")
        self.assertFalse(figures.is_displayed())
        page.one(".answer:last-of-type .folded summary").click()
        self.assertRegex(figures.text, r"^\d+ tokens · ")
        self.assertTrue(page.fits())
        page.size(1280, 800)
        until(lambda: not page.seen(".folded") and page.text(".answer:last-of-type .facts"), "they are shown where there is room")
        page.size(360, 740, phone=True)
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
