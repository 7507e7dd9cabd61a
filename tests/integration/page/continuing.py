# SPDX-License-Identifier: MIT
"""A model without a chat template, which continues texts; and texts that are continued by one that has a template."""

from pathlib import Path

from selenium.webdriver.common.keys import Keys

from support import arguments, Base, QUESTION, until


class Continuing(Base):
    @classmethod
    def make_model(cls):
        """The demo model, whose template has a name that nobody reads."""
        model = cls.folder / "base.gguf"
        key = b"tokenizer.chat_template"
        model.write_bytes(Path(arguments.model).read_bytes().replace(key, key[:-1] + b"X", 1))
        return model

    def test_a_model_without_a_template_continues_texts(self):
        page = self.page
        until(lambda: page.text("#send") == "Continue", "the page knows the model")
        self.assertTrue(page.one("#plain").is_selected())
        self.assertFalse(page.one("#plain").is_enabled())
        self.assertIn("Once upon a time,", page.text("#examples"))
        page.shoot("plain-empty")
        page.set(temperature="0", max_tokens="6", thinking_budget="0", system="Not sent.", stop="")
        page.records()
        page.write("Once there was a ")
        first = page.answered()
        self.assertNotEqual(first, "")
        self.assertIn("cut off", page.text(".answer .facts"))
        self.assertEqual(page.sent(), [{"prompt": "Once there was a ", "temperature": 0, "max_tokens": 6, "model": "Quern demo", "stream": True,
                                        "stream_options": {"include_usage": True}, "return_progress": True}])
        page.one("#message").send_keys(Keys.ENTER)  # goes on
        until(lambda: len(page.all(".answer")) == 2, "it goes on")
        second = page.answered()
        self.assertEqual(len(page.seen(".question .edit")), 1)
        page.write(" and *then* ")
        until(lambda: len(page.all(".answer")) == 3, "it goes on")
        page.answered()
        self.assertEqual([body["prompt"] for body in page.sent()[1:]], [f"Once there was a {first}", f"Once there was a {first}{second} and *then* "])
        for prompt, answer in (("Once there was a ", first), (f"Once there was a {first}", second)):
            self.assertEqual(answer, self.pool.complete(prompt, temperature=0, max_tokens=6))
        page.shoot("plain")
        page.driver.refresh()
        self.assertEqual(page.text(".question .text"), "Once there was a ")
        self.assertEqual(page.all(".answer em, .answer p.text"), [])
        page.size(360, 740, phone=True)
        page.one("[data-show=chat]").click()
        self.assertTrue(page.fits())
        page.shoot("plain-phone")

    def test_tokens_of_a_text_show_how_sure_the_model_was(self):
        page = self.page
        until(lambda: page.text("#send") == "Continue", "the page knows the model")
        page.one("#token-view").click()
        page.set(temperature="0", top_logprobs="4", max_tokens="8")
        page.write("The broker")
        until(lambda: page.all(".token") and not page.busy(), "tokens")
        said = page.script("return [...document.querySelectorAll('.token')].map(e => e.textContent).join('')")
        self.assertEqual(said, self.pool.complete("The broker", temperature=0, max_tokens=8))
        page.script("document.querySelector('.token').focus()")
        shares = [float(e.text.removeprefix("< ").removesuffix(" %")) for e in page.all(".token-detail .share")]
        self.assertEqual(len(shares), 4)
        self.assertEqual(shares, sorted(shares, reverse=True))


class ContinuingByChoice(Base):
    def test_plain_text_is_a_choice_of_each_conversation(self):
        page = self.page
        until(lambda: page.all("#model option"), "the page knows the model")
        page.set(max_tokens="4", temperature="0")
        page.write(QUESTION)
        page.answered()
        page.one("#plain").click()
        self.assertEqual(page.all(".answer"), [])
        self.assertEqual(page.text("#send"), "Continue")
        page.records()
        page.write("The worker ")
        page.answered()
        self.assertEqual(page.sent()[0]["prompt"], "The worker ")
        page.one("[data-show=history]").click()
        page.all("#conversations .name")[1].click()
        self.assertFalse(page.one("#plain").is_selected())
        self.assertEqual(page.text("#send"), "Send")
        page.all("#conversations .name")[0].click()
        self.assertTrue(page.one("#plain").is_selected())
