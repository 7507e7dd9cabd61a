// SPDX-License-Identifier: MIT
// The pool as it is: asked of the gateway every second, which asks the pool as often.
//
// Rates are differences of counters between two answers, so that a burst between them is not missed. A counter
// that fell belongs to a process that was started again, and begins anew.

import { Strip, SECONDS } from "./chart.js";
import { byId, bytes, count, element, number, setText } from "./dom.js";
import { getJson } from "./gateway.js";

const EVERY_MS = 1000;

const percent = (share) => `${Math.round(share * 100)} %`;
const rate = (value) => `${number(value)} tokens/s`;
const sum = (workers, of) => workers.reduce((all, worker) => all + of(worker), 0);
const kvUsed = (worker) => worker.kv_total - worker.kv_free;
const share = (part, whole) => (whole > 0 ? part / whole : 0);

function doing(worker) {
  if (worker.state === "ready" || worker.state === "draining") {
    const work = worker.active ? `answering ${number(worker.active)}` : "idle";
    const waiting = worker.waiting ? `, ${worker.waiting} waiting` : "";
    return `${worker.state === "draining" ? "draining, " : ""}${work}${waiting}`;
  }
  return { loading: "loading the model", absent: "gone", starting: "starting", failed: "failed" }[worker.state] ?? worker.state;
}

// A name, what it is now, and a bar.
function meter(name) {
  const bar = element("span", { class: "bar", "aria-hidden": "true" });
  const value = element("span", { class: "value" });
  return { node: element("div", { class: "meter" }, element("span", { text: name }), bar, value),
    set(part, text) {
      bar.style.setProperty("--share", part);
      setText(value, text);
    } };
}

class WorkerRow {
  constructor() {
    this.name = element("strong");
    this.doing = element("span", { class: "doing" });
    this.rate = element("span", { class: "rate" });
    this.about = element("p", { class: "fine" });
    this.kv = meter("KV cache in use");
    this.prefixes = meter("cached prefixes");
    this.hits = meter("prompt tokens from cache");
    this.reason = element("p", { class: "notice", hidden: true });
    this.node = element("li", {},
      element("p", { class: "head" }, element("span", { class: "dot", "aria-hidden": "true" }), this.name, this.doing, this.rate),
      this.about, this.kv.node, this.prefixes.node, this.hits.node, this.reason);
  }

  show(worker, tokensPerSecond) {
    this.node.dataset.state = worker.state;
    this.node.dataset.busy = worker.active > 0;
    setText(this.name, worker.name);
    setText(this.doing, doing(worker));
    setText(this.rate, rate(tokensPerSecond));
    setText(this.about, [worker.device, worker.slots && `${number(worker.slots)} at once`, worker.pid && `process ${worker.pid}`,
      worker.restarts && `restarted ${worker.restarts === 1 ? "once" : count(worker.restarts, "time")}`].filter(Boolean).join(" · "));
    const size = (blocks) => bytes(blocks * worker.kv_block_bytes);
    this.kv.set(share(kvUsed(worker), worker.kv_total), `${size(kvUsed(worker))} of ${size(worker.kv_total)}`);
    this.prefixes.set(share(worker.kv_cached, worker.kv_total), size(worker.kv_cached));
    this.hits.set(worker.hit_rate, percent(worker.hit_rate));
    setText(this.reason, worker.reason);
    this.reason.hidden = !worker.reason;
  }
}

// A pool of a fleet: its name, by which it is chosen to be shown, and how it is.
class PoolRow {
  constructor(choose) {
    this.button = element("button", { type: "button", class: "quiet" });
    this.button.addEventListener("click", () => choose(this.name));
    this.doing = element("span", { class: "doing" });
    this.node = element("li", {}, this.button, this.doing);
  }

  show(pool, chosen) {
    this.name = pool.name;
    setText(this.button, pool.name);
    this.button.setAttribute("aria-pressed", chosen);
    const state = [!pool.up && "does not answer", pool.draining && "draining", pool.up && !pool.draining && "ready"].filter(Boolean);
    const moved = pool.moved ? [`${count(pool.moved, "request")} moved away`] : [];
    setText(this.doing, [...state, `${number(pool.running)} running`, `${number(pool.queued)} in the queue`, ...moved].join(" · "));
  }
}

const FIGURES = [
  ["tokens/s", (sample) => number(sample.rate)],
  ["running", (sample) => number(sample.running)],
  ["in the queue", (sample) => number(sample.queued)],
  ["clients", (sample) => number(sample.sessions)],
];
const TOTALS = [
  ["Requests accepted", (status) => number(status.admitted)],
  ["ended", (status) => number(status.ended)],
  ["refused", (status) => number(status.rejected)],
  ["moved to another worker", (status) => number(status.moved)],
  ["Tokens generated", (status) => number(status.tokens)],
  ["Output kept for replays", (status) => bytes(status.journal_bytes)],
];

