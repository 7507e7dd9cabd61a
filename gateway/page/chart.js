// SPDX-License-Identifier: MIT
// A strip: one quantity over the last minutes, drawn as SVG. Strips under one another share their time.

import { element } from "./dom.js";

export const SECONDS = 300; // that are shown
const GAP = 10; // seconds without a sample: the line breaks
const HEIGHT = 48; // of the drawing's own units; it is SECONDS wide, and stretched to its place

function drawn(tag, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

// The next of 1, 2, 5, 10, 20 …
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].find((step) => step * power >= value * (1 - 1e-9)) * power;
}

export class Strip {
  // `value` makes a number of a sample, `say` words of a number; The scale ends between
  // `least` and `most`.
  constructor({ title, value, say, least, most = Infinity }) {
    Object.assign(this, { value, say, most, least, title });
    this.now = element("span", { class: "now" });
    this.scale = element("span", { class: "scale", "aria-hidden": "true" });
    this.area = drawn("path", { class: "area" });
    this.line = drawn("path", { class: "line", "vector-effect": "non-scaling-stroke" });
    this.svg = drawn("svg", { viewBox: `0 0 ${SECONDS} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" });
    this.svg.append(this.area, this.line);
    this.node = element("figure", { class: "strip" },
      element("figcaption", {}, element("span", { text: title }), this.now), this.scale, this.svg);
  }

  // Samples are {time}, in seconds, oldest first; `now` is the right edge.
  draw(samples, now) {
    const values = samples.map(this.value);
    const highest = Math.max(0, ...values);
    const top = Math.min(this.most, roundUp(Math.max(highest, this.least)));
    const x = (i) => (SECONDS - (now - samples[i].time)).toFixed(1);
    const y = (i) => (HEIGHT - 1 - (Math.min(values[i], top) / top) * (HEIGHT - 2)).toFixed(1);
    let line = "";
    let area = "";
    samples.forEach((sample, i) => {
      const begins = i === 0 || sample.time - samples[i - 1].time > GAP;
      const ends = i + 1 === samples.length || samples[i + 1].time - sample.time > GAP;
      line += `${begins ? "M" : "L"}${x(i)} ${y(i)}`;
      area += `${begins ? `M${x(i)} ${HEIGHT}` : ""}L${x(i)} ${y(i)}${ends ? `L${x(i)} ${HEIGHT}Z` : ""}`;
    });
    this.line.setAttribute("d", line);
    this.area.setAttribute("d", area);
    const latest = values.length ? this.say(values.at(-1)) : "—";
    this.now.textContent = latest;
    this.scale.textContent = this.say(top);
    this.svg.setAttribute("aria-label",
      `${this.title}: now ${latest}, at most ${this.say(highest)} in the last ${SECONDS / 60} minutes`);
  }
}
