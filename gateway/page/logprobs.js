// SPDX-License-Identifier: MIT
// The tokens of a chunk as the token view has them, {token, logprob, bytes, top_logprobs}, from either form: chat has
// a list of such entries, completions four lists side by side, which name the bytes of a part of a character.

const encoder = new TextEncoder();

function bytesOf(name) {
  const escapes = /^bytes:((?:\\x[0-9a-f]{2})+)$/.exec(name);
  return escapes ? escapes[1].split("\\x").slice(1).map((hex) => parseInt(hex, 16)) : [...encoder.encode(name)];
}

const entry = (token, logprob) => ({ token, logprob, bytes: bytesOf(token) });

export function tokensOf(logprobs) {
  if (!logprobs?.tokens) return logprobs?.content ?? [];
  return logprobs.tokens.map((token, i) => {
    const likely = Object.entries(logprobs.top_logprobs?.[i] ?? {}).map(([other, logprob]) => entry(other, logprob));
    return { ...entry(token, logprobs.token_logprobs[i]), top_logprobs: likely.sort((a, b) => b.logprob - a.logprob) };
  });
}
