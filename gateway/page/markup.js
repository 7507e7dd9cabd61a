// SPDX-License-Identifier: MIT
// The little of Markdown that models write most: paragraphs, headings, lists, code. All else stays as it was
// written; addresses stay text. Everything becomes elements made here, with text inside, so a model can write
// what it likes.

import { element } from "./dom.js";

// Each is read once through, whatever stands there: nothing in them can be split in two ways.
const FENCE = /^ {0,3}(`{3,}|~{3,})([^`]*)$/;
const HEADING = /^#{1,6}\s(.*)$/s;
const ITEM = /^\s{0,8}(?:[-*+]|(\d{1,9})[.)])\s(.*)$/s;

// What stands in a heading, without the signs that may end it too.
function titled(text) {
  let end = text.length;
  while (text[end - 1] === "#") end--;
  return text.slice(0, end).trim();
}

function closes(line, fence) {
  const trimmed = line.trim();
  return trimmed.length >= fence.length && trimmed === fence[0].repeat(trimmed.length);
}

// [{kind, …}]: the last block may be unfinished, as the text may.
export function blocksOf(text) {
  const blocks = [];
  let open = null; // what the next line may belong to
  for (const line of text.split("\n")) {
    if (open?.kind === "code") {
      if (closes(line, open.fence)) open = null;
      else open.lines.push(line);
      continue;
    }
    const fence = FENCE.exec(line);
    const heading = HEADING.exec(line);
    const item = ITEM.exec(line);
    if (fence) {
      const [language] = fence[2].trim().split(/\s/, 1);
      blocks.push((open = { kind: "code", fence: fence[1], language, lines: [] }));
    } else if (heading) {
      blocks.push({ kind: "heading", lines: [titled(heading[1])] });
      open = null;
    } else if (item) {
      const numbered = item[1] !== undefined;
      if (open?.kind !== "list" || open.numbered !== numbered)
        blocks.push((open = { kind: "list", numbered, start: Number(item[1] ?? 1), lines: [] }));
      open.lines.push(item[2].trimStart());
    } else if (line.trim() === "") {
      open = open?.kind === "list" ? open : null; // the items of a list may stand apart
    } else if (open?.kind === "list" && /^\s/.test(line)) {
      open.lines[open.lines.length - 1] += `\n${line.trim()}`;
    } else if (open?.kind === "paragraph") {
      open.lines.push(line);
    } else {
      blocks.push((open = { kind: "paragraph", lines: [line] }));
    }
  }
  return blocks;
}

// `code` and **strong** inside a line.
function inline(text) {
  return text.split(/(`[^`\n]+`|\*\*[^*\n]+\*\*)/).map((part) => {
    if (/^`[^`]+`$/.test(part)) return element("code", { text: part.slice(1, -1) });
    if (/^\*\*[^*]+\*\*$/.test(part)) return element("strong", { text: part.slice(2, -2) });
    return part;
  });
}

function elementOf(block) {
  if (block.kind === "code") {
    const code = element("pre", { tabindex: 0 }, element("code", { text: block.lines.join("\n") }));
    if (block.language) code.dataset.language = block.language;
    return code;
  }
  if (block.kind === "list")
    return element(block.numbered ? "ol" : "ul", block.numbered ? { start: block.start } : {},
      ...block.lines.map((line) => element("li", {}, ...inline(line))));
  if (block.kind === "heading") return element("p", { class: "heading" }, ...inline(block.lines[0]));
  return element("p", {}, ...inline(block.lines.join("\n")));
}

// Shows a text that grows: what stands is left alone, and with it a selection in it.
export class Markup {
  constructor(node) {
    this.node = node;
    this.shown = []; // a text for each block, to be compared
  }

  show(text) {
    const blocks = blocksOf(text);
    const kept = this.node.children;
    blocks.forEach((block, i) => {
      const said = JSON.stringify(block);
      if (this.shown[i] === said) return;
      this.shown[i] = said;
      if (i < kept.length) kept[i].replaceWith(elementOf(block));
      else this.node.append(elementOf(block));
    });
    this.shown.length = blocks.length;
    while (kept.length > blocks.length) this.node.lastElementChild.remove();
  }
}
