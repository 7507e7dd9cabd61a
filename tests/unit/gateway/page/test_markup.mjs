// SPDX-License-Identifier: MIT
// Markdown on the page, without a browser: what is understood, what stays text, and what it costs.
//
//   node tests/unit/gateway/page/test_markup.mjs gateway/page

import assert from "node:assert";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "quern-page-"));
process.on("exit", () => fs.rmSync(folder, { recursive: true }));
for (const file of fs.readdirSync(process.argv[2]))
  if (file.endsWith(".js")) fs.copyFileSync(path.join(process.argv[2], file), path.join(folder, file));
fs.writeFileSync(path.join(folder, "package.json"), '{"type": "module"}');
const { blocksOf, Reader } = await import(pathToFileURL(path.join(folder, "blocks.js")));
const { spansOf, safeAddress } = await import(pathToFileURL(path.join(folder, "spans.js")));

// Blocks and spans in one line each: kind(…), tag(…).
const line = (span) => (typeof span === "string" ? span : `${span.tag}${span.href ? `<${span.href}>` : ""}(${span.children.map(line).join("")})`);
const spans = (text) => spansOf(text).map(line).join("");
const shape = (block) => {
  const inside = block.children ? block.children.map(shape).join(" ") : block.spans ? spans(block.text) : block.text ?? "";
  return `${block.kind}${block.kind === "heading" ? block.level : ""}(${inside})`;
};
const blocks = (text) => blocksOf(text).blocks.map(shape).join(" ");

const SPANS = [
  ["plain", "plain"],
  ["**bold** and *soft*", "strong(bold) and em(soft)"],
  ["***both*** __b__ _s_ ~~gone~~", "strong(em(both)) strong(b) em(s) del(gone)"],
  ["**bold *it***, *it **bold***", "strong(bold em(it)), em(it strong(bold))"],
  ["snake_case_name and __init__.py", "snake_case_name and strong(init).py"],
  ["2 * 3 * 4, a** b, **open", "2 * 3 * 4, a** b, **open"],
  ["*a **b* c**", "em(a **b) c**"],
  ["`a*b*c` ``x ` y`` `open", "code(a*b*c) code(x ` y) `open"],
  ["[Quern](https://example.org/a_(b)_c \"t\")", "a<https://example.org/a_(b)_c>(Quern)"],
  ["[**b** `c`](<http://x.org>)", "a<http://x.org/>(strong(b) code(c))"],
  ["see https://x.org/a_b_c. Or (https://x.org/d).", "see a<https://x.org/a_b_c>(https://x.org/a_b_c). Or (a<https://x.org/d>(https://x.org/d))."],
  ["<https://x.org> <mailto:a@b.org>", "a<https://x.org/>(https://x.org) a<mailto:a@b.org>(mailto:a@b.org)"],
  ["![a picture](https://x.org/p.png)", "a<https://x.org/p.png>(a picture)"],
  ["[x](javascript:alert(1)) [y](JaVaScRiPt:a) [z](data:text/html,a) [r](/v1/models) [v](vbscript:a) [f](file:///etc)",
    "[x](javascript:alert(1)) [y](JaVaScRiPt:a) [z](data:text/html,a) [r](/v1/models) [v](vbscript:a) [f](file:///etc)"],
  ["[x](java\tscript:a) [x](\u0001javascript:a) <javascript:a>", "[x](java\tscript:a) [x](\u0001javascript:a) <javascript:a>"],
  ["[a https://b.org c](https://x.org)", "a<https://x.org/>(a https://b.org c)"],
  ["$a_1 * b_2 * c$ costs $5 and $10, \\(x_i * y_i * z\\)", "$a_1 * b_2 * c$ costs $5 and $10, \\(x_i * y_i * z\\)"],
  ["\\*not\\* \\_so\\_ \\alpha", "*not* _so_ \\alpha"],
  ["a<br>b<b>c</b>", "abr()b<b>c</b>"],
];
for (const [text, expected] of SPANS) assert.strictEqual(spans(text), expected);

