/* SPDX-License-Identifier: MIT */
/* Prompts to ids.
 *
 * The broker has checked the shape of a generation; what needs the model is checked here. Text is tokenized
 * with the model's own special tokens at its ends, a conversation goes through the model's template. Nothing
 * here changes after prompt_encoder_bound, so the thread that prepares prompts and the loop read it at the
 * same time. */

#include "worker/prepare/prompt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/amount.h"
#include "common/utf8.h"
#include "text/dialect/derive/derive.h"
#include "worker/prepare/infill.h"
#include "worker/prepare/pair.h"

static int open_chat(struct prompt_encoder *encoder, struct bytes source)
{
    const struct tokenizer *tokenizer = encoder->tokenizer;
    if (source.len == 0) {
        error_set(&encoder->no_chat, 0, "the model has no chat template: send text or token ids");
        return 0;
    }
    int32_t bos = tokenizer_bos(tokenizer), eos = tokenizer_eos(tokenizer);
    const struct bytes none = {"", 0};
    int r = chat_template_new(source, bos == TOKENIZER_NONE ? none : tokenizer_name(tokenizer, bos),
                              eos == TOKENIZER_NONE ? none : tokenizer_name(tokenizer, eos), &encoder->chat,
                              &encoder->no_chat);
    if (r == -ENOMEM) /* another time it could be */
        return error_set(&encoder->no_chat, r, "out of memory for the model's chat template");
    if (r < 0)
        error_prefix(&encoder->no_chat, r, "the model's chat template cannot be used");
    return 0;
}

/* The texts of a dialect, in which control tokens are looked for. */
struct found_marks {
    struct prompt_encoder *encoder;
    int32_t id;
    struct bytes name;
};

static void look_for_mark(void *arg, const char *text)
{
    const struct found_marks *found = arg;
    struct prompt_encoder *encoder = found->encoder;
    const bool known = encoder->n_marks > 0 && encoder->marks[encoder->n_marks - 1] == found->id;
    if (!known && encoder->n_marks < PROMPT_MOST_MARKS &&
        memmem(text, strlen(text), found->name.data, found->name.len))
        encoder->marks[encoder->n_marks++] = found->id;
}

/* The control tokens that stand around calls, thoughts and answers: their text is nothing, so whoever reads
 * it would not see them. */
static void find_marks(struct prompt_encoder *encoder)
{
    const struct tokenizer *tokenizer = encoder->tokenizer;
    for (uint32_t id = 0; id < tokenizer_size(tokenizer); id++) {
        struct found_marks found = {encoder, (int32_t)id, tokenizer_name(tokenizer, (int32_t)id)};
        if (tokenizer_type(tokenizer, (int32_t)id) == TOKEN_CONTROL && found.name.len > 1)
            dialect_each_text(&encoder->dialect, look_for_mark, &found);
    }
}

static int derive(struct prompt_encoder *encoder, struct bytes source, struct error *err)
{
    const struct ids_view ends = tokenizer_end_ids(encoder->tokenizer);
    struct bytes *stops = calloc(ends.n + 1, sizeof *stops);
    int r = stops ? 0 : -ENOMEM;
    for (size_t i = 0; i < ends.n && r == 0; i++)
        stops[i] = tokenizer_name(encoder->tokenizer, ends.items[i]);
    if (r == 0 && encoder->chat) {
        chat_template_permit_changes(encoder->chat);
        r = dialect_derive(encoder->chat, source, (struct dialect_stops){stops, ends.n}, &encoder->dialect);
    }
    free(stops);
    json_t *json = r == 0 && encoder->chat ? dialect_write(&encoder->dialect) : NULL;
    encoder->dialect_text = json ? json_dumps(json, JSON_COMPACT) : strdup("");
    json_decref(json);
    if (r < 0 || !encoder->dialect_text)
        return error_set(err, -ENOMEM, "out of memory for the model's chat template");
    if (strlen(encoder->dialect_text) > DIALECT_MOST_BYTES)
        encoder->dialect_text[0] = 0;
    find_marks(encoder);
    if (thought_ends_init(&encoder->thought_ends, encoder->tokenizer, &encoder->dialect.thoughts) < 0)
        return error_set(err, -ENOMEM, "out of memory for the model's chat template");
    return 0;
}

