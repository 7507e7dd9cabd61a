// SPDX-License-Identifier: MIT
// The page: puts its parts together. The chat stands beside one of the others where there is room; else one part
// is shown, as the buttons at the top say.

import { Chat } from "./chat.js";
import { byId, element, memory } from "./dom.js";
import { offerExamples } from "./examples.js";
import { key } from "./gateway.js";
import { History } from "./history.js";
import { Pool } from "./pool.js";
import { Settings } from "./settings.js";

const wide = matchMedia("(min-width: 62rem)");

function show(view) {
  // Beside the chat, the pool is what there is to see.
  const shown = wide.matches && view === "chat" ? "pool" : view;
  document.body.dataset.view = shown;
  for (const button of document.querySelectorAll("[data-show]"))
    button.setAttribute("aria-current", String(button.dataset.show === shown));
  memory.write("view", view);
}

// `models`: {name, chat}, as the pool has them.
function offerModels(models) {
  const names = models.map(({ name }) => name);
  const choice = byId("model");
  const chosen = choice.value || memory.read("model");
  choice.replaceChildren(...names.map((name) => element("option", { value: name, text: name })));
  if (names.includes(chosen)) choice.value = chosen;
  byId("model-choice").hidden = names.length < 2;
}

function askForKeys() {
  const dialog = byId("key-dialog");
  let declined = false; // the key that is here was refused, and no other is to be had
  const open = () => {
    if (dialog.open) return;
    dialog.returnValue = "";
    dialog.showModal();
  };
  key.whenNeeded((why) => {
    byId("key-text").textContent = why;
    byId("key-button").hidden = false;
    if (!declined) open();
  });
  byId("key-button").addEventListener("click", open);
  byId("key-cancel").addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => {
    declined = dialog.returnValue !== "used";
    byId("message").focus();
  });
  byId("key-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const written = byId("key").value.trim();
    if (!/^[\x21-\x7e]+$/.test(written)) {
      byId("key-text").textContent = "A key consists of ASCII letters, digits and symbols, without blanks.";
      return;
    }
    key.set(written);
    byId("key").value = "";
    byId("key-button").hidden = true;
    dialog.close("used");
  });
}

askForKeys();
const settings = new Settings();
settings.show = () => show("settings");
const chat = new Chat(settings);
new History(chat, () => {
  if (!wide.matches) show("chat");
});
let models = [];
const tellChat = () => chat.setModelChats(models.find(({ name }) => name === byId("model").value)?.chat ?? true);
chat.whenPlain = (plain) => offerExamples(models.map(({ name }) => name), plain, (text) => chat.askFor(text));
tellChat();
byId("model").addEventListener("change", () => {
  memory.write("model", byId("model").value);
  tellChat();
});
for (const button of document.querySelectorAll("[data-show]"))
  button.addEventListener("click", () => show(button.dataset.show));
wide.addEventListener("change", () => show(memory.read("view") ?? "chat"));
show(memory.read("view") ?? "chat");
new Pool((found) => {
  models = found;
  offerModels(models);
  tellChat();
}).watch();
