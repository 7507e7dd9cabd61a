// SPDX-License-Identifier: MIT
// Elements, and what the tab remembers. Text from outside becomes text: nothing here makes markup of a string.

export const byId = (id) => document.getElementById(id);

// A new element: properties by name (class, text, dataset, on…: a listener; the rest are attributes, where false
// and undefined leave one out), then what it holds.
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "class") made.className = value;
    else if (name === "text") made.textContent = value;
    else if (name === "dataset") Object.assign(made.dataset, value);
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

// Sets a text only where it is another: a screen reader is not told the same again.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// A button that copies what `textOf` gives at that time, and says whether it could.
export function copyButton(textOf, name) {
  const button = element("button", { type: "button", class: "quiet", text: "Copy", "aria-label": name, onclick: async () => {
    try {
      await navigator.clipboard.writeText(textOf());
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not allowed by the browser";
    }
    announce(button.textContent);
    setTimeout(() => (button.textContent = "Copy"), 2000);
  } });
  return button;
}

// One sentence for who does not see the page.
export function announce(text) {
  byId("announcer").textContent = text;
}

// The tab's own store. It may be forbidden, or full: then the tab forgets with the next reload.
export const memory = {
  read(name) {
    try {
      return JSON.parse(sessionStorage.getItem(`quern.${name}`));
    } catch {
      return null;
    }
  },
  write(name, value) {
    try {
      if (value === null) sessionStorage.removeItem(`quern.${name}`);
      else sessionStorage.setItem(`quern.${name}`, JSON.stringify(value));
    } catch {
      // forbidden, or full
    }
  },
};

const integers = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const tenths = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

// 1,203 · 38.2
export function number(value) {
  return (Math.abs(value) < 100 ? tenths : integers).format(value);
}

export function count(value, one, several = `${one}s`) {
  return `${integers.format(value)} ${value === 1 ? one : several}`;
}

export function milliseconds(value) {
  return value < 1000 ? `${number(value)} ms` : `${number(value / 1000)} s`;
}

export function bytes(value) {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  let unit = 0;
  for (; value >= 1000 && unit < units.length - 1; unit++) value /= 1000;
  return value === 1 && unit === 0 ? "1 byte" : `${number(value)} ${units[unit]}`;
}