const char *prompt_call_form(const struct prompt_encoder *encoder)
{
    const struct dialect_calls *calls = &encoder->dialect.calls;
    return !calls->known                         ? ""
           : calls->name_key                     ? "object"
           : calls->arguments == DIALECT_MEMBERS ? "members"
                                                 : "named";
}

int prompt_encoder_init(struct prompt_encoder *encoder, const struct model *model, struct error *err)
{
    *encoder =
        (struct prompt_encoder){.tokenizer = model->tokenizer, .longest_token = 1, .most_bytes = SIZE_MAX};
    dialect_init(&encoder->dialect);
    encoder->ranks = model->params.pooling == POOLING_RANK;
    int r = buffer_append(&encoder->rank_template, model->rank_template.data, model->rank_template.len);
    if (r < 0) /* a copy: the file is let go */
        return error_set(err, r, "out of memory for the model's template of pairs");
    for (uint32_t id = 0; id < tokenizer_size(model->tokenizer); id++) {
        size_t len = tokenizer_name(model->tokenizer, (int32_t)id).len;
        if (len > encoder->longest_token)
            encoder->longest_token = len;
    }
    r = open_chat(encoder, model->chat_template);
    if (r < 0)
        return error_set(err, r, "%s", encoder->no_chat.text);
    return derive(encoder, model->chat_template, err);
}

void prompt_encoder_deinit(struct prompt_encoder *encoder)
{
    encoder->chat = chat_template_free(encoder->chat);
    dialect_deinit(&encoder->dialect);
    buffer_deinit(&encoder->rank_template);
    thought_ends_deinit(&encoder->thought_ends);
    free(encoder->dialect_text);
    encoder->dialect_text = NULL;
}

void prompt_encoder_bound(struct prompt_encoder *encoder, uint32_t most_tokens)
{
    encoder->most_bytes = encoder->longest_token * most_tokens;
    encoder->most_tokens = most_tokens;
}

static bool has_system(const struct prompt *prompt)
{
    for (size_t i = 0; i < prompt->chat.n; i++)
        if (bytes_equal(prompt->chat.items[i].role, BYTES_LITERAL("system")) ||
            bytes_equal(prompt->chat.items[i].role, BYTES_LITERAL("developer")))
            return true;
    return false;
}

/* What the model is told of tools where its template says nothing of them: at the end of the system's
 * message. Appends it to `text`, which the turn borrows. -ENOMEM. */
static int tell_tools(struct chat_turn *turns, size_t *n, struct bytes tools, struct buffer *text)
{
    static const char words[] = "You may call these tools, described in JSON:\n";
    const bool has = *n > 0 && bytes_equal(turns[0].role, BYTES_LITERAL("system"));
    int r = has ? buffer_append(text, turns[0].content.data, turns[0].content.len) : 0;
    if (r == 0 && text->len > 0)
        r = buffer_append(text, "\n\n", 2);
    if (r == 0)
        r = buffer_append(text, words, sizeof words - 1);
    if (r == 0)
        r = buffer_append(text, tools.data, tools.len);
    if (r < 0)
        return r;
    if (!has) {
        memmove(turns + 1, turns, *n * sizeof *turns);
        turns[0] = (struct chat_turn){.role = BYTES_LITERAL("system")};
        ++*n;
    }
    turns[0].content = (struct bytes){text->data, text->len};
    return 0;
}

