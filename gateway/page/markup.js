// SPDX-License-Identifier: MIT
// Shows Markdown: what blocks.js and spans.js understand of it. Everything becomes elements made here, with text
// inside, so a model can write what it likes. A link leads to http, https or mailto, and says where in its title.

import { blocksOf, placeOf } from "./blocks.js";
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

// Shows a text that grows. What its next characters can change are the last two blocks, and of a list or table the
// last two children. So only these are read again: the cost of an answer grows with its length, and with the square
// of a single paragraph, code block, quote or item only.
export class Markup {
  constructor(node) {
    this.children = new Children(node);
    this.text = "";
    this.settle(0, null, 0, 0);
  }

  // `blocks` stand, and of the next one, `open`, so many children; they end at `place`.
  settle(blocks, open, children, place) {
    Object.assign(this, { settled: blocks, open, settledInside: children, place });
  }

  show(text) {
    if (text === this.text && text !== "") return;
    if (!text.startsWith(this.text)) this.settle(0, null, 0, 0);
    this.text = text;
    const rest = text.slice(this.place);
    const { blocks, starts } = blocksOf(rest, this.open);
    this.children.show(blocks, this.settled, this.settledInside);
    // What a long block begins with does not change what stands before it.
    const standing = Math.max(0, blocks.length - (isLong(blocks.at(-1)) ? 1 : 2));
    const next = blocks[standing];
    const inside = isLong(next) ? next.children.length - 2 : 0;
    const line = inside ? next.begins[inside] : (starts[standing] ?? 0);
    const before = standing === 0 ? this.settledInside : 0;
    const open = inside ? next : standing === 0 ? this.open : null;
    this.settle(this.settled + standing, open, before + inside, this.place + placeOf(rest, line));
  }
}

// Whether it has children that stand before the last two.
function isLong(block) {
  return block?.begins !== undefined && block.children.length > 2;
}
