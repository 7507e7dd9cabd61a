// SPDX-License-Identifier: MIT
// Text files that go with a message: {name, text}. What is no text, or too large, is refused by name. They are kept
// with the conversation, whose room is the browser's, hence the bounds.

import { bytes, element } from "./dom.js";

export const FILES_MOST = 8; // of one message,
const FILE_BYTES = 256 * 1024; // each of so much,
const ALL_BYTES = 1024 * 1024; // all together
const NAME_MOST = 200; // characters

const sizeOf = (text) => new TextEncoder().encode(text).length;

function textOf(data) {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(data);
    return text.includes("\0") ? null : text;
  } catch {
    return null;
  }
}

// One line, for it stands in what the model reads.
const nameOf = (file) => file.name.replace(/[\p{Cc}\p{Zl}\p{Zp}]/gu, " ").slice(0, NAME_MOST) || "without a name";

// A file that is part of a message; opened, it shows its text. `remove` is called to take it away; else it stays.
export function fileChip({ name, text }, remove) {
  const shown = element("details", { class: "file" },
    element("summary", {}, element("span", { class: "name", text: name }), ` ${bytes(sizeOf(text))}`),
    element("pre", { tabindex: 0, "aria-label": name, text }));
  const button = remove && element("button", { type: "button", class: "quiet", text: "×", "aria-label": `Remove ${name}`, onclick: remove });
  return element("li", {}, shown, ...(button ? [button] : []));
}

// The files of a message that is being written.
export class Files {
  // `list` shows them, `refusals` says which were refused and why.
  constructor(list, refusals, files = []) {
    this.list = list;
    this.refusals = refusals;
    this.files = [...files];
    this.pending = Promise.resolve();
    this.show();
  }

  // One selection after the other: what both have room for does not depend on which is read first.
  add(chosen) {
    const all = [...chosen];
    this.pending = this.pending.then(async () => {
      const refused = [];
      for (const file of all) {
        const why = await this.take(file);
        if (why) refused.push(`${nameOf(file)}: ${why}`);
      }
      this.refuse(refused);
      this.show();
    });
    return this.pending;
  }

  // Why a file was refused; "": it was not.
  async take(file) {
    const name = nameOf(file);
    if (this.files.some((other) => other.name === name)) return "a file of this name is attached already.";
    if (this.files.length === FILES_MOST) return `at most ${FILES_MOST} files go with a message.`;
    if (file.size > FILE_BYTES) return `${bytes(file.size)}; at most ${bytes(FILE_BYTES)} are allowed.`;
    let text;
    try {
      text = textOf(await file.arrayBuffer());
    } catch {
      return "it cannot be read.";
    }
    if (text === null) return "it is not text in UTF-8.";
    if (text.trim() === "") return "it is empty.";
    const before = this.files.reduce((sum, other) => sum + sizeOf(other.text), 0);
    if (before + sizeOf(text) > ALL_BYTES) return `all files of a message have at most ${bytes(ALL_BYTES)}.`;
    this.files.push({ name, text });
    return "";
  }

  refuse(reasons) {
    this.refusals.hidden = reasons.length === 0;
    this.refusals.replaceChildren(...reasons.map((reason) => element("span", { text: `Not attached: ${reason}` })));
  }

  remove(file) {
    this.files = this.files.filter((other) => other !== file);
    this.refuse([]);
    this.show();
  }

  show() {
    this.list.hidden = this.files.length === 0;
    this.list.replaceChildren(...this.files.map((file) => fileChip(file, () => this.remove(file))));
  }

  clear() {
    this.files = [];
    this.refuse([]);
    this.show();
  }
}