static bool encode_chat(const struct prompt_encoder *encoder, const struct prompt *prompt, struct bytes tools,
                        struct ids *ids, struct buffer *ret_text, struct refusal *ret_refusal)
{
    if (!encoder->chat)
        return refuse(ret_refusal, PROTO_UNSUPPORTED, "%s", encoder->no_chat.text);
    if (tools.len > 0 && !encoder->dialect.calls.known)
        return refuse(ret_refusal, PROTO_UNSUPPORTED, "tools: %s", encoder->dialect.calls.reason);
    const struct chat_message *last = prompt->chat.n > 0 ? &prompt->chat.items[prompt->chat.n - 1] : NULL;
    if (prompt->continue_turn &&
        (!last || !bytes_equal(last->role, BYTES_LITERAL("assistant")) || last->tool_calls.len > 0))
        return refuse(ret_refusal, PROTO_BAD_REQUEST,
                      "continue_turn: the last message is not text of the assistant");
    struct buffer told = {0};
    struct bytes variables;
    char *made = NULL;
    struct chat_turn *turns = calloc(prompt->chat.n + 2, sizeof *turns);
    if (!turns || !thinking_variables(&encoder->dialect.thoughts, prompt, &variables, &made)) {
        free(turns);
        return refuse(ret_refusal, PROTO_INTERNAL, "out of memory for the conversation");
    }
    size_t n = 0;
    if (encoder->system.len > 0 && !has_system(prompt))
        turns[n++] = (struct chat_turn){.role = BYTES_LITERAL("system"), .content = encoder->system};
    for (size_t i = 0; i < prompt->chat.n; i++)
        turns[n++] = (struct chat_turn){.role = prompt->chat.items[i].role,
                                        .content = prompt->chat.items[i].content,
                                        .name = prompt->chat.items[i].name,
                                        .tool_calls = prompt->chat.items[i].tool_calls,
                                        .tool_call_id = prompt->chat.items[i].tool_call_id,
                                        .thought = prompt->chat.items[i].thought};
    const bool untold = tools.len > 0 && encoder->dialect.calls.untold;
    if (untold && tell_tools(turns, &n, tools, &told) < 0) {
        free(turns);
        free(made);
        return refuse(ret_refusal, PROTO_INTERNAL, "out of memory for the conversation");
    }
    const struct chat_conversation conversation = {.turns = turns,
                                                   .n = n,
                                                   .tools = untold ? BYTES_LITERAL("") : tools,
                                                   .variables = variables,
                                                   .thought_key = encoder->dialect.thoughts.key,
                                                   .text_arguments = encoder->dialect.calls.text_arguments,
                                                   .continue_last = prompt->continue_turn};
    int r = chat_template_encode(encoder->chat, encoder->tokenizer, &conversation, encoder->most_bytes, ids,
                                 ret_text, &ret_refusal->reason);
    free(turns);
    free(made);
    buffer_deinit(&told);
    ret_refusal->error = r == -ENOMEM ? PROTO_INTERNAL : r == -E2BIG ? PROTO_TOO_LONG : PROTO_BAD_REQUEST;
    if (r != 0 && ret_refusal->reason.text[0] == 0)
        error_set(&ret_refusal->reason, 0, "the conversation could not be turned into a prompt");
    return r == 0;
}

/* A conversation is tried, since what a template refuses only shows when it is rendered. */
int prompt_encoder_set_system(struct prompt_encoder *encoder, struct bytes system, struct error *err)
{
    const struct chat_message probe = {.role = BYTES_LITERAL("user"), .content = BYTES_LITERAL("Hello")};
    const struct prompt prompt = {.form = PROMPT_CHAT, .chat = {&probe, 1}};
    struct ids ids = {0};
    struct refusal refusal = {0};
    if (utf8_valid(system) < system.len)
        return error_set(err, -EINVAL, "it is not UTF-8");
    encoder->system = system;
    bool taken = encode_chat(encoder, &prompt, BYTES_LITERAL(""), &ids, NULL, &refusal);
    ids_deinit(&ids);
    return taken ? 0 : error_set(err, -EINVAL, "%s", refusal.reason.text);
}

static bool encode_text(const struct prompt_encoder *encoder, struct bytes text, unsigned flags,
                        struct ids *ids, struct refusal *ret_refusal)
{
    int r = tokenizer_encode(encoder->tokenizer, text, flags, ids);
    if (r == -EILSEQ)
        return refuse(ret_refusal, PROTO_BAD_REQUEST, "the text is not UTF-8");
    if (r < 0)
        return refuse(ret_refusal, PROTO_INTERNAL, "out of memory for the text");
    return true;
}

