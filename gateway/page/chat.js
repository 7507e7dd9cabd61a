// SPDX-License-Identifier: MIT
// The open conversation, one answer at a time.
//
//   idle ──send, again──▶ running ──end, error, stop──▶ idle
//
// What comes is gathered, and shown with the next frame of the screen.

import { AnswerView } from "./answer.js";
import { announce, byId, memory } from "./dom.js";
import { streamChat } from "./gateway.js";
import { QuestionView } from "./question.js";
import { fresh, nameOf, store } from "./store.js";

const NEAR_END = 48; // pixels: who is so near the end follows it
const FRAME_MS = 16;
const REST = 3; // times as long as an update took, the next one waits at least

export class Chat {
  // `settings` says what goes with a request.
  constructor(settings) {
    this.settings = settings;
    this.current = store.read(memory.read("current")) ?? fresh();
    this.messages = this.current.messages; // {role, content}, answers with more: see `ask`
    this.views = new Map(); // of answers
    this.abort = null; // while one runs
    this.follows = true;
    this.log = byId("log");
    this.field = byId("message");
    this.tokenView = byId("token-view");
    this.tokenView.checked = memory.read("token-view") ?? false;
    this.listen();
    this.messages.forEach((message) => this.append(message));
    this.updateAll();
    this.fitField();
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
    this.field.addEventListener("input", () => this.fitField());
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && this.abort && !byId("key-dialog").open) this.stop();
    });
    byId("stop").addEventListener("click", () => this.stop());
    byId("clear").addEventListener("click", () => this.clear());
    byId("to-end").addEventListener("click", () => this.scrollToEnd());
    this.tokenView.addEventListener("change", () => {
      memory.write("token-view", this.tokenView.checked);
      this.updateAll();
    });
    addEventListener("pagehide", () => {
      if (!this.abort) return;
      this.messages.at(-1).end = "stopped";
      this.save();
    });
    this.log.addEventListener("scroll", () => {
      this.follows = this.log.scrollHeight - this.log.scrollTop - this.log.clientHeight < NEAR_END;
      byId("to-end").hidden = this.follows;
    });
  }

  append(message) {
    const question = message.role === "user";
    const view = question ? new QuestionView(message, (text) => this.askAnew(message, text)) : new AnswerView(message, () => this.again());
    if (!question) this.views.set(message, view);
    this.log.append(view.node);
  }

  update(message) {
    const running = Boolean(this.abort) && message === this.messages.at(-1);
    this.views.get(message).update({ running, asTokens: this.tokenView.checked });
  }

  updateAll() {
    for (const message of this.views.keys()) this.update(message);
    byId("welcome").hidden = this.messages.length > 0;
    byId("clear").hidden = this.messages.length === 0;
    byId("send").hidden = Boolean(this.abort);
    byId("stop").hidden = !this.abort;
    if (this.follows) this.scrollToEnd();
  }

  scrollToEnd() {
    this.follows = true;
    this.log.scrollTop = this.log.scrollHeight;
  }

  fitField() {
    this.field.style.setProperty("height", "auto");
    this.field.style.setProperty("height", `${this.field.scrollHeight + 2}px`);
  }

  send() {
    if (!this.askFor(this.field.value.trim())) return;
    this.field.value = "";
    this.fitField();
  }

  // Whether the question is asked.
  askFor(content) {
    if (content === "" || this.abort || !this.settings.check()) return false;
    const answer = { role: "assistant", content: "" };
    this.messages.push({ role: "user", content }, answer);
    this.messages.slice(-2).forEach((message) => this.append(message));
    this.follows = true;
    this.field.focus();
    this.ask(answer);
    return true;
  }

  // A question in other words: what followed it goes.
  askAnew(question, content) {
    if (this.abort || !this.settings.check()) return;
    this.messages.splice(this.messages.indexOf(question));
    this.draw();
    this.askFor(content);
  }

  // The last answer once more.
  again() {
    if (this.abort || !this.settings.check()) return;
    const old = this.messages.pop();
    this.views.get(old).node.remove();
    this.views.delete(old);
    const answer = { role: "assistant", content: "" };
    this.messages.push(answer);
    this.append(answer);
    this.field.focus();
    this.ask(answer);
  }

  stop() {
    this.abort?.abort();
  }

  clear() {
    this.leave();
    this.takeUp(fresh());
    announce("A new conversation.");
    this.field.focus();
  }

  // Another conversation of those that are kept.
  open(id) {
    const conversation = store.read(id);
    if (!conversation || id === this.current.id) return;
    this.leave();
    this.takeUp(conversation);
    announce(`Opened: ${nameOf(conversation)}`);
    this.field.focus();
  }

  // The open one was deleted.
  forget() {
    this.stop();
    this.abort = null;
    this.takeUp(fresh());
  }

  // An answer that runs is stopped, and what there is of it kept.
  leave() {
    if (!this.abort) return;
    this.stop();
    this.abort = null;
    this.messages.at(-1).end = "stopped";
    this.save();
  }

  takeUp(conversation) {
    this.current = conversation;
    this.messages = conversation.messages;
    memory.write("current", this.messages.length ? conversation.id : null);
    this.follows = true;
    this.draw();
    this.updateAll();
    this.whenKept();
  }

  draw() {
    for (const node of this.log.querySelectorAll("article")) node.remove();
    this.views.clear();
    this.messages.forEach((message) => this.append(message));
  }

  // Another tab has changed one. What is not running here follows; what is goes on as a conversation of its own.
  changedElsewhere(id) {
    const theirs = id === this.current.id && store.read(id);
    if (!theirs) return;
    if (this.abort) this.current.id = fresh().id;
    else this.takeUp(theirs);
  }

  rename(id, name) {
    const conversation = id === this.current.id ? this.current : store.read(id);
    if (!conversation) return;
    conversation.name = name;
    this.tellKept(store.write(conversation));
  }

  save() {
    if (this.messages.length === 0) return;
    this.current.changed = Date.now();
    memory.write("current", this.current.id);
    this.tellKept(store.write(this.current));
  }

  tellKept(kept) {
    byId("not-kept").hidden = kept;
    this.whenKept();
  }

  // Set by the list of conversations: there is something new to list.
  whenKept() {}

  // What the model is to read: a question that got no answer is left out with the answer.
  transcript() {
    const messages = [];
    for (let i = 0; i + 1 < this.messages.length; i += 2) {
      const [question, answer] = [this.messages[i], this.messages[i + 1]];
      const last = i + 2 === this.messages.length;
      if (last || answer.content) messages.push({ role: "user", content: question.content });
      if (!last && answer.content) messages.push({ role: "assistant", content: answer.content, ...(answer.thought && { reasoning_content: answer.thought }) });
    }
    return messages;
  }

  // Fills in an answer: content, and as far as they come tokens, end, usage, timings, firstMs, error.
  async ask(answer) {
    const abort = (this.abort = new AbortController());
    const begun = performance.now();
    announce("The answer begins.");
    this.save();
    this.updateAll();
    try {
      const request = this.settings.request(this.transcript(), this.tokenView.checked);
      for await (const chunk of streamChat(request, abort.signal)) {
        this.take(answer, chunk, begun);
        this.showSoon(answer);
      }
    } catch (error) {
      if (error.name === "AbortError") answer.end = "stopped";
      else answer.error = error.message;
    }
    delete answer.progress;
    if (this.abort !== abort) return; // it was cleared away
    this.abort = null;
    this.save();
    if (document.activeElement === byId("stop")) this.field.focus();
    this.updateAll();
    announce(answer.error ?? (answer.end === "stopped" ? "Stopped." : `The answer is complete: ${answer.content}`));
  }

  take(answer, chunk, begun) {
    if (chunk.usage) answer.usage = chunk.usage;
    if (chunk.timings) answer.timings = chunk.timings;
    if (chunk.prompt_progress) answer.progress = chunk.prompt_progress;
    const choice = chunk.choices?.[0];
    if (!choice) return;
    if (choice.delta?.reasoning_content) {
      answer.firstMs ??= performance.now() - begun;
      answer.thought = (answer.thought ?? "") + choice.delta.reasoning_content;
    }
    if (choice.delta?.content) {
      answer.firstMs ??= performance.now() - begun;
      answer.content += choice.delta.content;
    }
    if (choice.logprobs?.content) (answer.tokens ??= []).push(...choice.logprobs.content);
    if (choice.finish_reason) answer.end = choice.finish_reason;
  }

  showSoon(answer) {
    if (this.due) return;
    this.due = true;
    const show = () => {
      this.due = false;
      if (!this.views.has(answer)) return;
      const begun = performance.now();
      this.update(answer);
      if (this.follows) this.scrollToEnd();
      this.rest = REST * (performance.now() - begun);
    };
    // A tab that is not seen draws no frames; an answer that is slow to show leaves time for all else.
    if (document.hidden) setTimeout(show, 200);
    else if (this.rest > FRAME_MS) setTimeout(show, this.rest);
    else requestAnimationFrame(show);
  }
}
