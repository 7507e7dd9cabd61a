// SPDX-License-Identifier: MIT
// The list of conversations: opened, renamed, deleted, exported.

import { byId, element } from "./dom.js";
import { nameOf, store } from "./store.js";
import { contentOf } from "./transcript.js";

const date = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

export function asMarkdown(conversation) {
  const parts = [`# ${nameOf(conversation)}`];
  for (const message of conversation.messages) {
    const { role, thought, calls = [], error } = message;
    const content = contentOf(message);
    parts.push(role === "user" ? "## You" : "## Model");
    if (thought) parts.push(thought.split("\n").map((line) => `> ${line}`).join("\n"));
    if (content) parts.push(content);
    for (const { name, arguments: given, result } of calls) parts.push(`Called ${name}: \`${given}\`${result ? ` → ${result}` : ""}`);
    if (error) parts.push(`(${error})`);
  }
  return `${parts.join("\n\n")}\n`;
}

function download(conversation, suffix, type, text) {
  const name = nameOf(conversation).replace(/[^\p{L}\p{N} _-]/gu, "").trim() || "conversation";
  const address = URL.createObjectURL(new Blob([text], { type }));
  element("a", { href: address, download: `${name}.${suffix}` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}

export class History {
  // `chat` has the open conversation; `opened` is called when one was chosen.
  constructor(chat, opened) {
    this.chat = chat;
    this.opened = opened;
    this.list = byId("conversations");
    chat.whenKept = () => this.show();
    store.whenOthersChange((id) => {
      chat.changedElsewhere(id);
      this.show();
    });
    this.show();
  }

  show() {
    if (this.list.querySelector("input")) return; // a name is being written
    const all = store.list();
    this.list.replaceChildren(...all.map((conversation) => this.row(conversation)));
    byId("no-conversations").hidden = all.length > 0;
  }

  row(conversation) {
    const name = nameOf(conversation);
    const button = (text, onclick) => element("button", { type: "button", class: "quiet", text, "aria-label": `${text}: ${name}`, onclick });
    const open = element("button", { type: "button", class: "name", text: name, "aria-current": String(conversation.id === this.chat.current.id),
      onclick: () => {
        this.chat.open(conversation.id);
        this.opened();
      } });
    const row = element("li", {}, open, element("p", { class: "fine", text: date.format(conversation.changed) }),
      element("p", { class: "doings" },
        button("Rename", () => this.rename(conversation, row)),
        button("JSON", () => download(conversation, "json", "application/json", JSON.stringify(conversation, null, 2))),
        button("Markdown", () => download(conversation, "md", "text/markdown", asMarkdown(conversation))),
        button("Delete", () => this.remove(conversation))));
    return row;
  }

  rename(conversation, row) {
    const input = element("input", { value: nameOf(conversation), maxlength: 200, "aria-label": "Name of the conversation" });
    const done = (keep) => {
      if (!input.isConnected) return;
      input.remove();
      if (keep && input.value.trim()) this.chat.rename(conversation.id, input.value.trim());
      this.show();
    };
    input.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.isComposing) done(true);
      else if (event.key === "Escape") done(false);
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    input.addEventListener("blur", () => setTimeout(() => done(true)));
    row.firstElementChild.replaceWith(input);
    input.select();
  }

  remove(conversation) {
    if (!confirm(`Delete “${nameOf(conversation)}”? It cannot be brought back.`)) return;
    store.remove(conversation.id);
    if (conversation.id === this.chat.current.id) this.chat.forget();
    this.show();
  }
}
