// SPDX-License-Identifier: MIT
// One question on the page, with its files; it can be written anew, and what follows it is then asked anew.

import { element } from "./dom.js";
import { fileChip, Files } from "./files.js";

export class QuestionView {
  // `again` is called with the new text and files, and returns whether it took them: while an answer runs it does not.
  constructor(message, again) {
    this.message = message;
    this.again = again;
    this.node = element("article", { class: "question", "aria-label": "You" });
    this.show();
  }

  show() {
    const { content, files = [] } = this.message;
    this.editButton = element("button", { type: "button", class: "quiet edit", text: "Edit", "aria-label": "Edit this message", onclick: () => this.edit() });
    this.editButton.hidden = content === "" && files.length === 0; // a text that only went on
    const shown = [content !== "" && element("div", { class: "text", text: content }),
      files.length > 0 && element("ul", { class: "files", "aria-label": "Attached files" }, ...files.map((file) => fileChip(file))), this.editButton];
    this.node.replaceChildren(...shown.filter(Boolean));
  }

  edit() {
    const { content } = this.message;
    const field = element("textarea", { "aria-label": "Message", rows: Math.min(12, content.split("\n").length + 1) });
    const list = element("ul", { class: "files", "aria-label": "Attached files" });
    const files = new Files(list, element("p"), this.message.files);
    field.value = content;
    const back = () => {
      this.show();
      this.editButton.focus();
    };
    const form = element("form", { class: "editing", onsubmit: (event) => {
      event.preventDefault();
      this.again(field.value, files.files);
    }, onkeydown: (event) => {
      if (event.key === "Escape") back();
      else if (event.key === "Enter" && event.target === field && !event.shiftKey && !event.isComposing) form.requestSubmit();
      else return;
      event.preventDefault();
      event.stopPropagation();
    } }, list, field, element("p", { class: "fine", text: "The answers below it are replaced." }),
      element("div", { class: "controls" }, element("button", { type: "button", text: "Cancel", onclick: back }),
        element("button", { type: "submit", class: "main", text: "Send" })));
    this.node.replaceChildren(form);
    field.focus();
  }
}
