// SPDX-License-Identifier: MIT
// What goes with every request: the system prompt, how the next token is chosen, where an answer ends. A field
// that is empty is not sent, and the pool's own default holds.

import { byId, element, memory, setText } from "./dom.js";

// Numbers, by the names of the interface: bounds, what holds when they are empty, what they do.
const NUMBERS = [
  { name: "temperature", label: "Temperature", least: 0, most: 100, initial: "1", help: "0 always picks the likeliest" },
  { name: "top_p", label: "Top P", least: 0, most: 1, initial: "1", help: "sample from the likeliest that sum to P; 1 is off" },
  { name: "top_k", label: "Top K", least: 0, most: 2147483647, whole: true, initial: "0", help: "sample from the K likeliest; 0 is off" },
  { name: "min_p", label: "Min P", least: 0, most: 1, initial: "0", help: "drop those below P times the likeliest" },
  { name: "repetition_penalty", label: "Repetition penalty", least: 0.01, most: 100, initial: "1", help: "penalizes tokens of the prompt and answer; 1 is off" },
  { name: "presence_penalty", label: "Presence penalty", least: -2, most: 2, initial: "0", help: "penalizes tokens of the answer" },
  { name: "frequency_penalty", label: "Frequency penalty", least: -2, most: 2, initial: "0", help: "the same, for each occurrence" },
  { name: "repeat_last_n", label: "Penalty window", least: -1, most: 2147483647, whole: true, initial: "-1", more: true, help: "the last N tokens of prompt and answer; -1 is all" },
  { name: "dynatemp_range", label: "Temperature range", least: 0, most: 100, initial: "0", more: true, help: "the entropy varies the temperature by up to this; 0 is off" },
  { name: "dynatemp_exponent", label: "Temperature exponent", least: 0, most: 100, initial: "1", more: true, help: "the exponent of the entropy" },
  { name: "typical_p", label: "Typical P", least: 0, most: 1, initial: "1", more: true, help: "sample from the most typical that sum to P; 1 is off" },
  { name: "top_n_sigma", label: "Top n\u03c3", least: -1, most: 1000, initial: "0", more: true, help: "drop logits more than N deviations below the largest; 0 is off" },
  { name: "xtc_probability", label: "XTC probability", least: 0, most: 1, initial: "0", more: true, help: "how often the likeliest are excluded; 0 is off" },
  { name: "xtc_threshold", label: "XTC threshold", least: 0, most: 1, initial: "0.1", more: true, help: "their least probability" },
  { name: "dry_multiplier", label: "DRY multiplier", least: 0, most: 100, initial: "0", more: true, help: "penalizes tokens that continue a repetition; 0 is off" },
  { name: "dry_base", label: "DRY base", least: 0, most: 100, initial: "1.75", more: true, help: "the penalty grows by this with each token" },
  { name: "dry_allowed_length", label: "DRY allowed length", least: 1, most: 2147483647, whole: true, initial: "2", more: true, help: "shorter repetitions are allowed" },
  { name: "dry_penalty_last_n", label: "DRY window", least: -1, most: 2147483647, whole: true, initial: "-1", more: true, help: "the last N tokens; -1 is all" },
  { name: "seed", label: "Seed", least: 0, most: Number.MAX_SAFE_INTEGER, whole: true, initial: "random", help: "the same seed gives the same answer" },
  { name: "max_tokens", label: "Max tokens", least: 1, most: 2147483647, whole: true, initial: "no limit", help: "of one answer; the context is a limit too" },
  { name: "thinking_budget", label: "Thinking budget", least: 0, most: 2147483647, whole: true, initial: "no limit", help: "most tokens of a thought; 0 is no thought" },
  { name: "top_logprobs", label: "Alternatives", least: 0, most: 20, whole: true, initial: "5", help: "for each token in the token view" },
];
const STOPS_MOST = 16;
const CHAT_ONLY = ["thinking_budget"]; // what is no field of completions

// The tools of a list in JSON, as OpenAI writes it; null: it is none.
function toolsOf(text) {
  if (text.trim() === "") return [];
  try {
    const tools = JSON.parse(text);
    return Array.isArray(tools) && tools.every((tool) => typeof tool?.function?.name === "string") ? tools : null;
  } catch {
    return null;
  }
}

function problemOf(row, text) {
  const value = Number(text);
  if (text === "") return "";
  if (Number.isNaN(value)) return "Enter a number.";
  if (row.whole && !Number.isInteger(value)) return "Enter a whole number.";
  if (value < row.least || value > row.most) return `Enter a number from ${row.least} to ${row.most}.`;
  return "";
}

function field(row) {
  const id = `setting-${row.name}`;
  const input = element("input", { id, name: row.name, inputmode: "decimal", placeholder: row.initial,
    "aria-describedby": `${id}-help`, spellcheck: "false" });
  return element("div", { class: "field" }, element("label", { for: id, text: row.label }), input,
    element("p", { id: `${id}-help`, class: "fine", text: row.help }));
}

