// SPDX-License-Identifier: MIT
// What stands inside a line of Markdown, as plain data: [text or {tag, children, href?}].
//
// The text is read once, from left to right; nothing is looked for over more than a bounded distance, so that its
// cost grows with its length only. Formulas stay text, and so does everything that is not understood.

const LONGEST = 10000; // characters of a paragraph; a longer one stays text

const SPECIAL = /[\\`*_~[<$!]|https?:\/\//g;
const ESCAPED = /[\\`*_~[\]<>#|$!]/;
const FORMULA = /\$\$[^$]{1,2000}\$\$|\$(?![\s$])[^$\n]{0,499}[^\s$\\]\$(?!\d)|\\\([^\n]{1,500}?\\\)|\\\[[^\n]{1,500}?\\\]/y;
const LINK = /!?\[((?:[^[\]\\]|\\.){1,1000})\]\(\s{0,9}((?:[^\s()<>]|\([^\s()<>]{0,200}\)){1,2000}|<[^\s<>]{1,2000}>)(?:\s{1,9}"[^"\n]{0,300}")?\s{0,9}\)/y;
const ANGLE = /<((?:https?:\/\/|mailto:)[^\s<>]{1,2000})>/y;
const BREAK = /<br ?\/?>/iy;
const BARE = /https?:\/\/[^\s<>"'`|]{1,2000}/y;
const WORD = /[\p{L}\p{N}_]/u;

const SAFE = new Set(["http:", "https:", "mailto:"]);

// The whole address, or null for one that a page of a model may not lead to: relative ones, scripts, data.
export function safeAddress(text) {
  try {
    const address = new URL(text);
    return SAFE.has(address.protocol) ? address.href : null;
  } catch {
    return null;
  }
}

function at(pattern, text, index) {
  pattern.lastIndex = index;
  return pattern.exec(text);
}

// An address in running text ends before the punctuation of its sentence.
function bareEnd(address) {
  let end = address.length;
  for (;;) {
    const last = address[end - 1];
    const opened = last === ")" && address.slice(0, end - 1).includes("(");
    if (!/[.,;:!?)\]*_~]/.test(last) || opened) return end;
    end--;
  }
}

// Where the last run of so many backticks begins, by their number.
function lastRuns(text) {
  const runs = new Map();
  for (const run of text.matchAll(/`+/g)) runs.set(run[0].length, run.index);
  return runs;
}

// The open spans, innermost last. One of a kind at a time, so no more than five are open.
class Open {
  constructor() {
    this.frames = [{ mark: "", tag: null, children: [] }];
  }

  get top() {
    return this.frames.at(-1);
  }

  add(child) {
    const { children } = this.top;
    if (typeof child === "string" && typeof children.at(-1) === "string") children[children.length - 1] += child;
    else if (child !== "") children.push(child);
  }

  has(mark) {
    return this.frames.some((frame) => frame.mark === mark);
  }

  open(mark, tag) {
    this.frames.push({ mark, tag, children: [] });
  }

  // What was opened and not closed is text.
  abandon() {
    const { mark, children } = this.frames.pop();
    this.add(mark);
    for (const child of children) this.add(child);
  }

  close(mark) {
    while (this.top.mark !== mark) this.abandon();
    const { tag, children } = this.frames.pop();
    this.add({ tag, children });
  }

  end() {
    while (this.frames.length > 1) this.abandon();
    return this.top.children;
  }
}

const TAGS = { 1: "em", 2: "strong" };

// A run of *, _ or ~: closes what it can, then opens what it can.
function emphasis(open, text, index) {
  const sign = text[index];
  let left = 1;
  while (left < 4 && text[index + left] === sign) left++;
  const end = index + left;
  if (left > 3) {
    let behind = end;
    while (text[behind] === sign) behind++;
    open.add(text.slice(index, behind));
    return behind;
  }
  const [before, after] = [text[index - 1] ?? " ", text[end] ?? " "];
  const inWord = sign === "_" && WORD.test(before) && WORD.test(after);
  const mayClose = !/\s/.test(before) && !inWord;
  const mayOpen = !/\s/.test(after) && !inWord;
  const lengths = sign === "~" ? [2] : [2, 1];
  const fits = () => {
    const marks = lengths.filter((n) => n <= left).map((n) => sign.repeat(n)).filter((mark) => open.has(mark));
    return open.frames.findLast((frame) => marks.includes(frame.mark))?.mark;
  };
  for (let mark; mayClose && left > 0 && (mark = fits()); left -= mark.length) open.close(mark);
  for (const n of lengths) {
    if (!mayOpen || n > left || open.has(sign.repeat(n))) continue;
    open.open(sign.repeat(n), sign === "~" ? "del" : TAGS[n]);
    left -= n;
  }
  open.add(sign.repeat(left));
  return end;
}

function link(open, found, linked) {
  const image = found[0][0] === "!";
  const href = linked ? null : safeAddress(found[2].replace(/^<|>$/g, ""));
  if (href) open.add({ tag: "a", href, children: image ? [found[1]] : spansOf(found[1], true) });
  else open.add(found[0]);
}

function code(open, text, index, runs) {
  let n = 1;
  while (text[index + n] === "`") n++;
  const behind = index + n;
  if (!((runs.get(n) ?? -1) >= behind)) {
    open.add(text.slice(index, behind));
    return behind;
  }
  const run = /`+/g;
  run.lastIndex = behind;
  let closing = run.exec(text);
  while (closing[0].length !== n) closing = run.exec(text);
  const inside = text.slice(behind, closing.index).replaceAll("\n", " ");
  const padded = /^ .*[^ ].* $/s.test(inside) || /^ `.* $/s.test(inside);
  open.add({ tag: "code", children: [padded ? inside.slice(1, -1) : inside] });
  return closing.index + n;
}

// Reads what begins at the sign at `index`; returns where to go on.
function special(open, text, index, { runs, linked }) {
  const sign = text[index];
  const formula = (sign === "$" || sign === "\\") && at(FORMULA, text, index);
  if (formula) {
    open.add(formula[0]);
    return index + formula[0].length;
  }
  if (sign === "\\" && ESCAPED.test(text[index + 1] ?? "")) {
    open.add(text[index + 1]);
    return index + 2;
  }
  if (sign === "`") return code(open, text, index, runs);
  if (sign === "*" || sign === "_" || (sign === "~" && text[index + 1] === "~")) return emphasis(open, text, index);
  const found = (sign === "[" || (sign === "!" && text[index + 1] === "[")) && at(LINK, text, index);
  if (found) {
    link(open, found, linked);
    return index + found[0].length;
  }
  const angle = sign === "<" && (at(BREAK, text, index) ?? at(ANGLE, text, index));
  if (angle) {
    const href = angle[1] && !linked && safeAddress(angle[1]);
    open.add(!angle[1] ? { tag: "br", children: [] } : href ? { tag: "a", href, children: [angle[1]] } : angle[0]);
    return index + angle[0].length;
  }
  const bare = sign === "h" && !WORD.test(text[index - 1] ?? " ") && at(BARE, text, index);
  if (bare) {
    const shown = bare[0].slice(0, bareEnd(bare[0]));
    const href = linked ? null : safeAddress(shown);
    open.add(href ? { tag: "a", href, children: [shown] } : shown);
    return index + shown.length;
  }
  open.add(sign);
  return index + 1;
}

// `linked`: it stands inside a link, which holds no other.
export function spansOf(text, linked = false) {
  if (text.length > LONGEST) return [text];
  const open = new Open();
  const context = { runs: lastRuns(text), linked };
  let index = 0;
  for (;;) {
    SPECIAL.lastIndex = index;
    const next = SPECIAL.exec(text);
    open.add(text.slice(index, next?.index));
    if (!next) return open.end();
    index = special(open, text, next.index, context);
  }
}
