/* SPDX-License-Identifier: MIT */
/* Checks of fields that depend on one another, once each has passed on its own (check.c). */

#include "proto/fields.h"

int field_table_check_ending(const void *value, struct error *err)
{
    const struct ending *ending = value;
    if ((ending->reason == END_ERROR) != (ending->error != PROTO_OK))
        return error_set(err, MESSAGE_E_MALFORMED, "error: expected with the reason error, and only with it");
    if (ending->limit != LIMIT_NONE && ending->reason != END_LENGTH)
        return error_set(err, MESSAGE_E_MALFORMED, "limit: expected with the reason length only");
    return 0;
}

int field_table_check_usage(const void *value, struct error *err)
{
    const struct usage *usage = value;
    if (usage->accepted_tokens > usage->drafted_tokens)
        return error_set(err, MESSAGE_E_MALFORMED, "accepted_tokens: more than drafted_tokens");
    return 0;
}

static bool is_request_id(struct bytes text)
{
    const uint8_t *bytes = text.data;
    for (size_t i = 0; i < text.len; i++)
        if (bytes[i] <= ' ' || bytes[i] > '~')
            return false;
    return true;
}

int field_table_check_generation(const void *value, struct error *err)
{
    const struct generation *generation = &((const struct message *)value)->generate.generation;
    if (!is_request_id(generation->request_id))
        return error_set(err, MESSAGE_E_MALFORMED, "request_id: expected printable ASCII without blanks");
    if (rates_any(&generation->rates) && generation->tenant.len == 0)
        return error_set(err, MESSAGE_E_MALFORMED, "rpm, tpm, rpd and tpd: expected with tenant only");
    if (generation->tools.len > 0 && generation->prompt.form != PROMPT_CHAT)
        return error_set(err, MESSAGE_E_MALFORMED, "tools: expected with messages only");
    if ((generation->prompt.template_kwargs.len > 0 || generation->marks) &&
        generation->prompt.form != PROMPT_CHAT)
        return error_set(err, MESSAGE_E_MALFORMED, "template_kwargs and marks: expected with messages only");
    const struct prompt *prompt = &generation->prompt;
    if (prompt->has_suffix && (prompt->form != PROMPT_TEXT || generation->embed))
        return error_set(err, MESSAGE_E_MALFORMED, "suffix: expected with a text, and without embed");
    if (prompt->files.len > 0 && !prompt->has_suffix)
        return error_set(err, MESSAGE_E_MALFORMED, "files: expected with suffix only");
    if (prompt->form == PROMPT_TEXT && prompt->text.len == 0 && !prompt->has_suffix)
        return error_set(err, MESSAGE_E_MALFORMED, "prompt: is empty");
    if (prompt->continue_turn && prompt->form != PROMPT_CHAT)
        return error_set(err, MESSAGE_E_MALFORMED, "continue_turn: expected with messages only");
    if (generation->embed && generation->prompt.form == PROMPT_CHAT)
        return error_set(err, MESSAGE_E_MALFORMED, "embed: expected with a text or token ids, not messages");
    if (prompt->has_document && (prompt->form != PROMPT_TEXT || !generation->embed))
        return error_set(err, MESSAGE_E_MALFORMED, "document: expected with a text and embed");
    if (prompt->has_document && prompt->document.len == 0)
        return error_set(err, MESSAGE_E_MALFORMED, "document: is empty");
    if (generation->ignore_eos && !grammar_text_is_none(&generation->grammar))
        return error_set(err, MESSAGE_E_MALFORMED,
                         "ignore_eos: not supported together with a grammar, which ends the output");
    if (generation->min_tokens > 0 && !grammar_text_is_none(&generation->grammar))
        return error_set(err, MESSAGE_E_MALFORMED,
                         "min_tokens: not supported together with a grammar, which ends the output");
    if (generation->max_tokens > 0 && generation->min_tokens > generation->max_tokens)
        return error_set(err, MESSAGE_E_MALFORMED, "min_tokens: %u is above max_tokens (%u)",
                         generation->min_tokens, generation->max_tokens);
    const bool told[] = {generation->max_tokens > 0,
                         generation->min_tokens > 0,
                         generation->logprobs > 0,
                         generation->stop.n + generation->stop_ids.n > 0,
                         !grammar_text_is_none(&generation->grammar),
                         prompt->has_thinking_budget};
    static const char *const names[] = {"max_tokens",        "min_tokens", "logprobs",
                                        "stop and stop_ids", "grammar",    "thinking_budget"};
    for (size_t i = 0; generation->embed && i < sizeof told / sizeof *told; i++)
        if (told[i])
            return error_set(err, MESSAGE_E_MALFORMED,
                             "%s: not supported with embed, which generates no tokens", names[i]);
    return 0;
}

