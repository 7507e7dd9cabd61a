// SPDX-License-Identifier: MIT
// Three questions for an empty page, or three beginnings where texts are continued. The demo model knows little but
// Quern, so it has its own questions.

import { byId, element } from "./dom.js";

const QUESTIONS = [
  "Explain how a hash table works, with a short example in Python.",
  "Write a friendly email that moves a meeting to next week.",
  "Compare tea and coffee in a table.",
];
const BEGINNINGS = ["Once upon a time, ", "The three most common mistakes when learning to cook are", "def fibonacci(n):\n"];
const OF_MODELS = new Map([
  ["Quern demo", ["What is Quern?", "What does the broker do?", "What happens when a worker dies?"]],
]);

export function offerExamples(models, plain, ask) {
  const questions = plain ? BEGINNINGS : (models.length === 1 && OF_MODELS.get(models[0])) || QUESTIONS;
  byId("examples").replaceChildren(...questions.map((text) => element("button", { type: "button", text: text.trim(), onclick: () => ask(text) })));
}
