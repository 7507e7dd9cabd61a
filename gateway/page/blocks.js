// SPDX-License-Identifier: MIT
// The blocks of a Markdown text, as plain data: a block has a tag, and either text (with `spans`: read as a line)
// or children.
//
//   code {text, language} · heading, paragraph {text, spans} · rule · quote, list, item, table, row, cell {children}
//
// Lists and tables also have `begins`, the line at which each child does, so that a long one can be read on from the
// middle; a table has its `columns` for that.
//
// The last block may be unfinished, as the text may. Every line is read once for each level it stands in, and no
// level is deeper than DEEPEST: what stands deeper stays as it was written.

const DEEPEST = 12; // quotes and lists in one another
const FENCE = /^ {0,3}(`{3,}|~{3,})([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})\s(.*)$/s;
const ITEM = /^(\s{0,40})([-*+]|(\d{1,9})[.)])(\s{1,4})(?=\S|$)(.*)$/s;
const BARE_ITEM = /^(\s{0,40})([-*+]|(\d{1,9})[.)])(\s)(.*)$/s; // code, or nothing, stands behind it
const QUOTE = /^ {0,3}>/;
const COLUMN = /^:?-+:?$/;
const FORMULA_ENDS = { "$$": "$$", "\\[": "\\]" };

const itemOf = (line) => ITEM.exec(line) ?? BARE_ITEM.exec(line);
const indentOf = (line) => line.length - line.trimStart().length;
const isBlank = (line) => line.trim() === "";

function isRule(line) {
  const signs = line.replace(/\s/g, "");
  return signs.length >= 3 && "-*_".includes(signs[0]) && signs === signs[0].repeat(signs.length);
}

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

// Without so much of the blanks at its beginning.
function unindented(line, width) {
  return line.slice(Math.min(width, indentOf(line)));
}

// The cells of a row: `code` and \| keep their strokes.
function cellsOf(line) {
  const trimmed = line.trim();
  const cells = [""];
  let inCode = false;
  for (let i = trimmed[0] === "|" ? 1 : 0; i < trimmed.length; i++) {
    const sign = trimmed[i];
    if (sign === "\\" && trimmed[i + 1] === "|") {
      cells[cells.length - 1] += "|";
      i++;
      continue;
    }
    if (sign === "`") inCode = !inCode;
    if (sign === "|" && !inCode) cells.push("");
    else cells[cells.length - 1] += sign;
  }
  if (cells.length > 1 && cells.at(-1).trim() === "") cells.pop();
  return cells.map((cell) => cell.trim());
}

function alignmentOf(mark) {
  if (mark.endsWith(":")) return mark.startsWith(":") ? "center" : "right";
  return "";
}

// The columns of a table that begins at line `i`: their alignments; null: none does.
function columnsAt(lines, i) {
  const below = lines[i + 1];
  if (!lines[i].includes("|") || !below?.includes("-") || below.length > 2000 || !/^[\s|:-]*$/.test(below)) return null;
  const marks = cellsOf(below);
  if (!marks.every((mark) => COLUMN.test(mark)) || marks.length !== cellsOf(lines[i]).length) return null;
  return marks.map(alignmentOf);
}

function row(line, columns, head) {
  const children = cellsOf(line).map((text, i) => ({ kind: "cell", head, align: columns[i] ?? "", text, spans: true }));
  return { kind: "row", children };
}

// ---- what begins at line `i`: each returns [block, the line behind it], or null ----

function code(lines, i) {
  const fence = FENCE.exec(lines[i]);
  if (!fence) return null;
  const [language] = fence[2].trim().split(/\s/, 1);
  const width = indentOf(lines[i]);
  const inside = [];
  let end = i + 1;
  for (; end < lines.length && !closes(lines[end], fence[1]); end++) inside.push(unindented(lines[end], width));
  return [{ kind: "code", language, text: inside.join("\n") }, end + 1];
}

function heading(lines, i) {
  const found = HEADING.exec(lines[i]);
  return found && [{ kind: "heading", level: found[1].length, text: titled(found[2]), spans: true }, i + 1];
}

function rule(lines, i) {
  return isRule(lines[i]) ? [{ kind: "rule" }, i + 1] : null;
}

// A formula that stands alone, up to its end or a blank line: its lines are no lists and no headings.
function formula(lines, i) {
  const begins = lines[i].trim();
  const closing = FORMULA_ENDS[begins.slice(0, 2)];
  if (!closing || begins.includes(closing, 2)) return null;
  let end = i + 1;
  while (end < lines.length && !isBlank(lines[end]) && !(end > i + 1 && lines[end - 1].includes(closing))) end++;
  return [{ kind: "formula", text: lines.slice(i, end).join("\n") }, end];
}

function quote(lines, i, depth) {
  if (!QUOTE.test(lines[i])) return null;
  let end = i;
  const inside = [];
  for (; end < lines.length && QUOTE.test(lines[end]); end++) inside.push(lines[end].trimStart().replace(/^> ?/, ""));
  return [{ kind: "quote", children: blocksIn(inside, depth + 1) }, end];
}

function table(lines, i) {
  const columns = columnsAt(lines, i);
  if (!columns) return null;
  const [rest, end] = rowsOfTable(lines, i + 2, columns);
  return [{ ...rest, begins: [i, ...rest.begins], children: [row(lines[i], columns, true), ...rest.children] }, end];
}