static bool requires_feature(const struct generation *generation, const char *name)
{
    for (size_t i = 0; i < generation->require.n; i++)
        if (bytes_equal(generation->require.items[i], bytes_of_string(name)))
            return true;
    return false;
}

/* What a client says of a request that it resumes; an assign has it without any `require`. */
static int check_resume(const struct generation *generation, struct error *err)
{
    const size_t n = generation->output.n;
    if (n == 0 && generation->off == 0 && generation->lost == 0 && generation->prompt_digest.len == 0)
        return 0;
    if (!requires_feature(generation, PROTO_FEATURE_RESUME))
        return error_set(err, MESSAGE_E_MALFORMED,
                         "output, off, lost and prompt_digest: expected with \"" PROTO_FEATURE_RESUME
                         "\" under require");
    if (generation->embed)
        return error_set(
            err, MESSAGE_E_MALFORMED,
            "output, off, lost and prompt_digest: not supported with embed, which generates no tokens");
    if (n == 0 && generation->off > 0)
        return error_set(err, MESSAGE_E_MALFORMED, "off: expected with output only");
    if (n > 0 && !generation->has_seed)
        return error_set(err, MESSAGE_E_MALFORMED, "seed: required with output");
    if (generation->max_tokens > 0 && n > generation->max_tokens)
        return error_set(err, MESSAGE_E_MALFORMED, "output: %zu ids are more than max_tokens (%u)", n,
                         generation->max_tokens);
    return 0;
}

int field_table_check_generate(const void *value, struct error *err)
{
    int r = field_table_check_generation(value, err);
    return r == 0 ? check_resume(&((const struct message *)value)->generate.generation, err) : r;
}

int field_table_check_part(const void *value, struct error *err)
{
    const struct message *message = value;
    const uint32_t total = message->generate_part.total, at = message->generate_part.at;
    if (at > total || message->generate_part.data.len > total - at)
        return error_set(err, MESSAGE_E_MALFORMED, "data: exceeds the %u bytes of total", total);
    return 0;
}

int field_table_check_tokenize(const void *value, struct error *err)
{
    const struct message *message = value;
    const struct prompt *prompt = &message->tokenize.prompt;
    const bool of_text = message->tokenize.special || message->tokenize.bare;
    const bool of_chat = message->tokenize.tools.len > 0 || prompt->template_kwargs.len > 0 ||
                         prompt->continue_turn || message->tokenize.written;
    if (message->tokenize.has_text == (prompt->chat.n > 0))
        return error_set(err, MESSAGE_E_MALFORMED, "expected either text or messages");
    if (of_text && prompt->chat.n > 0)
        return error_set(err, MESSAGE_E_MALFORMED, "special and bare: expected with a text only");
    if (of_chat && prompt->chat.n == 0)
        return error_set(err, MESSAGE_E_MALFORMED,
                         "tools, template_kwargs, continue_turn and written: expected with messages only");
    return 0;
}

int field_table_check_tenants(const void *value, struct error *err)
{
    const struct tenant_uses *tenants = &((const struct message *)value)->tenants.tenants;
    for (size_t i = 1; i < tenants->n; i++)
        if (memcmp(&tenants->items[i - 1].id, &tenants->items[i].id, sizeof(struct id128)) >= 0)
            return error_set(err, MESSAGE_E_MALFORMED, "tenants: expected in ascending order of ids");
    return 0;
}

int field_table_check_credit(const void *value, struct error *err)
{
    const struct message *message = value;
    if (message->credit.topics.n != message->credit.counts.n)
        return error_set(err, MESSAGE_E_MALFORMED, "counts: expected as many as topics");
    for (size_t i = 0; i < message->credit.topics.n; i++)
        if (message->credit.topics.items[i].len != PROTO_TOPIC_BYTES)
            return error_set(err, MESSAGE_E_MALFORMED, "topics: expected %d bytes each", PROTO_TOPIC_BYTES);
    return 0;
}
