// SPDX-License-Identifier: MIT
// Where a message is written, and files are attached: chosen, dropped on the chat, or pasted.

import { byId } from "./dom.js";
import { Files } from "./files.js";

export class Composer {
  // `send` is called when the message is to be sent.
  constructor(send) {
    this.field = byId("message");
    this.files = new Files(byId("files"), byId("refused-files"));
    this.send = send;
    this.listen();
    this.listenForFiles();
    this.fit();
  }

  listen() {
    byId("composer").addEventListener("submit", (event) => {
      event.preventDefault();
      this.send();
    });
    this.field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.send();
    });
    this.field.addEventListener("input", () => this.fit());
  }

  listenForFiles() {
    const choice = byId("file-choice");
    byId("attach").addEventListener("click", () => choice.click());
    choice.addEventListener("change", () => {
      const chosen = [...choice.files];
      choice.value = ""; // the same one can be chosen again
      this.attach(chosen);
    });
    this.field.addEventListener("paste", (event) => {
      if (event.clipboardData.files.length === 0) return;
      event.preventDefault();
      this.attach(event.clipboardData.files);
    });
    const chat = byId("chat");
    chat.addEventListener("dragover", (event) => {
      if (event.dataTransfer.types.includes("Files")) event.preventDefault();
    });
    chat.addEventListener("drop", (event) => {
      if (event.dataTransfer.files.length === 0) return;
      event.preventDefault();
      this.attach(event.dataTransfer.files);
    });
  }

  attach(chosen) {
    this.files.add(chosen);
    this.focus();
  }

  focus() {
    this.field.focus();
  }

  // What is written so far.
  draft() {
    return { content: this.field.value, files: this.files.files };
  }

  clear() {
    this.field.value = "";
    this.files.clear();
    this.fit();
  }

  fit() {
    this.field.style.setProperty("height", "auto");
    this.field.style.setProperty("height", `${this.field.scrollHeight + 2}px`);
  }

  // Whether texts are continued.
  setPlain(plain) {
    this.field.placeholder = plain ? "Write a text to continue" : "Write a message";
    byId("send").textContent = plain ? "Continue" : "Send";
  }
}
