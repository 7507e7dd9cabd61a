// SPDX-License-Identifier: MIT
// The open conversation, one answer at a time.
//
//   idle ──send, again──▶ running ──end, error, stop──▶ idle
//
// What comes is gathered, and shown with the next frame of the screen.

import { AnswerView, narrow } from "./answer.js";
import { takeCalls } from "./calls.js";
import { Composer } from "./composer.js";
import { announce, byId, memory } from "./dom.js";
import { streamAnswer } from "./gateway.js";
import { tokensOf } from "./logprobs.js";
import { QuestionView } from "./question.js";
import { fresh, nameOf, store } from "./store.js";
import { messagesOf, textOf } from "./transcript.js";

const NEAR_END = 48; // pixels: who is so near the end follows it
const FRAME_MS = 16;
const REST = 3; // times as long as an update took, the next one waits at least

export class Chat {
  // `settings` says what goes with a request.
  constructor(settings) {
    this.settings = settings;
    this.current = store.read(memory.read("current")) ?? fresh();
    this.messages = this.current.messages; // {role, content}, questions with files, answers with more: see `ask`
    this.modelChats = true; // as far as the page knows
    this.views = new Map(); // of answers
    this.abort = null; // while one runs
    this.follows = true;
    this.log = byId("log");
    this.composer = new Composer(() => this.send());
    this.plain = byId("plain");
    this.tokenView = byId("token-view");
    this.tokenView.checked = memory.read("token-view") ?? false;
    this.listen();
    this.messages.forEach((message) => this.append(message));
    this.showPlain();
    this.updateAll();
  }

  listen() {
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
    this.plain.addEventListener("change", () => {
      memory.write("plain", this.plain.checked);
      this.clear();
    });
    narrow.addEventListener("change", () => this.updateAll());
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
    const view = question ? new QuestionView(message, (text, files) => this.askAnew(message, text, files))
      : new AnswerView(message, { plain: this.current.plain, again: () => this.again(), goOn: () => this.answerAfter() });
    if (!question) this.views.set(message, view);
    this.log.append(view.node);
  }

  update(message) {
    const last = message === this.messages.at(-1);
    this.views.get(message).update({ running: Boolean(this.abort) && last, last, asTokens: this.tokenView.checked });
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

  // Of the model that is chosen: whether it has a chat template. One without continues texts only.
  setModelChats(chats) {
    this.modelChats = chats;
    this.showPlain();
  }

  // What a conversation is, it stays; a new one is what the model allows and the user chose.
  showPlain() {
    if (this.messages.length === 0) this.current.plain = !this.modelChats || (memory.read("plain") ?? false);
    const plain = Boolean(this.current.plain);
    this.plain.checked = plain;
    this.plain.disabled = plain && !this.modelChats;
    this.log.classList.toggle("plain", plain);
    this.composer.setPlain(plain);
    byId("lead").textContent = plain ? "Write the beginning of a text." : "Ask the model something.";
    this.whenPlain(plain);
  }

  // Set by the page: other examples are to be shown.
  whenPlain() {}

  async send() {
    await this.composer.files.pending; // what was chosen before belongs to it
    const { content, files } = this.composer.draft();
    if (this.askFor(content, files)) this.composer.clear();
  }

  // Whether the question is asked. A text goes as it was written, and none lets the model go on with what there is.
  askFor(written, files = []) {
    const plain = this.current.plain;
    const content = plain ? written : written.trim();
    const empty = content === "" && files.length === 0 && !(plain && this.messages.length > 0);
    if (empty || this.abort || !this.settings.check()) return false;
    const question = { role: "user", content, ...(files.length && { files }) };
    this.messages.push(question);
    this.append(question);
    this.follows = true;
    this.answerAfter();
    return true;
  }

  // Asks for an answer to what there is: a question, or results of tool calls.
  answerAfter() {
    if (this.abort || !this.settings.check()) return;
    const answer = { role: "assistant", content: "" };
    this.messages.push(answer);
    this.append(answer);
    this.composer.focus();
    this.ask(answer);
  }

  // A question in other words: what followed it goes.
  askAnew(question, content, files) {
    if (this.abort || !this.settings.check() || (content.trim() === "" && files.length === 0)) return;
    this.messages.splice(this.messages.indexOf(question));
    this.draw();
    this.askFor(content, files);
  }

  // The last answer once more.
  again() {
    if (this.abort || !this.settings.check()) return;
    const old = this.messages.pop();
    this.views.get(old).node.remove();
    this.views.delete(old);
    this.answerAfter();
  }

  stop() {
    this.abort?.abort();
  }

  clear() {
    this.leave();
    this.takeUp(fresh());
    announce("A new conversation.");
    this.composer.focus();
  }

  // Another conversation of those that are kept.
  open(id) {
    const conversation = store.read(id);
    if (!conversation || id === this.current.id) return;
    this.leave();
    this.takeUp(conversation);
    announce(`Opened: ${nameOf(conversation)}`);
    this.composer.focus();
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
    this.showPlain();
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

  // The body of a request for the last answer.
  request() {
    const tokens = this.tokenView.checked;
    return this.current.plain ? this.settings.textRequest(textOf(this.messages), tokens) : this.settings.request(messagesOf(this.messages), tokens);
  }

  // Fills in an answer: content, and as far as they come thought, calls, tokens, end, usage, timings, firstMs, error.
  async ask(answer) {
    const abort = (this.abort = new AbortController());
    const begun = performance.now();
    announce("The answer begins.");
    this.save();
    this.updateAll();
    try {
      for await (const chunk of streamAnswer(this.request(), abort.signal)) {
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
    if (document.activeElement === byId("stop")) this.composer.focus();
    this.updateAll();
    announce(answer.error ?? (answer.end === "stopped" ? "Stopped." : `The answer is complete: ${answer.content}`));
  }

  take(answer, chunk, begun) {
    if (chunk.usage) answer.usage = chunk.usage;
    if (chunk.timings) answer.timings = chunk.timings;
    if (chunk.prompt_progress) answer.progress = chunk.prompt_progress;
    const choice = chunk.choices?.[0];
    if (!choice) return;
    const { reasoning_content: thought, content = choice.text, tool_calls: calls } = choice.delta ?? {};
    if (thought || content || calls) answer.firstMs ??= performance.now() - begun;
    if (thought) answer.thought = (answer.thought ?? "") + thought;
    if (content) answer.content += content;
    if (calls) takeCalls(answer, calls);
    if (choice.logprobs) (answer.tokens ??= []).push(...tokensOf(choice.logprobs));
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
