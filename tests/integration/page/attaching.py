# SPDX-License-Identifier: MIT
"""Text files that go with a message."""

import json

from selenium.webdriver.common.keys import Keys

from support import Base, until


class Attaching(Base):
    def file(self, name, data):
        path = self.folder / name
        path.write_bytes(data)
        return str(path)

    def attach(self, *files):
        self.page.one("#file-choice").send_keys("\n".join(files))

    def names(self, where="#files"):
        return [name.text for name in self.page.all(f"{where} .name")]

    def test_files_go_with_a_message_and_stay_with_the_conversation(self):
        page = self.page
        page.set(max_tokens="3")
        page.records()
        self.attach(self.file("notes.txt", "Stones: größer\n".encode()), self.file("fence.md", b"```\nmake\n```"), self.file("away.txt", b"x"))
        until(lambda: len(self.names()) == 3, "three chips")
        page.one("[aria-label='Remove away.txt']").click()
        self.assertEqual(self.names(), ["notes.txt", "fence.md"])
        self.assertIn("17 bytes", page.text("#files li"))
        page.shoot("files")
        page.write("Sum up.")
        page.answered()
        (sent,) = page.sent()
        whole = "File notes.txt:\n```\nStones: größer\n```\n\nFile fence.md:\n````\n```\nmake\n```\n````\n\nSum up."
        self.assertEqual(sent["messages"], [{"role": "user", "content": whole}])
        self.assertEqual(self.names(), [])
        page.driver.refresh()
        self.assertEqual(self.names(".question"), ["notes.txt", "fence.md"])
        self.assertFalse(page.one(".question .file pre").is_displayed())
        page.one(".question .file summary").click()
        self.assertEqual(page.one(".question .file pre").text, "Stones: größer")
        page.size(360, 740, phone=True)
        page.one("[data-show=chat]").click()
        self.assertTrue(page.fits())
        page.shoot("files-phone")
        page.size(1280, 800)
        page.one("[data-show=history]").click()
        page.script("URL.createObjectURL = (blob) => { window.saved = blob; return '#'; }")
        page.one("#conversations .doings button:nth-child(3)").click()
        self.assertIn(whole, page.driver.execute_async_script("saved.text().then(arguments[0])"))
        page.one("#conversations .doings button:nth-child(2)").click()
        kept = json.loads(page.driver.execute_async_script("saved.text().then(arguments[0])"))
        self.assertEqual([file["name"] for file in kept["messages"][0]["files"]], ["notes.txt", "fence.md"])

    def test_files_stay_when_a_message_is_edited(self):
        page = self.page
        page.set(max_tokens="3")
        self.attach(self.file("a.txt", b"one"), self.file("b.txt", b"two"))
        until(lambda: len(self.names()) == 2, "two chips")
        page.one("#message").send_keys(Keys.ENTER)  # files are enough
        page.answered()
        page.one("[data-show=history]").click()
        self.assertEqual(page.text("#conversations .name"), "a.txt")
        page.one(".question .edit").click()
        page.one(".editing [aria-label='Remove a.txt']").click()
        page.records()
        page.one(".editing textarea").send_keys("And now?", Keys.ENTER)
        until(lambda: page.sent(), "it is asked anew")
        page.answered()
        self.assertEqual(page.sent()[0]["messages"], [{"role": "user", "content": "File b.txt:\n```\ntwo\n```\n\nAnd now?"}])
        self.assertEqual(self.names(".question"), ["b.txt"])

    def test_what_is_no_text_or_too_much_is_refused_by_name(self):
        page = self.page
        for name, data, why in (("stone.png", b"\x89PNG\r\n\x1a\n\0\0", "not text in UTF-8"), ("zero.txt", b"a\0b", "not text in UTF-8"),
                                ("latin.txt", "Mühle".encode("latin-1"), "not text in UTF-8"), ("nothing.txt", b"", "empty"),
                                ("large.txt", b"x" * (256 * 1024 + 1), "at most 262 kB are allowed")):
            self.attach(self.file(name, data))
            until(lambda: f"{name}:" in page.text("#refused-files"), name)
            self.assertIn(why, page.text("#refused-files"))
            self.assertEqual(self.names(), [])
        self.attach(*(self.file(f"{n}.txt", b"x" * (250 * 1024)) for n in range(5)), self.file("small.txt", b"y"))
        until(lambda: len(self.names()) == 5, "what there is room for")
        self.assertEqual(self.names(), ["0.txt", "1.txt", "2.txt", "3.txt", "small.txt"])
        self.assertIn("4.txt: all files of a message have at most 1 MB", page.text("#refused-files"))
        self.attach(self.file("small.txt", b"z"), *(self.file(f"m{n}.txt", b"y") for n in range(4)))
        until(lambda: len(self.names()) == 8, "as many as are allowed")
        self.assertIn("small.txt: a file of this name", page.text("#refused-files"))
        self.assertIn("m3.txt: at most 8 files", page.text("#refused-files"))
        self.assertIn("1 byte", page.text("#files li:last-of-type"))
        page.shoot("files-refused")

    def test_files_are_dropped_and_pasted(self):
        page = self.page
        page.script("""
            const data = new DataTransfer();
            data.items.add(new File(["dropped"], "d<b>.txt"));
            document.querySelector("#log").dispatchEvent(new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true}));""")
        until(lambda: self.names() == ["d<b>.txt"], "the dropped one")
        page.script("""
            const data = new DataTransfer();
            data.items.add(new File(["pasted"], "p.txt"));
            document.querySelector("#message").dispatchEvent(new ClipboardEvent("paste", {clipboardData: data, bubbles: true, cancelable: true}));""")
        until(lambda: self.names() == ["d<b>.txt", "p.txt"], "the pasted one")
