// SPDX-License-Identifier: MIT
// One answer on the page: its text as it comes, or its tokens; below them how it ended and what can be done.

import { copyButton, count, element, milliseconds, number, setText } from "./dom.js";
import { Markup } from "./markup.js";
import { TokenView } from "./tokens.js";

const ENDS = {
  length: "cut off at the token limit",
  stopped: "stopped",
};

// What an answer says of itself when it is over, in parts.
function facts(answer) {
  const parts = [];
  const { usage, timings } = answer;
  if (ENDS[answer.end]) parts.push(ENDS[answer.end]);
  if (usage) {
    parts.push(count(usage.completion_tokens, "token"));
    if (timings?.decode_ms > 0 && usage.completion_tokens > 1)
      parts.push(`${number((usage.completion_tokens * 1000) / timings.decode_ms)} tokens/s`);
  }
  if (answer.firstMs !== undefined) parts.push(`first after ${milliseconds(answer.firstMs)}`);
  const cached = usage?.prompt_tokens_details?.cached_tokens;
  if (cached) parts.push(`${number(cached)} of ${count(usage.prompt_tokens, "prompt token")} from the cache`);
  return parts.join(" · ");
}

// What there is to say before the answer begins: of a long prompt, how much is read.
function reading({ content, tokens, progress }) {
  if (content !== "" || tokens || !progress || progress.processed >= progress.total) return "";
  const percent = Math.floor((100 * progress.processed) / progress.total);
  return `Reading the prompt: ${percent} % of ${count(progress.total, "token")}`;
}

export class AnswerView {
  // `answer` is a message of the conversation, which is read at each update; `again` asks for it anew.
  constructor(answer, again) {
    this.answer = answer;
    this.text = element("div", { class: "text" });
    this.markup = new Markup(this.text);
    this.reading = element("p", { class: "fine reading", hidden: true });
    this.thoughtText = element("div", { class: "words" });
    this.thoughtName = element("summary");
    this.thought = element("details", { class: "thought", hidden: true }, this.thoughtName, this.thoughtText);
    this.facts = element("p", { class: "facts" });
    this.trouble = element("p", { class: "notice", role: "alert", hidden: true });
    this.copyButton = copyButton(() => this.answer.content, "Copy the answer");
    this.againButton = element("button", { type: "button", class: "quiet again", text: "Regenerate", onclick: again });
    this.foot = element("div", { class: "foot" }, this.facts, this.copyButton, this.againButton);
    this.node = element("article", { class: "answer", "aria-label": "Answer" }, this.reading, this.thought, this.text, this.trouble, this.foot);
    this.tokens = null;
  }

  update({ running, asTokens }) {
    const { answer } = this;
    this.node.setAttribute("aria-busy", String(running));
    const tokens = asTokens && answer.tokens?.length > 0;
    if (tokens && !this.tokens) {
      this.tokens = new TokenView();
      this.text.after(this.tokens.node);
    }
    if (tokens) this.tokens.show(answer.tokens);
    else this.markup.show(answer.content);
    this.text.hidden = tokens;
    this.thought.hidden = !answer.thought;
    setText(this.thoughtText, answer.thought ?? "");
    setText(this.thoughtName, running && answer.content === "" ? "Thinking…" : "Thought");
    if (this.tokens) this.tokens.node.hidden = !tokens;
    const part = running ? reading(answer) : "";
    setText(this.reading, part);
    this.reading.hidden = part === "";
    setText(this.facts, facts(answer));
    setText(this.trouble, answer.error ?? "");
    this.trouble.hidden = !answer.error;
    this.foot.hidden = running;
    this.copyButton.hidden = answer.content === "";
  }
}
