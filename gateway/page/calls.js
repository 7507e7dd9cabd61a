// SPDX-License-Identifier: MIT
// The tool calls of an answer, {id, name, arguments, result}, folded: what is called, with what, and what it
// returned. The page runs no tool: who asked writes the result.

import { element, setText } from "./dom.js";

// Arguments as they are read best; what is no JSON, or none yet, as it came.
function laidOut(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

class CallView {
  constructor(call) {
    this.call = call;
    this.title = element("summary");
    this.given = element("pre", { tabindex: 0, "aria-label": "Arguments" });
    this.result = element("textarea", { rows: 2, "aria-label": "Result of the call", placeholder: "Result of the call" });
    this.result.value = call.result ?? "";
    this.result.addEventListener("input", () => (call.result = this.result.value));
    this.returned = element("pre", { class: "returned", tabindex: 0, "aria-label": "Result" });
    this.node = element("details", { class: "call" }, this.title, this.given, this.returned, this.result);
  }

  update(running, open) {
    const { call } = this;
    setText(this.title, `${running ? "Calling" : "Called"} ${call.name}`);
    setText(this.given, running ? call.arguments : laidOut(call.arguments));
    this.result.hidden = !open;
    this.returned.hidden = open || !call.result;
    setText(this.returned, call.result ?? "");
  }
}

export class CallsView {
  // `send` is called when the results are written.
  constructor(send) {
    this.views = [];
    this.list = element("div");
    this.button = element("button", { type: "button", text: "Send the results", onclick: send });
    this.node = element("div", { class: "calls", hidden: true }, this.list, this.button);
  }

  // `last`: results can still be sent.
  update(calls = [], { running, last }) {
    this.node.hidden = calls.length === 0;
    const open = last && !running;
    this.button.hidden = !open;
    calls.forEach((call, i) => {
      if (!this.views[i]) {
        this.views.push(new CallView(call));
        this.list.append(this.views[i].node);
      }
      this.views[i].update(running, open);
    });
  }
}

// What a chunk adds to the calls of an answer.
export function takeCalls(answer, pieces) {
  for (const { index, id, function: piece } of pieces) {
    const call = ((answer.calls ??= [])[index] ??= { id: "", name: "", arguments: "" });
    if (id) call.id = id;
    call.name += piece?.name ?? "";
    call.arguments += piece?.arguments ?? "";
  }
}
