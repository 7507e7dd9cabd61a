// SPDX-License-Identifier: MIT
// What the model is to read of a conversation whose last message is the answer that is asked for: messages for the
// chat template, or one text for a model that continues texts.

// A file is a code block, whose fence is longer than any in the file.
function asBlock({ name, text }) {
  const longest = Math.max(2, ...(text.match(/`+/g) ?? []).map((run) => run.length));
  const fence = "`".repeat(longest + 1);
  return `File ${name}:\n${fence}\n${text}${text.endsWith("\n") ? "" : "\n"}${fence}`;
}

// What a user said, after the files that go with it.
export function contentOf({ content, files = [] }) {
  return [...files.map(asBlock), content].filter((part) => part !== "").join("\n\n");
}

const saysSomething = (answer) => Boolean(answer.content || answer.calls?.length);

function answerOf({ content, thought, calls = [] }) {
  const answer = { role: "assistant", content };
  if (thought) answer.reasoning_content = thought;
  if (calls.length) answer.tool_calls = calls.map(({ id, name, arguments: given }) => ({ id, type: "function", function: { name, arguments: given } }));
  return [answer, ...calls.map(({ id, result }) => ({ role: "tool", tool_call_id: id, content: result ?? "" }))];
}

// A question that got no answer is left out with the answer.
export function messagesOf(messages) {
  const before = messages.slice(0, -1);
  return before.flatMap((message, i) => {
    if (message.role === "assistant") return saysSomething(message) ? answerOf(message) : [];
    const answered = i === before.length - 1 || saysSomething(before[i + 1]);
    return answered ? [{ role: "user", content: contentOf(message) }] : [];
  });
}

export function textOf(messages) {
  return messages.slice(0, -1).map(({ content, files = [] }) => files.map((file) => file.text).join("") + content).join("");
}
