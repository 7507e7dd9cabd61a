# SPDX-License-Identifier: MIT
"""Tool calls and thoughts: folded, and answered by who asked."""

import json

from support import Base, until

TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}]


class Calling(Base):
    def ask(self):
        page = self.page
        page.set(tools=json.dumps(TOOLS))
        page.records()
        page.answers_with(
            {"reasoning_content": "I have to look."}, {"content": "Let me see."},
            {"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": {"name": "weather", "arguments": ""}}]},
            {"tool_calls": [{"index": 0, "function": {"arguments": '{"city": '}}]}, {"tool_calls": [{"index": 0, "function": {"arguments": '"<b>Oslo"}'}}]},
            {"tool_calls": [{"index": 1, "id": "call_2", "type": "function", "function": {"name": "clock", "arguments": "{}"}}]}, end="tool_calls")
        page.write("What is the weather?")
        page.answered()

    def test_a_call_is_folded_and_its_result_sent(self):
        page = self.page
        self.ask()
        self.assertEqual(page.sent()[0]["tools"], TOOLS)
        self.assertEqual([title.text for title in page.all(".call summary")], ["Called weather", "Called clock"])
        self.assertFalse(page.one(".call pre").is_displayed())
        self.assertEqual(page.text(".thought summary"), "Thought")
        self.assertFalse(page.one(".thought .words").is_displayed())
        page.one(".call summary").click()
        self.assertEqual(page.one(".call pre").text, '{\n  "city": "<b>Oslo"\n}')
        page.one(".call textarea").send_keys("Rain")
        page.shoot("call")
        page.answers("It rains.")
        page.one(".calls button").click()
        until(lambda: len(page.all(".answer")) == 2, "it goes on")
        self.assertEqual(page.answered(), "It rains.")
        asked = page.sent()[1]["messages"]
        function = {"name": "weather", "arguments": '{"city": "<b>Oslo"}'}
        calls = [{"id": "call_1", "type": "function", "function": function},
                 {"id": "call_2", "type": "function", "function": {"name": "clock", "arguments": "{}"}}]
        self.assertEqual(asked, [
            {"role": "user", "content": "What is the weather?"},
            {"role": "assistant", "content": "Let me see.", "reasoning_content": "I have to look.", "tool_calls": calls},
            {"role": "tool", "tool_call_id": "call_1", "content": "Rain"}, {"role": "tool", "tool_call_id": "call_2", "content": ""}])
        page.driver.refresh()
        self.assertEqual(page.seen(".calls button, .call textarea"), [])
        page.one(".call summary").click()
        self.assertEqual(page.one(".call .returned").text, "Rain")
        page.records()
        page.answers("Still.")
        page.write("And now?")
        until(lambda: len(page.all(".answer")) == 3, "another question")
        page.answered()
        self.assertEqual(page.sent()[0]["messages"], asked + [{"role": "assistant", "content": "It rains."}, {"role": "user", "content": "And now?"}])

    def test_tools_that_are_no_list_are_named_and_nothing_is_sent(self):
        page = self.page
        for tools in ("{", "{}", "[1]", '[{"function": {}}]'):
            page.set(tools=tools)
            self.assertIn("Enter a JSON list of tools", page.text("#setting-tools-help"))
            page.write("Hi")
            self.assertEqual(page.focused(), "setting-tools")
            self.assertEqual(page.all(".answer"), [])
            page.script("document.querySelector('#message').value = ''")
            page.one("[data-show=settings]").click()