bool prompt_encode_text(const struct prompt_encoder *encoder, struct bytes text, unsigned flags,
                        struct ids *ret_ids, struct refusal *ret_refusal)
{
    if (!encode_text(encoder, text, flags, ret_ids, ret_refusal))
        return false;
    if (ret_ids->len > PROTO_MAX_QUESTION_IDS)
        return refuse(ret_refusal, PROTO_TOO_LONG, "the text has too many tokens for one message");
    return true;
}

bool prompt_encode_chat(const struct prompt_encoder *encoder, const struct prompt *prompt, struct bytes tools,
                        struct ids *ret_ids, struct buffer *ret_text, struct refusal *ret_refusal)
{
    if (!encode_chat(encoder, prompt, tools, ret_ids, ret_text, ret_refusal))
        return false;
    if (ret_ids->len > PROTO_MAX_QUESTION_IDS || (ret_text && ret_text->len > PROTO_MAX_REQUEST_BYTES))
        return refuse(ret_refusal, PROTO_TOO_LONG, "the conversation's prompt is too long for one message");
    return true;
}

bool prompt_encode(const struct prompt_encoder *encoder, const struct prompt *prompt, struct bytes tools,
                   struct ids *ret_ids, struct refusal *ret_refusal)
{
    if (prompt->form == PROMPT_CHAT) {
        if (!encode_chat(encoder, prompt, tools, ret_ids, NULL, ret_refusal))
            return false;
    } else if (prompt->has_document) {
        if (!pair_encode(encoder, prompt, ret_ids, ret_refusal))
            return false;
    } else if (encoder->ranks) {
        return refuse(ret_refusal, PROTO_UNSUPPORTED,
                      "the model ranks pairs of texts (pooling_type rank): a query and a document are "
                      "required; it cannot generate text or embeddings");
    } else if (prompt->has_suffix) {
        if (!infill_encode(encoder, prompt, ret_ids, ret_refusal))
            return false;
    } else {
        if (prompt->text.len > encoder->most_bytes)
            return refuse(ret_refusal, PROTO_TOO_LONG, "the prompt has %s; at most %s fit",
                          amount_of_bytes(prompt->text.len).text, amount_of_bytes(encoder->most_bytes).text);
        unsigned flags =
            TOKENIZER_ADD_SPECIAL | TOKENIZER_ADD_ONCE | (prompt->special ? TOKENIZER_PARSE_SPECIAL : 0);
        if (!encode_text(encoder, prompt->text, flags, ret_ids, ret_refusal))
            return false;
    }
    return ret_ids->len > 0 ? true : refuse(ret_refusal, PROTO_BAD_REQUEST, "the prompt is empty");
}

/* ---- ids to text ---- */

struct bytes prompt_piece(const struct tokenizer *tokenizer, int32_t id)
{
    struct bytes piece = tokenizer_piece(tokenizer, id, false);
    if (piece.len == 0)
        piece = tokenizer_name(tokenizer, id);
    if (piece.len > PROTO_MAX_PIECE_BYTES)
        piece.len = PROTO_MAX_PIECE_BYTES;
    return piece;
}

bool prompt_decode(const struct prompt_encoder *encoder, struct id_list ids, bool special,
                   struct buffer *ret_text, struct refusal *ret_refusal)
{
    struct buffer text = {0};
    size_t before = ret_text->len;
    for (size_t i = 0; i < ids.n; i++)
        if ((uint32_t)ids.items[i] >= tokenizer_size(encoder->tokenizer))
            return refuse(ret_refusal, PROTO_BAD_REQUEST, "id %d is outside the vocabulary of %u",
                          ids.items[i], tokenizer_size(encoder->tokenizer));
    int r = tokenizer_decode(encoder->tokenizer, ids.items, ids.n, special, PROTO_MAX_REQUEST_BYTES, &text);
    if (r == 0)
        r = utf8_append_replaced(ret_text, (struct bytes){text.data, text.len});
    buffer_deinit(&text);
    if (r < 0)
        return refuse(ret_refusal, PROTO_INTERNAL, "out of memory for the text");
    if (ret_text->len - before <= PROTO_MAX_REQUEST_BYTES)
        return true;
    ret_text->len = before;
    return refuse(ret_refusal, PROTO_TOO_LONG, "the text of these ids is too long for one message");
}
