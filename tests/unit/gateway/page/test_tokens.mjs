// SPDX-License-Identifier: MIT
// The page's view of tokens, without a browser: characters of several tokens are shown whole, whenever their parts come.
//
//   node tests/unit/gateway/page/test_tokens.mjs gateway/page

import assert from "node:assert";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";

class Node {
  constructor() {
    this.children = [];
    this.attributes = {};
    this.style = { setProperty() {} };
  }
  get childElementCount() { return this.children.length; }
  get lastElementChild() { return this.children.at(-1); }
  append(...children) {
    for (const child of children) if (child instanceof Node) child.parent = this;
    this.children.push(...children);
  }
  remove() { this.parent.children.splice(this.parent.children.indexOf(this), 1); }
  setAttribute(name, value) { this.attributes[name] = value; }
  addEventListener() {}
}
globalThis.document = { createElement: () => new Node() };
globalThis.localStorage = globalThis.sessionStorage = { getItem: () => null };

// Node takes files of this name for modules where a package says so.
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "quern-page-"));
process.on("exit", () => fs.rmSync(folder, { recursive: true }));
fs.cpSync(process.argv[2], folder, { recursive: true });
fs.writeFileSync(path.join(folder, "package.json"), '{"type": "module"}');
const { TokenView } = await import(pathToFileURL(path.join(folder, "tokens.js")).href);

const entry = (...bytes) => ({ token: new TextDecoder().decode(new Uint8Array(bytes)), bytes, logprob: -0.5 });
const word = (text) => entry(...new TextEncoder().encode(text));
const sheaf = [...new TextEncoder().encode("🌾")];
const parts = sheaf.map((byte) => entry(byte));
const texts = (view) => view.list.children.map((child) => child.textContent);

// Each prefix shows what it can, and the end is the same however it came.
const entries = [word("A "), ...parts, word("b"), entry(0x20, sheaf[0], sheaf[1]), entry(sheaf[2], sheaf[3]), word("é")];
const view = new TokenView();
for (let n = 0; n <= entries.length; n++) {
  view.show(entries.slice(0, n));
  assert.equal(view.list.childElementCount, n);
  const anew = new TokenView();
  anew.show(entries.slice(0, n));
  assert.deepEqual(texts(view), texts(anew));
}
assert.deepEqual(texts(view), ["A ", "🌾", "·", "·", "·", "b", " 🌾", "·", "é"]);
assert.match(view.list.children[2].attributes["aria-label"], /^‹9f›, part of 🌾, 60\.7 %$/);
assert.equal(view.list.children[0].attributes.tabindex, 0);

// What never becomes a character keeps its bytes; entries without bytes are as they are.
const broken = new TokenView();
broken.show([...parts.slice(0, 2), word("x"), parts[3], { token: "y", logprob: 0 }]);
assert.deepEqual(texts(broken), ["‹f0›", "‹9f›", "x", "‹be›", "y"]);
console.log("ok");