const BLOCKS = [
  ["# One\n\ntext\nmore\n## Two ##", "heading1(One) paragraph(text\nmore) heading2(Two)"],
  ["- a\n- b\n  - c\n    1. d\n- e", "list(item(paragraph(a)) item(paragraph(b) list(item(paragraph(c) list(item(paragraph(d)))))) item(paragraph(e)))"],
  ["1. a\n\n   more\n2. b\n\nend", "list(item(paragraph(a) paragraph(more)) item(paragraph(b))) paragraph(end)"],
  ["1. a\n   ```\n   x\n   ```\n2. b", "list(item(paragraph(a) code(x)) item(paragraph(b)))"],
  ["- a\n1. b", "list(item(paragraph(a))) list(item(paragraph(b)))"],
  ["> a\n> > b\n> - c\n\nd", "quote(paragraph(a) quote(paragraph(b)) list(item(paragraph(c)))) paragraph(d)"],
  ["t\n\n---\n***\n* a", "paragraph(t) rule() rule() list(item(paragraph(a)))"],
  ["x\n| a | b |\n|---|:-:|\n| 1 | `2|3` \\| 4 |\n| 5 |\ny", "paragraph(x) table(row(cell(a) cell(b)) row(cell(1) cell(code(2|3) | 4)) row(cell(5))) paragraph(y)"],
  ["a | b\n--|--", "table(row(cell(a) cell(b)))"],
  ["a | b\nc | d", "paragraph(a | b\nc | d)"],
  ["```js\na\n\n- b\n```\nc\n~~~\nopen", "code(a\n\n- b) paragraph(c) code(open)"],
  ["$$\na\n- b\n$$\nc\n\\[ x\n= y \\]", "formula($$\na\n- b\n$$) paragraph(c) formula(\\[ x\n= y \\])"],
  ["$$ a $$ is b", "paragraph($$ a $$ is b)"],
];
for (const [text, expected] of BLOCKS) assert.strictEqual(blocks(text), expected);
assert.deepStrictEqual(blocksOf("a|b|c\n:-|:-:|-:\n").blocks[0].children[0].children.map((cell) => cell.align), ["", "center", "right"]);
assert.strictEqual(blocksOf("7. a").blocks[0].start, 7);
assert.strictEqual(blocksOf("```c++ x\n").blocks[0].language, "c++");

for (const text of ["", "x", "//x.org", "javascript:a", " javascript:a", "data:,a", "blob:https://x.org/a", "page/main.js"])
  assert.strictEqual(safeAddress(text), null, text);

// Read in pieces, as the page reads it, it is the same; of long lists and tables only the end is read again.
function readInPieces(text, size) {
  const reader = new Reader();
  let all = [];
  for (let end = size; ; end += size) {
    const { blocks, from, inFirst } = reader.read(text.slice(0, end));
    const old = all[from];
    all = [...all.slice(0, from), ...blocks];
    if (inFirst) all[from] = { ...old, children: [...old.children.slice(0, inFirst), ...blocks[0].children] };
    if (end >= text.length) return all;
  }
}
// Without the lines at which children begin, which count from where was read.
const plain = (blocks) => blocks.map(({ begins, ...block }) => (block.children ? { ...block, children: plain(block.children) } : block));
const long = `${"- a\n  b\n".repeat(9)}\n${"1. c\n".repeat(9)}\na|b\n-|-\n${"1|2\n".repeat(9)}\nend\n`;
const everything = BLOCKS.map(([text]) => text).join("\n");
const apart = BLOCKS.map(([text]) => text).join("\n\n") + "\n" + SPANS.map(([text]) => text).join("\n\n");
for (const text of [everything, apart, long, `x\n\n${long}y`, "a\n```x`y\nb\n\na|b\n--|--x\n\n1\n2.\n- \n#\n# x"])
  for (const size of [1, 3, 7])
    assert.deepStrictEqual(plain(readInPieces(text, size)), plain(blocksOf(text).blocks));

// What nobody wrote by hand: it ends, nothing is lost, and it costs little.
const N = 100000;
const HOSTILE = ["a", "*", "_", "`", "~", "[", "](", "[x](", "![", "<", "$", "\\(", "\\[", "**a ", "*a **b ", "_a __b ", "`` ` ", "- ", "> ", ">", "1. ", "# ", " ",
  "\t", "|", "| - ", "a|", "\n", "\n\n", "> \n", "- a\n", " - a\n", "|\n", "|-\n", "```\n", "```", "$$\n", "$$", "http://", "https://a*b*.", "*a*", "[a](https://b.org)", "<br>", "\\", "\u0000"];
let worst = ["", 0];
for (const piece of HOSTILE) {
  const text = piece.repeat(Math.ceil(N / piece.length));
  for (const whole of [text, `x\n${text}`, `- ${text}`, `a | b\n--|--\n${text}`]) {
    const began = process.cpuUsage().user;
    blocks(whole);
    spansOf(whole.slice(0, 10000));
    const took = (process.cpuUsage().user - began) / 1000;
    if (took > worst[1]) worst = [whole.slice(0, 40), took];
  }
}
assert.ok(worst[1] < 2000, `${JSON.stringify(worst[0])}: ${worst[1]} ms`);
const depth = (block) => 1 + Math.max(0, ...(block.children ?? []).map(depth));
for (const piece of ["> ", ">", "- ", "1. "]) assert.ok(depth(blocksOf(piece.repeat(N)).blocks[0]) < 30);
console.log(`the slowest of ${HOSTILE.length * 4}: ${JSON.stringify(worst[0])}, ${worst[1].toFixed(0)} ms`);