export class Settings {
  constructor() {
    this.form = byId("settings-form");
    this.build();
    for (const [name, value] of Object.entries(memory.read("settings") ?? {}))
      if (this.form.elements[name]) this.form.elements[name].value = value;
    if (NUMBERS.some((row) => row.more && this.text(row.name) !== "")) byId("more-samplers").open = true;
    this.form.addEventListener("input", () => this.changed());
    this.form.addEventListener("submit", (event) => event.preventDefault());
    this.changed();
  }

  build() {
    this.form.append(
      element("div", { class: "field wide" }, element("label", { for: "setting-system", text: "System prompt" }),
        element("textarea", { id: "setting-system", name: "system", rows: 3, "aria-describedby": "setting-system-help" }),
        element("p", { id: "setting-system-help", class: "fine", text: "Given to the model before the conversation; not with plain text." })),
      element("div", { class: "fields" }, ...NUMBERS.filter((row) => !row.more).map(field)),
      element("details", { class: "field wide", id: "more-samplers" }, element("summary", { text: "More samplers" }),
        element("div", { class: "fields" }, ...NUMBERS.filter((row) => row.more).map(field))),
      element("div", { class: "field wide" }, element("label", { for: "setting-stop", text: "Stop at" }),
        element("textarea", { id: "setting-stop", name: "stop", rows: 2, "aria-describedby": "setting-stop-help" }),
        element("p", { id: "setting-stop-help", class: "fine",
          text: `An answer stops before any of these texts: one per line, at most ${STOPS_MOST}.` })),
      element("div", { class: "field wide" }, element("label", { for: "setting-tools", text: "Tools" }),
        element("textarea", { id: "setting-tools", name: "tools", rows: 2, spellcheck: "false", "aria-describedby": "setting-tools-help" }),
        element("p", { id: "setting-tools-help", class: "fine",
          text: "That the model may call: a JSON list, as OpenAI's tools. You write what a call returns." })),
      element("button", { type: "button", class: "quiet", text: "Reset to defaults", onclick: () => this.reset() }));
  }

  text(name) {
    const { value } = this.form.elements[name];
    return ["system", "stop", "tools"].includes(name) ? value : value.trim();
  }

  stops() {
    return this.text("stop").split("\n").filter((line) => line !== "");
  }

  // What is wrong with each field, where something is: [[name, sentence]].
  problems() {
    const found = NUMBERS.map((row) => [row.name, problemOf(row, this.text(row.name))]);
    found.push(["stop", this.stops().length > STOPS_MOST ? `At most ${STOPS_MOST} texts are allowed.` : ""]);
    found.push(["tools", toolsOf(this.text("tools")) ? "" : "Enter a JSON list of tools: [{\"type\": \"function\", \"function\": {\"name\": …}}]."]);
    return found;
  }

  changed() {
    const kept = Object.fromEntries([...this.form.elements].filter((e) => e.name && e.value).map((e) => [e.name, e.value]));
    memory.write("settings", Object.keys(kept).length ? kept : null);
    for (const [name, problem] of this.problems()) {
      const help = byId(`setting-${name}-help`);
      help.dataset.help ??= help.textContent;
      this.form.elements[name].setAttribute("aria-invalid", String(problem !== ""));
      help.classList.toggle("wrong", problem !== "");
      setText(help, problem || help.dataset.help);
    }
  }

  // Whether a request can be made of them; else shows what is wrong.
  check() {
    const wrong = this.problems().find(([, problem]) => problem);
    if (!wrong) return true;
    this.show();
    const input = this.form.elements[wrong[0]];
    input.closest("details")?.setAttribute("open", "");
    input.focus();
    return false;
  }

  // Set by the page: brings the settings to sight.
  show() {}

  reset() {
    this.form.reset();
    this.changed();
  }

  // What requests of both kinds have, without the fields in `except`.
  common(except) {
    const request = {};
    for (const { name } of NUMBERS)
      if (name !== "top_logprobs" && !except.includes(name) && this.text(name) !== "") request[name] = Number(this.text(name));
    if (this.stops().length) request.stop = this.stops();
    if (byId("model").value) request.model = byId("model").value;
    return request;
  }

  // The body of a request for an answer to messages; `tokens`: with how sure the model was.
  request(messages, tokens) {
    const system = this.text("system").trim();
    const tools = toolsOf(this.text("tools"));
    return {
      messages: system ? [{ role: "system", content: system }, ...messages] : messages,
      ...this.common([]),
      ...(tools.length && { tools }),
      ...(tokens && { logprobs: true, top_logprobs: this.alternatives() }),
    };
  }

  // For the continuation of a text.
  textRequest(prompt, tokens) {
    return { prompt, ...this.common(CHAT_ONLY), ...(tokens && { logprobs: this.alternatives() }) };
  }

  alternatives() {
    return Number(this.text("top_logprobs") || 5);
  }
}
