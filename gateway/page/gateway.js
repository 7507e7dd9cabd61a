// SPDX-License-Identifier: MIT
// What the page asks of its gateway, and what went wrong, in words. Paths are relative: the gateway may stand
// behind a proxy, below a path of its own.

import { memory } from "./dom.js";

export class GatewayError extends Error {
  constructor(message, status = 0) {
    super(message);
    this.status = status; // of HTTP; 0: there was no answer
  }
}

let onKeyNeeded = () => {};

export const key = {
  value: memory.read("key") ?? "",
  set(value) {
    this.value = value;
    memory.write("key", value || null);
  },
  // `listener` is called with why: a sentence.
  whenNeeded(listener) {
    onKeyNeeded = listener;
  },
};

function inWords(status, said, retryAfter, sent) {
  const when = retryAfter ? ` Try again in ${retryAfter} s.` : "";
  const why = said ? `${said[0].toUpperCase()}${said.slice(1).replace(/\.$/, "")}.` : "";
  if (status === 401) return sent ? "The gateway does not know this key." : "This gateway requires a key.";
  if (status === 429) return `The pool is busy. ${why}${when}`;
  if (status === 503) return `The pool is unavailable. ${why}${when}`;
  return why || `The gateway returned status ${status}.`;
}

// `sent` is the key that the request had: another may have been entered since.
async function failure(answer, sent) {
  let said = "";
  try {
    said = (await answer.json()).error.message;
  } catch {
    // Something in between answered: the status has to do.
  }
  const error = new GatewayError(inWords(answer.status, said, answer.headers.get("Retry-After"), sent), answer.status);
  if (answer.status === 401 && sent === key.value) onKeyNeeded(error.message);
  return error;
}

async function ask(path, options = {}) {
  const headers = { ...options.headers };
  const sent = key.value;
  if (sent) headers.Authorization = `Bearer ${sent}`;
  let answer;
  try {
    answer = await fetch(path, { ...options, headers, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new GatewayError("The gateway does not answer. Is it still running, and is this machine connected?");
  }
  if (!answer.ok) throw await failure(answer, sent);
  return answer;
}

export async function getJson(path) {
  return (await ask(path, { signal: AbortSignal.timeout(10000) })).json();
}

// The data of server-sent events, each when it is whole.
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) if (part.startsWith("data: ")) yield part.slice(6);
  }
}

// The chunks of an answer: of /v1/completions to a `prompt`, else of /v1/chat/completions. Aborting `signal` closes
// the connection, and with that the pool ends the request. An answer that breaks off throws.
export async function* streamAnswer(request, signal) {
  const answer = await ask(request.prompt === undefined ? "v1/chat/completions" : "v1/completions", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ ...request, stream: true, stream_options: { include_usage: true }, return_progress: true }),
    signal,
  });
  try {
    for await (const data of events(answer.body)) {
      if (data === "[DONE]") return;
      const chunk = JSON.parse(data);
      if (chunk.error) throw new GatewayError(inWords(chunk.error.code === "overloaded" ? 429 : 500, chunk.error.message));
      yield chunk;
    }
  } catch (error) {
    if (error.name === "AbortError" || error instanceof GatewayError) throw error;
  }
  throw new GatewayError("The connection broke off before the answer was complete.");
}
