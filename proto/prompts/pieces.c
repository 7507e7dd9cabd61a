/* SPDX-License-Identifier: MIT */
/* See pieces.h. The bytes of a prompt go through one piece at a time, whatever parts they come in. */

#include "proto/prompts/pieces.h"

#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "proto/message.h"

struct cutter {
    struct prompt_pieces *pieces;
    uint32_t most;
    uint64_t key;  /* of what separates prompts: the secret, space, salt */
    uint64_t hash; /* of the pieces so far */
    size_t n;      /* bytes of the piece that is not full yet */
    uint8_t piece[PROMPT_PIECE_BYTES];
};

static void cut(struct cutter *cutter, const void *piece)
{
    const uint64_t link[2] = {cutter->hash, hash64(piece, PROMPT_PIECE_BYTES, cutter->key)};
    cutter->hash = hash64(link, sizeof link, cutter->key);
    cutter->pieces->hashes[cutter->pieces->n++] = cutter->hash;
}

static void feed(struct cutter *cutter, const void *data, size_t len)
{
    const uint8_t *at = data;
    while (len > 0 && cutter->pieces->n < cutter->most) {
        size_t n = PROMPT_PIECE_BYTES - cutter->n;
        if (len >= n && cutter->n == 0) {
            cut(cutter, at);
        } else {
            n = len < n ? len : n;
            memcpy(cutter->piece + cutter->n, at, n);
            cutter->n += n;
            if (cutter->n == PROMPT_PIECE_BYTES) {
                cut(cutter, cutter->piece);
                cutter->n = 0;
            }
        }
        at += n;
        len -= n;
    }
}

/* A message begins with the lengths of its parts, so that no two conversations are the same bytes. */
struct message_head {
    uint32_t role_len, content_len, name_len, calls_len, call_id_len, thought_len;
};

static size_t bytes_of_message(const struct chat_message *message)
{
    return sizeof(struct message_head) + message->role.len + message->content.len + message->name.len +
           message->tool_calls.len + message->tool_call_id.len + message->thought.len;
}

static size_t bytes_of(const struct prompt *prompt)
{
    size_t n = 0;
    switch (prompt->form) {
    case PROMPT_TEXT:
        return prompt->text.len;
    case PROMPT_IDS:
        return prompt->ids.n * sizeof *prompt->ids.items;
    case PROMPT_CHAT:
        for (size_t i = 0; i < prompt->chat.n; i++)
            n += bytes_of_message(&prompt->chat.items[i]);
    }
    return n;
}

static void feed_prompt(struct cutter *cutter, const struct prompt *prompt)
{
    switch (prompt->form) {
    case PROMPT_TEXT:
        feed(cutter, prompt->text.data, prompt->text.len);
        break;
    case PROMPT_IDS:
        feed(cutter, prompt->ids.items, prompt->ids.n * sizeof *prompt->ids.items);
        break;
    case PROMPT_CHAT:
        for (size_t i = 0; i < prompt->chat.n; i++) {
            const struct chat_message *message = &prompt->chat.items[i];
            const struct message_head head = {
                (uint32_t)message->role.len,         (uint32_t)message->content.len,
                (uint32_t)message->name.len,         (uint32_t)message->tool_calls.len,
                (uint32_t)message->tool_call_id.len, (uint32_t)message->thought.len};
            feed(cutter, &head, sizeof head);
            feed(cutter, message->role.data, message->role.len);
            feed(cutter, message->content.data, message->content.len);
            feed(cutter, message->name.data, message->name.len);
            feed(cutter, message->tool_calls.data, message->tool_calls.len);
            feed(cutter, message->tool_call_id.data, message->tool_call_id.len);
            feed(cutter, message->thought.data, message->thought.len);
        }
    }
}

static uint64_t hash_text(struct bytes text, uint64_t seed)
{
    return hash64(text.len > 0 ? text.data : "", text.len, seed);
}

struct prompt_pieces *prompt_pieces_cut(const struct generation *generation, uint64_t secret)
{
    const struct prompt *prompt = &generation->prompt;
    size_t n = (generation->tools.len + bytes_of(prompt)) / PROMPT_PIECE_BYTES;
    if (n == 0 || !generation->cache_prompt)
        return NULL;
    struct cutter cutter = {.most = n < PROMPT_PIECES_MOST ? (uint32_t)n : PROMPT_PIECES_MOST};
    cutter.pieces = malloc(sizeof *cutter.pieces + cutter.most * sizeof *cutter.pieces->hashes);
    if (!cutter.pieces)
        return NULL;
    cutter.pieces->n = 0;
    cutter.hash = hash_text(generation->cache_space, secret + (uint64_t)prompt->form * 2 + prompt->special);
    cutter.hash = hash_text(generation->cache_salt, cutter.hash);
    cutter.hash = hash_text(generation->prompt.template_kwargs, cutter.hash);
    cutter.key = cutter.hash;
    feed(&cutter, generation->tools.data, generation->tools.len); /* templates write them first */
    feed_prompt(&cutter, prompt);
    return cutter.pieces;
}
