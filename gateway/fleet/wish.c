/* SPDX-License-Identifier: MIT */
/* See wish.h. */

#include "gateway/fleet/wish.h"

#include <quern.h>
#include <stdlib.h>
#include <string.h>

#include "proto/message.h"
#include "proto/prompts/pieces.h"
#include "proto/prompts/space.h"

#define TOKEN_BYTES 4 /* of text, about */

static struct bytes text_of(const char *text)
{
    return bytes_of_string(text ? text : "");
}

/* The messages as the protocol has them; the caller frees them. NULL: out of memory. */
static struct chat_message *messages_of(const struct quern_request *request)
{
    struct chat_message *messages = calloc(request->n_messages, sizeof *messages);
    for (size_t i = 0; messages && i < request->n_messages; i++) {
        const struct quern_message *from = &request->messages[i];
        messages[i] = (struct chat_message){.role = text_of(from->role),
                                            .content = text_of(from->content),
                                            .name = text_of(from->name),
                                            .tool_calls = text_of(from->tool_calls),
                                            .tool_call_id = text_of(from->tool_call_id),
                                            .thought = text_of(from->thought)};
    }
    return messages;
}

static size_t text_len(const struct quern_request *request)
{
    return request->text_len > 0 || !request->text ? request->text_len : strlen(request->text);
}

struct prompt_pieces *wish_pieces(const struct quern_request *request, uint64_t seed, const char *space)
{
    struct generation generation = {.cache_prompt = request->cache_prompt,
                                    .tenant = text_of(request->tenant),
                                    .cache_salt = text_of(request->cache_salt),
                                    .tools = text_of(request->tools)};
    struct chat_message *messages = NULL;
    char text[PROMPT_SPACE_BYTES];
    if (request->embed)
        return NULL;
    generation.prompt.special = request->special;
    generation.prompt.template_kwargs = text_of(request->template_kwargs);
    if (request->messages) {
        if (!(messages = messages_of(request)))
            return NULL;
        generation.prompt.form = PROMPT_CHAT;
        generation.prompt.chat.items = messages;
        generation.prompt.chat.n = request->n_messages;
    } else if (request->ids) {
        generation.prompt.form = PROMPT_IDS;
        generation.prompt.ids = (struct id_list){request->ids, request->n_ids};
    } else {
        generation.prompt.form = PROMPT_TEXT;
        generation.prompt.text = (struct bytes){request->text ? request->text : "", text_len(request)};
    }
    prompt_space_set(space, text, &generation);
    struct prompt_pieces *pieces = prompt_pieces_cut(&generation, seed);
    free(messages);
    return pieces;
}

double wish_prompt_tokens(const struct quern_request *request)
{
    size_t bytes = text_len(request) + (request->tools ? strlen(request->tools) : 0);
    for (size_t i = 0; request->messages && i < request->n_messages; i++)
        bytes += strlen(request->messages[i].content ? request->messages[i].content : "");
    return (double)request->n_ids + (double)bytes / TOKEN_BYTES;
}

double wish_decode_tokens(const struct quern_request *request)
{
    if (request->embed)
        return 0;
    return request->max_tokens > 0 && request->max_tokens < WISH_DECODE_TOKENS ? request->max_tokens
                                                                               : WISH_DECODE_TOKENS;
}
