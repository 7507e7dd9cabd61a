// SPDX-License-Identifier: MIT
// Shows Markdown: what blocks.js and spans.js understand of it. Everything becomes elements made here, with text
// inside, so a model can write what it likes. A link leads to http, https or mailto, and says where in its title.

import { Reader } from "./blocks.js";
import { copyButton, element, setText } from "./dom.js";
import { spansOf } from "./spans.js";

// ---- spans ----

function spanElement({ tag, href, children }) {
  const link = href ? { href, title: href, target: "_blank", rel: "noopener noreferrer" } : {};
  return element(tag, link, ...children.map((child) => (typeof child === "string" ? child : spanElement(child))));
}

function fill(node, { text, spans }) {
  if (!spans) return setText(node, text);
  const made = document.createDocumentFragment();
  for (const span of spansOf(text)) made.append(typeof span === "string" ? span : spanElement(span));
  node.replaceChildren(made);
}

// ---- blocks ----

// An empty element for a block, and where its text or children go.
function frame(block) {
  const one = (node) => [node, node];
  switch (block.kind) {
    case "code": {
      const inside = element("code");
      const head = element("div", { class: "head" }, element("span", { text: block.language }), copyButton(() => inside.textContent, "Copy the code"));
      return [element("div", { class: "code" }, head, element("pre", { tabindex: 0, "aria-label": block.language ? `Code, ${block.language}` : "Code" }, inside)), inside];
    }
    case "table": {
      const inside = element("table");
      return [element("div", { class: "table", tabindex: 0, role: "group", "aria-label": "Table" }, inside), inside];
    }
    case "cell":
      return one(element(block.head ? "th" : "td", { class: block.align, scope: block.head && "col" }));
    case "list":
      return one(element(block.numbered ? "ol" : "ul", { start: block.numbered && block.start }));
    case "heading":
      return one(element(`h${Math.min(block.level + 2, 6)}`)); // the page has the first two
    case "formula":
      return one(element("p", { class: "formula" }));
    default:
      return one(element({ paragraph: "p", quote: "blockquote", item: "li", row: "tr", rule: "hr" }[block.kind]));
  }
}

// What must be the same for an element to stay.
const shapeOf = ({ text, children, begins, columns, ...shape }) => JSON.stringify(shape);

// A block that is shown. An update changes what differs and leaves the rest alone, and with it a selection in it.
class Shown {
  constructor(block) {
    this.shape = shapeOf(block);
    [this.node, this.inside] = frame(block);
    this.children = new Children(this.inside);
    this.update(block);
  }

  update(block) {
    if (block.children) this.children.show(block.children);
    else if (block.text !== undefined && this.text !== block.text) fill(this.inside, block);
    this.text = block.text;
  }
}

// The blocks in a node, from one on.
class Children {
  constructor(node) {
    this.node = node;
    this.shown = [];
  }

  // `inFirst`: the first block has only its children from there on; those before stay.
  show(blocks, from = 0, inFirst = 0) {
    const added = document.createDocumentFragment();
    blocks.forEach((block, k) => {
      const old = this.shown[from + k];
      if (k === 0 && inFirst > 0) return old.children.show(block.children, inFirst);
      if (old?.shape === shapeOf(block)) return old.update(block);
      const made = (this.shown[from + k] = new Shown(block));
      if (old) old.node.replaceWith(made.node);
      else added.append(made.node);
    });
    for (const { node } of this.shown.splice(from + blocks.length)) node.remove();
    this.node.append(added);
  }
}

// Shows a text that grows.
export class Markup {
  constructor(node) {
    this.children = new Children(node);
    this.reader = new Reader();
  }

  show(text) {
    if (text === this.reader.text && text !== "") return;
    const { blocks, from, inFirst } = this.reader.read(text);
    this.children.show(blocks, from, inFirst);
  }
}
