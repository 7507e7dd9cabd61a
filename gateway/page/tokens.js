// SPDX-License-Identifier: MIT
// An answer as its tokens: how sure the model was of each, and what else it might have said.
//
// The tokens are one stop of the Tab key; arrows, Home and End go from one to the next.

import { element } from "./dom.js";

const STEPS = [0.9, 0.6, 0.3, 0.1]; // below each the tint is stronger

const MOST_PARTS = 8; // tokens of one character

function decoded(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(new Uint8Array(bytes));
  } catch {
    return null;
  }
}

// Whether the entry is only a part of a character, such as an emoji.
function isPart(entry) {
  return Boolean(entry.bytes) && decoded(entry.bytes) === null;
}

// The text that the entry at `from` spells together with those behind it, and how many they are; null: nothing, or not
// yet.
function joined(entries, from) {
  let bytes = [];
  for (let n = 0; n < MOST_PARTS && entries[from + n]?.bytes; n++) {
    bytes = bytes.concat(entries[from + n].bytes);
    const text = decoded(bytes);
    if (text !== null) return { text, count: n + 1 };
  }
  return null;
}

// A token as it can be seen: blanks keep their place, a part of a character shows its bytes.
function visible(entry) {
  if (isPart(entry)) return entry.bytes.map((byte) => `‹${byte.toString(16).padStart(2, "0")}›`).join("");
  return entry.token;
}

function named(entry) {
  const text = visible(entry);
  if (text === "") return "(nothing)";
  return text.replaceAll("\n", "⏎").replaceAll("\t", "⇥").replaceAll(" ", "␣");
}

function percent(logprob) {
  const share = Math.exp(logprob) * 100;
  return share > 0 && share < 0.1 ? "< 0.1 %" : `${share.toFixed(1)} %`;
}

function logarithm(logprob) {
  const digits = Math.abs(logprob).toFixed(3);
  return Number(digits) === 0 ? digits : `−${digits}`;
}

function levelOf(logprob) {
  const share = Math.exp(logprob);
  return STEPS.filter((step) => share < step).length;
}

export class TokenView {
  constructor() {
    this.entries = [];
    this.parts = []; // of each: {text, first} where it spells a character with others, else undefined
    this.list = element("div", {
      class: "tokens", role: "listbox", "aria-label": "Tokens; use the arrow keys to move between them",
      onclick: (event) => this.choose(event.target),
      onmouseover: (event) => this.tell(event.target),
      onfocusin: (event) => this.choose(event.target),
      onkeydown: (event) => this.go(event),
    });
    this.detail = element("div", { class: "token-detail", "aria-live": "polite" },
      element("p", { class: "fine", text: "Point at a token, or use the arrow keys." }));
    this.node = element("div", {}, this.list, this.detail);
  }

  // Shows the entries, of which those it has are the first. Parts of a character at the end are shown anew when more
  // comes: the first of them then has the whole character, and dots stand for the others.
  show(entries) {
    let open = this.entries.length;
    while (open > 0 && isPart(this.entries[open - 1]) && !this.parts[open - 1]) open--;
    while (this.list.childElementCount > open) this.list.lastElementChild.remove();
    this.entries.length = this.parts.length = open;
    for (let i = open; i < entries.length; i++) {
      const whole = isPart(entries[i]) ? joined(entries, i) : null;
      for (let k = 0; k < (whole?.count ?? 1); k++)
        this.append(entries[i + k], whole && { text: whole.text, first: k === 0 });
      if (whole) i += whole.count - 1;
    }
  }

  append(entry, part) {
    const text = !part ? visible(entry) : part.first ? part.text : "·";
    const name = part ? `${named(entry)}, part of ${part.text}` : named(entry);
    this.list.append(element("span", { // no button: lines would break at it, inside words
      role: "option", "aria-selected": "false", class: `token level-${levelOf(entry.logprob)}`, text: text.replaceAll("\n", "⏎\n"),
      tabindex: this.list.childElementCount ? -1 : 0, "aria-label": `${name}, ${percent(entry.logprob)}`,
    }));
    this.entries.push(entry);
    this.parts.push(part ?? undefined);
  }

  go(event) {
    const at = [...this.list.children].indexOf(document.activeElement);
    const last = this.list.childElementCount - 1;
    const to = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: last }[event.key];
    if (to === undefined || at < 0) return;
    event.preventDefault();
    this.list.children[Math.min(Math.max(to, 0), last)].focus();
  }

  choose(token) {
    if (!token.classList.contains("token")) return;
    this.list.querySelector("[tabindex='0']")?.setAttribute("tabindex", "-1");
    token.setAttribute("tabindex", "0");
    this.tell(token);
  }

  tell(token) {
    const at = [...this.list.children].indexOf(token);
    const [entry, part] = [this.entries[at], this.parts[at]];
    if (!entry || this.told === entry) return;
    this.told = entry;
    this.list.querySelector("[aria-selected='true']")?.setAttribute("aria-selected", "false");
    token.setAttribute("aria-selected", "true");
    const others = (entry.top_logprobs ?? []).map((other) => {
      const same = other.token === entry.token && String(other.bytes) === String(entry.bytes);
      const bar = element("span", { class: "bar", "aria-hidden": "true" });
      bar.style.setProperty("--share", Math.exp(other.logprob));
      return element("li", same ? { class: "made" } : {}, element("code", { text: named(other) }), bar,
        element("span", { class: "share", text: percent(other.logprob) }));
    });
    this.detail.replaceChildren(
      element("p", {}, element("code", { text: named(entry) }), part ? ` of ${part.text}` : "",
        ` ${percent(entry.logprob)}, log probability ${logarithm(entry.logprob)}`),
      ...(others.length ? [element("ol", {}, ...others)] : []));
  }
}