// A table without its head.
function rowsOfTable(lines, i, columns) {
  const begins = [];
  for (let end = i; end < lines.length && lines[end].includes("|") && !isBlank(lines[end]); end++) begins.push(end);
  return [{ kind: "table", columns, begins, children: begins.map((line) => row(lines[line], columns, false)) }, i + begins.length];
}

// The lines of one item, and the line behind them. An open fence holds whatever stands there.
function linesOfItem(lines, i, item) {
  const indent = item[1].length;
  const content = indent + item[2].length + item[4].length;
  const inside = [item[5]];
  let fence = FENCE.exec(item[5])?.[1];
  let end = i + 1;
  for (; end < lines.length; end++) {
    const line = lines[end];
    const width = indentOf(line);
    const belongs = fence || isBlank(line) || width >= indent + 2 || (width > indent && !itemOf(line));
    if (!belongs) break;
    const stripped = unindented(line, content);
    if (fence) fence = closes(stripped, fence) ? null : fence;
    else fence = FENCE.exec(stripped)?.[1];
    inside.push(stripped);
  }
  while (isBlank(inside.at(-1)) && inside.length > 1) inside.pop();
  return [inside, end];
}

function list(lines, i, depth) {
  const first = itemOf(lines[i]);
  if (!first || isRule(lines[i])) return null;
  const numbered = first[3] !== undefined;
  const begins = [];
  const children = [];
  let end = i;
  for (let item = first; item && (item[3] !== undefined) === numbered && !isRule(lines[end]); item = end < lines.length ? itemOf(lines[end]) : null) {
    const [inside, behind] = linesOfItem(lines, end, item);
    begins.push(end);
    children.push({ kind: "item", children: blocksIn(inside, depth + 1) });
    end = behind;
  }
  return [{ kind: "list", numbered, start: Number(first[3] ?? 1), begins, children }, end];
}

const BEGINNINGS = [code, heading, rule, formula, table];
const LEVELS = [quote, list];

function beginning(lines, i, depth) {
  for (const begin of depth < DEEPEST ? [...BEGINNINGS, ...LEVELS] : [code]) {
    const found = begin(lines, i, depth);
    if (found) return found;
  }
  return null;
}

// From line `first` on; into `starts` goes the line at which each block begins.
function blocksIn(lines, depth, starts, first = 0) {
  const blocks = [];
  let paragraph = null;
  for (let i = first; i < lines.length; ) {
    const found = isBlank(lines[i]) ? null : beginning(lines, i, depth);
    if (found) {
      blocks.push(found[0]);
      starts?.push(i);
      paragraph = null;
      i = found[1];
      continue;
    }
    if (isBlank(lines[i])) {
      paragraph = null;
    } else if (paragraph) {
      paragraph.text += `\n${lines[i]}`;
    } else {
      blocks.push((paragraph = { kind: "paragraph", text: lines[i], spans: true }));
      starts?.push(i);
    }
    i++;
  }
  return blocks;
}

// {blocks, starts}: of each block the line at which it begins. What stands there does not depend on what stands
// before; but if `open` is a list or table, the text begins with a child of it, and the first block is the rest of it.
export function blocksOf(text, open = null) {
  const lines = text.split("\n").map((line) => line.replace(/^[ \t]+/, (blanks) => blanks.replaceAll("\t", "    ")));
  const starts = [];
  if (!open) return { blocks: blocksIn(lines, 0, starts), starts };
  const [rest, end] = open.kind === "list" ? list(lines, 0, 0) : rowsOfTable(lines, 0, open.columns);
  return { blocks: [rest, ...blocksIn(lines, 0, starts, end)], starts: [0, ...starts] };
}

// Where a line begins in a text.
function placeOf(text, line) {
  let place = 0;
  for (let n = 0; n < line; n++) place = text.indexOf("\n", place) + 1;
  return place;
}

// Whether it has children that stand before the last two.
function isLong(block) {
  return block?.begins !== undefined && block.children.length > 2;
}

// Reads a text that grows. What its next characters can change are the last two blocks, and of a list or table the
// last two children. So only these are read again: the cost of an answer grows with its length, and with the square
// of a single paragraph, code block, quote or item only.
export class Reader {
  constructor() {
    this.text = "";
    this.settle(0, null, 0, 0);
  }

  // `blocks` stand, and of the next one, `open`, so many children; they end at `place`.
  settle(blocks, open, children, place) {
    Object.assign(this, { settled: blocks, open, settledInside: children, place });
  }

  // {blocks, from, inFirst}: the blocks from that one on; of the first of them only the children from `inFirst` on.
  read(text) {
    if (!text.startsWith(this.text)) this.settle(0, null, 0, 0);
    this.text = text;
    const { settled: from, settledInside: inFirst } = this;
    const rest = text.slice(this.place);
    const { blocks, starts } = blocksOf(rest, this.open);
    // What a long block begins with does not change what stands before it.
    const standing = Math.max(0, blocks.length - (isLong(blocks.at(-1)) ? 1 : 2));
    const next = blocks[standing];
    const inside = isLong(next) ? next.children.length - 2 : 0;
    const line = inside ? next.begins[inside] : (starts[standing] ?? 0);
    const before = standing === 0 ? inFirst : 0;
    const open = inside ? next : standing === 0 ? this.open : null;
    this.settle(from + standing, open, before + inside, this.place + placeOf(rest, line));
    return { blocks, from, inFirst };
  }
}
