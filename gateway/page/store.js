// SPDX-License-Identifier: MIT
// Conversations that the browser keeps: an entry of localStorage each, {id, name, changed, plain, messages}, where
// `plain` says that texts are continued. How much there is room for, the browser says (about 5 MB); nothing is deleted
// to make room. Tokens are not kept: they are most of an answer.

const PREFIX = "quern.conversation.";
const NAME_MOST = 60; // characters of a name that is made of the first question

export function fresh() {
  return { id: `${Date.now().toString(36)}${Math.random().toString(36).slice(2, 8)}`, name: "", changed: 0, messages: [] };
}

export function nameOf(conversation) {
  const first = conversation.messages[0];
  const question = (first?.content.trim() || first?.files?.[0]?.name || "").split("\n", 1)[0];
  return conversation.name || (question.length > NAME_MOST ? `${question.slice(0, NAME_MOST)}…` : question) || "Without a name";
}

const isText = (value) => typeof value === "string";
const isTextOrNone = (value) => value === undefined || value === null || isText(value);
const isListOrNone = (value, isItem) => value === undefined || (Array.isArray(value) && value.every(isItem));
const isFile = (file) => isText(file?.name) && isText(file.text);
const isCall = (call) => isText(call?.id) && isText(call.name) && isText(call.arguments) && isTextOrNone(call.result);

function isMessage(message) {
  return ["user", "assistant"].includes(message?.role) && isText(message.content) && [message.thought, message.error].every(isTextOrNone) &&
    isListOrNone(message.files, isFile) && isListOrNone(message.calls, isCall);
}

// What an entry says, or null: whoever writes to this origin may have left anything there.
function parsed(text, id) {
  try {
    const read = JSON.parse(text);
    const good = read?.id === id && isText(read.name) && Number.isFinite(read.changed) && Array.isArray(read.messages) && read.messages.every(isMessage);
    return good ? read : null;
  } catch {
    return null;
  }
}

export const store = {
  // null: there is none, or nothing may be read here.
  read(id) {
    try {
      return parsed(localStorage.getItem(PREFIX + id), id);
    } catch {
      return null;
    }
  },

  // Whether it is kept now.
  write(conversation) {
    const messages = conversation.messages.map(({ tokens, progress, ...rest }) => rest);
    try {
      localStorage.setItem(PREFIX + conversation.id, JSON.stringify({ ...conversation, messages }));
      return true;
    } catch {
      return false;
    }
  },

  remove(id) {
    localStorage.removeItem(PREFIX + id);
  },

  // All of them, the newest first.
  list() {
    try {
      const found = Object.keys(localStorage).filter((key) => key.startsWith(PREFIX))
        .map((key) => parsed(localStorage.getItem(key), key.slice(PREFIX.length)));
      return found.filter(Boolean).sort((a, b) => b.changed - a.changed);
    } catch {
      return [];
    }
  },

  // `listener` is called with an id that another tab has changed.
  whenOthersChange(listener) {
    addEventListener("storage", ({ key }) => {
      if (key === null || key.startsWith(PREFIX)) listener(key?.slice(PREFIX.length));
    });
  },
};