function table(list, rows) {
  return rows.map(([name, of]) => {
    const value = element("dd", { text: "—" });
    list.append(element("div", {}, element("dt", { text: name }), value));
    return (from) => setText(value, of(from));
  });
}

export class Pool {
  // `onModels` is called with the models that are served, {name, chat}, when they change.
  constructor(onModels) {
    this.onModels = onModels;
    this.models = "";
    this.samples = []; // {time, rate, running, queued, sessions, kv}
    this.rows = []; // of workers
    this.pools = []; // rows of a fleet's pools
    this.chosen = ""; // the pool of a fleet that is shown; "": the first that answers
    this.previous = null;
    this.figures = table(byId("figures"), FIGURES);
    this.totals = table(byId("totals"), TOTALS);
    this.strips = [
      new Strip({ title: "Tokens generated", value: (sample) => sample.rate, say: rate, least: 10 }),
      new Strip({ title: "Requests, running and in the queue", value: (sample) => sample.running + sample.queued, say: number, least: 1 }),
      new Strip({ title: "KV cache in use", value: (sample) => sample.kv, say: percent, least: 0.1, most: 1 }),
    ];
    byId("charts").append(...this.strips.map((strip) => strip.node),
      element("p", { class: "axis", "aria-hidden": "true" },
        element("span", { text: `${SECONDS / 60} minutes ago` }), element("span", { text: "now" })));
  }

  async watch() {
    for (;;) {
      try {
        this.take(await getJson(this.chosen ? `status?pool=${encodeURIComponent(this.chosen)}` : "status"));
        this.trouble("");
      } catch (error) {
        this.trouble(error.message);
      }
      await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
    }
  }

  // Rates and charts begin anew with each pool.
  choose(name) {
    this.chosen = name;
    this.previous = null;
    this.samples = [];
  }

  showPools(pools) {
    byId("pools").hidden = byId("pools-title").hidden = pools.length === 0;
    while (this.pools.length < pools.length) {
      this.pools.push(new PoolRow((name) => this.choose(name)));
      byId("pools").append(this.pools.at(-1).node);
    }
    while (this.pools.length > pools.length) this.pools.pop().node.remove();
    this.pools.forEach((row, i) => row.show(pools[i], pools[i].name === this.chosen));
  }

  trouble(text) {
    setText(byId("pool-trouble"), text);
    byId("pool-trouble").hidden = text === "";
    byId("pool").classList.toggle("stale", text !== "");
    if (text) this.summarize("failed", text);
  }

  summarize(state, text) {
    byId("summary").dataset.state = state;
    setText(byId("summary-text"), text);
  }

  take(status) {
    this.showPools(status.pools ?? []);
    const before = this.previous;
    if (before?.time_ms === status.time_ms && before.boot === status.boot) return; // the same answer once more
    this.previous = status;
    const seconds = before ? (status.time_ms - before.time_ms) / 1000 : 0;
    const rates = status.workers.map((worker) => {
      const was = before?.workers.find((other) => other.name === worker.name && other.incarnation === worker.incarnation);
      return was && seconds > 0 ? Math.max(0, worker.tokens - was.tokens) / seconds : 0;
    });
    this.samples.push({
      time: status.time_ms / 1000, rate: rates.reduce((a, b) => a + b, 0),
      running: status.running, queued: status.queued, sessions: status.sessions,
      kv: share(sum(status.workers, kvUsed), sum(status.workers, (worker) => worker.kv_total)),
    });
    this.show(status, rates);
  }

  show(status, rates) {
    const now = status.time_ms / 1000;
    this.samples = this.samples.filter((sample) => sample.time > now - SECONDS && sample.time <= now);
    this.figures.forEach((set) => set(this.samples.at(-1)));
    this.totals.forEach((set) => set(status));
    this.strips.forEach((strip) => strip.draw(this.samples, now));
    while (this.rows.length < status.workers.length) {
      this.rows.push(new WorkerRow());
      byId("workers").append(this.rows.at(-1).node);
    }
    while (this.rows.length > status.workers.length) this.rows.pop().node.remove();
    this.rows.forEach((row, i) => row.show(status.workers[i], rates[i]));
    this.tellModels(status);
  }

  tellModels(status) {
    const ready = status.workers.filter((worker) => worker.state === "ready").length;
    const models = [...new Map(status.workers.filter(({ model }) => model).map(({ model, chat }) => [model, chat]))].map(([name, chat]) => ({ name, chat }));
    const workers = `${ready} of ${count(status.workers.length, "worker")} ready`;
    this.summarize(status.draining ? "draining" : ready > 0 ? "ready" : "loading",
      status.draining ? "The pool is shutting down" : models.length === 1 ? `${models[0].name} · ${workers}` : workers);
    const told = JSON.stringify(models);
    if (told === this.models) return;
    this.models = told;
    this.onModels(models);
  }
}
