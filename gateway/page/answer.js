// SPDX-License-Identifier: MIT
// One answer on the page: its text as it comes, or its tokens; below them how it ended and what can be done.

import { CallsView } from "./calls.js";
import { copyButton, count, element, milliseconds, number, setText } from "./dom.js";
import { Markup } from "./markup.js";
import { TokenView } from "./tokens.js";

const ENDS = {
  length: "cut off at the token limit",
  stopped: "stopped",
};

// Where there is little room, figures are folded.
export const narrow = matchMedia("(max-width: 36rem)");

// The figures of an answer that is over.
function figuresOf(answer) {
  const parts = [];
  const { usage, timings } = answer;
  if (usage) {
    parts.push(count(usage.completion_tokens, "token"));
    if (timings?.decode_ms > 0 && usage.completion_tokens > 1)
      parts.push(`${number((usage.completion_tokens * 1000) / timings.decode_ms)} tokens/s`);
  }
  if (answer.firstMs !== undefined) parts.push(`first after ${milliseconds(answer.firstMs)}`);
  const cached = usage?.prompt_tokens_details?.cached_tokens;
  if (cached) parts.push(`${number(cached)} of ${count(usage.prompt_tokens, "prompt token")} from the cache`);
  return parts;
}

// What there is to say before the answer begins: of a long prompt, how much is read.
function reading({ content, tokens, progress }) {
  if (content !== "" || tokens || !progress || progress.processed >= progress.total) return "";
  const percent = Math.floor((100 * progress.processed) / progress.total);
  return `Reading the prompt: ${percent} % of ${count(progress.total, "token")}`;
}

export class AnswerView {
  // `answer` is a message of the conversation, which is read at each update; `again` asks for it anew, `goOn` with
  // what its tool calls returned. `plain`: it is shown as it is.
  constructor(answer, { plain, again, goOn }) {
    this.answer = answer;
    this.plain = plain;
    this.text = element("div", { class: plain ? "text plain" : "text" });
    this.markup = new Markup(this.text);
    this.calls = new CallsView(goOn);
    this.reading = element("p", { class: "fine reading", hidden: true });
    this.thoughtText = element("div", { class: "words" });
    this.thoughtName = element("summary");
    this.thought = element("details", { class: "thought", hidden: true }, this.thoughtName, this.thoughtText);
    this.facts = element("p", { class: "facts" });
    this.figures = element("p", { class: "fine" });
    this.folded = element("details", { class: "folded fine" }, element("summary", { text: "Statistics" }), this.figures);
    this.trouble = element("p", { class: "notice", role: "alert", hidden: true });
    this.copyButton = copyButton(() => this.answer.content, "Copy the answer");
    this.againButton = element("button", { type: "button", class: "quiet again", text: "Regenerate", onclick: again });
    this.foot = element("div", { class: "foot" }, this.facts, this.folded, this.copyButton, this.againButton);
    this.node = element("article", { class: "answer", "aria-label": "Answer" }, this.reading, this.thought, this.text, this.calls.node, this.trouble, this.foot);
    this.tokens = null;
  }

  // `last`: nothing follows it.
  update({ running, last, asTokens }) {
    const { answer } = this;
    this.node.setAttribute("aria-busy", String(running));
    const tokens = asTokens && answer.tokens?.length > 0;
    if (tokens && !this.tokens) {
      this.tokens = new TokenView();
      this.text.after(this.tokens.node);
    }
    if (tokens) this.tokens.show(answer.tokens);
    else if (this.plain) setText(this.text, answer.content);
    else this.markup.show(answer.content);
    this.calls.update(answer.calls, { running, last });
    this.text.hidden = tokens;
    this.thought.hidden = !answer.thought;
    setText(this.thoughtText, answer.thought ?? "");
    setText(this.thoughtName, running && answer.content === "" ? "Thinking…" : "Thought");
    if (this.tokens) this.tokens.node.hidden = !tokens;
    const part = running ? reading(answer) : "";
    setText(this.reading, part);
    this.reading.hidden = part === "";
    this.showFigures();
    setText(this.trouble, answer.error ?? "");
    this.trouble.hidden = !answer.error;
    this.foot.hidden = running;
    this.copyButton.hidden = answer.content === "";
  }

  showFigures() {
    const figures = figuresOf(this.answer);
    const end = ENDS[this.answer.end];
    setText(this.facts, (narrow.matches ? [end] : [end, ...figures]).filter(Boolean).join(" · "));
    setText(this.figures, figures.join(" · "));
    this.folded.hidden = !narrow.matches || figures.length === 0;
  }
}
