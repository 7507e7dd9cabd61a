/* SPDX-License-Identifier: MIT */
/* Chat templates: the variables that a template expects, and the way from its text to ids.
 *
 * The template language itself is jinja/'s. What matters here is who wrote what: everything out of the
 * messages is marked as the user's, the template's own words and the texts of BOS and EOS are not, and the
 * tokenizer then parses control tokens only in the latter. A turn that spells <|im_end|> stays inside its
 * turn. */

#include "worker/template/chat_template.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "worker/template/jinja/jinja.h"

struct chat_template {
    struct jinja_template *jinja;
    json_t *bos, *eos; /* strings */
};

int chat_template_new(struct bytes source, struct bytes bos, struct bytes eos,
                      struct chat_template **ret_template, struct error *err)
{
    struct chat_template *t = calloc(1, sizeof *t);
    if (!t)
        return error_set(err, -ENOMEM, "no memory for the chat template");
    int r = jinja_template_new(source, &t->jinja, err);
    if (r < 0) {
        chat_template_free(t);
        return error_prefix(err, r, "chat template");
    }
    t->bos = json_stringn(bos.data ? bos.data : "", bos.len);
    t->eos = json_stringn(eos.data ? eos.data : "", eos.len);
    if (!t->bos || !t->eos) {
        bool bos_wrong = !t->bos;
        chat_template_free(t);
        return error_set(err, -EINVAL, "the text of the %s token is not UTF-8", bos_wrong ? "BOS" : "EOS");
    }
    *ret_template = t;
    return 0;
}

struct chat_template *chat_template_free(struct chat_template *chat_template)
{
    if (!chat_template)
        return NULL;
    jinja_template_free(chat_template->jinja);
    json_decref(chat_template->bos);
    json_decref(chat_template->eos);
    free(chat_template);
    return NULL;
}

void chat_text_deinit(struct chat_text *text)
{
    buffer_deinit(&text->text);
    buffer_deinit(&text->from_user);
}

int chat_template_render(const struct chat_template *chat_template, const json_t *messages,
                         const struct chat_context *context, struct chat_text *ret_text, struct error *err)
{
    enum { OURS = 5 };
    size_t n_extra = context->extra ? json_object_size(context->extra) : 0, n = 0;
    char today[64] = "";
    strftime(today, sizeof today, "%d %b %Y", &context->date);
    json_t *date = json_string(today);
    struct jinja_variable *variables = calloc(n_extra + OURS, sizeof *variables);
    int r = -ENOMEM;
    if (!date || !variables) {
        error_set(err, r, "no memory for the chat");
        goto out;
    }
    const char *name;
    json_t *value;
    /* Ours come last: `extra` cannot replace them. */
    json_object_foreach((json_t *)context->extra, name, value)
    {
        variables[n++] = (struct jinja_variable){name, value, true};
    }
    variables[n++] = (struct jinja_variable){"messages", messages, true};
    variables[n++] = (struct jinja_variable){
        "add_generation_prompt", context->add_generation_prompt ? json_true() : json_false(), false};
    variables[n++] = (struct jinja_variable){"bos_token", chat_template->bos, false};
    variables[n++] = (struct jinja_variable){"eos_token", chat_template->eos, false};
    variables[n++] = (struct jinja_variable){"date_string", date, false};
    r = jinja_render(chat_template->jinja, variables, n, &context->date, &ret_text->text,
                     &ret_text->from_user, err);
    if (r == JINJA_E_REFUSED)
        r = CHAT_TEMPLATE_E_REFUSED;
    if (r < 0)
        error_prefix(err, r, "chat template");
out:
    free(variables);
    json_decref(date);
    return r;
}

static int messages_of(const struct chat_turn *turns, size_t n, json_t **ret_messages, struct error *err)
{
    json_t *messages = json_array();
    for (size_t i = 0; messages && i < n; i++) {
        json_t *role = json_stringn(turns[i].role.data ? turns[i].role.data : "", turns[i].role.len);
        json_t *content =
            json_stringn(turns[i].content.data ? turns[i].content.data : "", turns[i].content.len);
        if (!role || !content) {
            json_decref(role);
            json_decref(content);
            json_decref(messages);
            return error_set(err, -EILSEQ, "the %s of message %zu is not UTF-8", role ? "content" : "role",
                             i);
        }
        json_t *turn = json_pack("{s:o, s:o}", "role", role, "content", content);
        if (!turn || json_array_append_new(messages, turn) < 0) {
            json_decref(messages);
            messages = NULL;
        }
    }
    if (!messages)
        return error_set(err, -ENOMEM, "no memory for the chat");
    *ret_messages = messages;
    return 0;
}

/* The ids of a rendered chat, BOS before them where it belongs and is not yet. */
static int encode_text(const struct tokenizer *tokenizer, const struct chat_text *text, struct ids *ret_ids,
                       struct error *err)
{
    struct ids ids = {0};
    int r = tokenizer_encode_mixed(tokenizer, (struct bytes){text->text.data, text->text.len},
                                   text->from_user.data, TOKENIZER_PARSE_SPECIAL, &ids);
    size_t n_before = ret_ids->len;
    int32_t bos = tokenizer_bos(tokenizer);
    if (r == 0 && tokenizer_adds_bos(tokenizer) && (ids.len == 0 || ids.data[0] != bos))
        r = ids_push(ret_ids, bos);
    if (r == 0)
        r = ids_append(ret_ids, ids.data, ids.len);
    if (r < 0) {
        ret_ids->len = n_before;
        error_set(err, r, "the text of the chat cannot be tokenized: %s", strerror(-r));
    }
    ids_deinit(&ids);
    return r;
}

int chat_template_encode(const struct chat_template *chat_template, const struct tokenizer *tokenizer,
                         const struct chat_turn *turns, size_t n, size_t most, struct ids *ret_ids,
                         struct error *err)
{
    struct chat_context context = {.add_generation_prompt = true};
    struct chat_text text = {0};
    json_t *messages = NULL;
    time_t now = time(NULL);
    localtime_r(&now, &context.date);
    int r = messages_of(turns, n, &messages, err);
    if (r == 0)
        r = chat_template_render(chat_template, messages, &context, &text, err);
    if (r == 0 && text.text.len > most)
        r = error_set(err, -E2BIG, "the conversation has %zu bytes, at most %zu can fit", text.text.len,
                      most);
    if (r == 0)
        r = encode_text(tokenizer, &text, ret_ids, err);
    json_decref(messages);
    chat_text_deinit(&text);
    return r;
}
