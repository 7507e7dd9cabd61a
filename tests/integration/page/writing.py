# SPDX-License-Identifier: MIT
"""What answers look like, and conversations that are kept, edited and exported."""

import json

from selenium.webdriver.common.keys import Keys

from support import ANSWER, Base, ENDLESS, QUESTION, until

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


MIXED = """Before
- a | b
- c
- d
  - e

    f
- g | h
--|--
- - -
1. x
2. ```
   y
3. z
   ```
10. w
3) v

| a | b |
|--:|:-:|
| 1 | `2|` |
| 3 | 4 |
| 5
| 6 | 7 | 8 |
after | that
no more

* one
* two
* three
- four
- five
- six
- ---
> - seven
> - eight
> - nine
"""


class Writing(Base):
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
        page.set(temperature="0")  # which another tab does not have
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

    def test_a_text_is_shown_as_whole_however_it_came(self):
        page = self.page
        for text in (MARKUP, MIXED):
            differ = page.driver.execute_async_script("""
                const [text, done] = arguments;
                import("./page/markup.js").then(({ Markup }) => {
                  for (const step of [1, 2, 7, 30]) {
                    const node = document.createElement("div");
                    const growing = new Markup(node);
                    for (let end = 0; end < text.length + step; end += step) {
                      growing.show(text.slice(0, end));
                      const whole = document.createElement("div");
                      new Markup(whole).show(text.slice(0, end));
                      if (whole.innerHTML !== node.innerHTML) return done(`${step}: ${text.slice(0, end)}`);
                    }
                  }
                  done("");
                });""", text)
            self.assertEqual(differ, "")

    def test_of_a_long_list_or_table_only_the_end_is_read_again(self):
        page = self.page
        for head, child in (("", "- an item, with `code`\n"), ("", "1. an item\n\n   of two parts\n"), ("a | b\n--|--\n", "1 | **2**\n"),
                            ("Words:\n", "- an item\n  - another\n")):
            behind, children, first_stays = page.driver.execute_async_script("""
                const [head, child, done] = arguments;
                import("./page/markup.js").then(({ Markup }) => {
                  const node = document.createElement("div");
                  const growing = new Markup(node);
                  let text = head;
                  let behind = 0;
                  let first;
                  for (let n = 0; n < 3000; n++) {
                    text += child;
                    growing.show(text);
                    first ??= node.querySelector("li, tr");
                    if (n > 10) behind = Math.max(behind, text.length - growing.reader.place);
                  }
                  done([behind, node.querySelectorAll(":scope > * > li, tr").length, first === node.querySelector("li, tr")]);
                });""", head, child)
            self.assertLessEqual(behind, 3 * len(child))
            self.assertEqual(children, 3000 + ("|" in head))
            self.assertTrue(first_stays)
