// SPDX-License-Identifier: MIT
// One question on the page; it can be written anew, and what follows it is then asked anew.

import { element } from "./dom.js";

export class QuestionView {
  // `again` is called with the new text. While an answer runs it takes none.
  constructor(message, again) {
    this.message = message;
    this.again = again;
    this.node = element("article", { class: "question", "aria-label": "You" });
    this.show();
  }

  show() {
    this.editButton = element("button", { type: "button", class: "quiet edit", text: "Edit", "aria-label": "Edit this message", onclick: () => this.edit() });
    this.node.replaceChildren(element("div", { class: "text", text: this.message.content }), this.editButton);
  }

  edit() {
    const field = element("textarea", { "aria-label": "Message", rows: Math.min(12, this.message.content.split("\n").length + 1) });
    field.value = this.message.content;
    const back = () => {
      this.show();
      this.editButton.focus();
    };
    const form = element("form", { class: "editing", onsubmit: (event) => {
      event.preventDefault();
      if (field.value.trim() !== "") this.again(field.value.trim());
    }, onkeydown: (event) => {
      if (event.key === "Escape") back();
      else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) form.requestSubmit();
      else return;
      event.preventDefault();
      event.stopPropagation();
    } }, field, element("p", { class: "fine", text: "The answers below it are replaced." }),
      element("div", { class: "controls" }, element("button", { type: "button", text: "Cancel", onclick: back }),
        element("button", { type: "submit", class: "main", text: "Send" })));
    this.node.replaceChildren(form);
    field.focus();
  }
}
