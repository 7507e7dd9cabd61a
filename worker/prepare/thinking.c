/* SPDX-License-Identifier: MIT */
/* See thinking.h. The end of a thought is a text of the template; its ids are those that the tokenizer makes
 * of it, without the space that some vocabularies put before every text. If that cannot be cut off, the text
 * is tried behind a newline and behind a full stop, whose ids are then left out. */

#include "worker/prepare/thinking.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "text/dialect/blank.h"

#define MOST_BLANKS 64 /* bytes behind what opens a thought at the end of a prompt */

static struct bytes piece_of(const struct tokenizer *tokenizer, int32_t id)
{
    const struct bytes piece = tokenizer_piece(tokenizer, id, false);
    return piece.len > 0 ? piece : tokenizer_name(tokenizer, id);
}

/* ---- the end ---- */

/* Whether the ids from `from` on begin as the text does and are that text, but for blanks: a vocabulary may
 * write a space behind a control token too, as it does in prompts. */
static bool spell(const struct tokenizer *tokenizer, const struct ids *ids, size_t from, struct bytes text)
{
    const struct bytes first = piece_of(tokenizer, ids->data[from]);
    const char *want = text.data, *end = want + text.len;
    if (first.len == 0 || *(const char *)first.data != *want)
        return false;
    for (size_t i = from; i < ids->len; i++) {
        const struct bytes piece = piece_of(tokenizer, ids->data[i]);
        const char *got = piece.data;
        for (size_t k = 0; k < piece.len; k++) {
            while (want < end && is_blank((uint8_t)*want))
                want++;
            if (is_blank((uint8_t)got[k]))
                continue;
            if (want == end || *want++ != got[k])
                return false;
        }
    }
    while (want < end && is_blank((uint8_t)*want))
        want++;
    return want == end;
}

/* The ids of the text behind `before`; none if the two share an id, or the ids are another text. */
static int encode_behind(const struct tokenizer *tokenizer, const char *before, struct bytes text,
                         struct ids *ids)
{
    struct buffer both = {0};
    struct ids all = {0};
    int r = buffer_append(&both, before, strlen(before));
    if (r == 0)
        r = buffer_append(&both, text.data, text.len);
    if (r == 0)
        r = tokenizer_encode(tokenizer, (struct bytes){both.data, both.len}, TOKENIZER_PARSE_SPECIAL, &all);
    for (size_t from = all.len; from > 0 && r == 0 && ids->len == 0; from--)
        if (spell(tokenizer, &all, from - 1, text))
            r = ids_append(ids, all.data + from - 1, all.len - from + 1);
    buffer_deinit(&both);
    ids_deinit(&all);
    return r == -EILSEQ ? 0 : r;
}

static int encode_end(const struct tokenizer *tokenizer, struct bytes text, struct ids *ids)
{
    static const char *const before[] = {"", "\n", "."};
    int r = 0;
    for (size_t i = 0; i < sizeof before / sizeof *before && r == 0 && ids->len == 0 && text.len > 0; i++)
        r = encode_behind(tokenizer, before[i], text, ids);
    return r;
}

int thought_ends_init(struct thought_ends *ends, const struct tokenizer *tokenizer,
                      const struct dialect_thoughts *thoughts)
{
    *ends = (struct thought_ends){0};
    if (!thoughts->known)
        return 0;
    const char *text = thoughts->end[0] ? thoughts->end : thoughts->close;
    const char *mark = strstr(text, thoughts->close);
    const size_t n_close = mark ? (size_t)(mark - text) + strlen(thoughts->close) : strlen(text);
    int r = encode_end(tokenizer, (struct bytes){text, n_close}, &ends->close);
    if (r == 0)
        r = encode_end(tokenizer, bytes_of_string(text), &ends->whole);
    return r;
}

void thought_ends_deinit(struct thought_ends *ends)
{
    ids_deinit(&ends->close);
    ids_deinit(&ends->whole);
}

bool thinking_check(const struct thought_ends *ends, const struct dialect_thoughts *thoughts, uint32_t budget,
                    struct refusal *ret_refusal)
{
    if (!thoughts->known)
        return budget == 0 || refuse(ret_refusal, PROTO_UNSUPPORTED,
                                     "thinking_budget: unknown how this model ends a thought: %s",
                                     thoughts->reason[0] ? thoughts->reason : "it has no chat template");
    if (ends->close.len == 0 || ends->whole.len == 0)
        return refuse(ret_refusal, PROTO_UNSUPPORTED,
                      "thinking_budget: the model's tokenizer cannot write the end of a thought (%s)",
                      thoughts->close);
    return true;
}

/* ---- the prompt ---- */

/* The text of the ids from `from` on. */
static int write_text(const struct tokenizer *tokenizer, struct ids_view ids, size_t from,
                      struct buffer *text)
{
    int r = 0;
    for (size_t i = from; i < ids.n && r == 0; i++) {
        const struct bytes piece = piece_of(tokenizer, ids.items[i]);
        r = buffer_append(text, piece.data, piece.len);
    }
    return r;
}

/* Where the last occurrence begins, plus 1; 0: there is none. Blanks around what is looked for do not count.
 */
static size_t find_last(const struct buffer *text, const char *words)
{
    const struct bytes what = without_blanks(words);
    for (size_t at = text->len >= what.len ? text->len - what.len + 1 : 0; at > 0; at--)
        if (memcmp(text->data + at - 1, what.data, what.len) == 0)
            return at;
    return 0;
}

/* Nor do blanks at the end of the text. */
static bool ends_with(const struct buffer *text, const char *words)
{
    const struct bytes what = without_blanks(words);
    size_t n = text->len;
    while (n > 0 && is_blank(text->data[n - 1]))
        n--;
    return n >= what.len && memcmp(text->data + n - what.len, what.data, what.len) == 0;
}

int thinking_is_inside(const struct tokenizer *tokenizer, const struct dialect_thoughts *thoughts,
                       const struct prompt *prompt, struct ids_view ids, bool *ret_inside)
{
    const bool open = prompt->form == PROMPT_CHAT && !prompt->continue_turn;
    struct buffer text = {0};
    size_t from = open ? ids.n : 0, len = 0;
    *ret_inside = false;
    if (!thoughts->known || !thoughts->open[0])
        return 0;
    for (; from > 0 && len < strlen(thoughts->open) + MOST_BLANKS; from--)
        len += piece_of(tokenizer, ids.items[from - 1]).len;
    int r = write_text(tokenizer, ids, from, &text);
    if (r == 0)
        *ret_inside = open ? ends_with(&text, thoughts->open)
                           : find_last(&text, thoughts->open) > find_last(&text, thoughts->close);
    buffer_deinit(&text);
    return r;
}

bool thinking_variables(const struct dialect_thoughts *thoughts, const struct prompt *prompt,
                        struct bytes *ret_variables, char **ret_made)
{
    const struct bytes given = prompt->template_kwargs;
    const bool off = prompt->thinking_budget == 0 && thoughts->switch_off;
    *ret_variables = given;
    *ret_made = NULL;
    if (!prompt->has_thinking_budget || !thoughts->known || (!off && !thoughts->budget_key[0]))
        return true;
    json_t *variables = given.len > 0 ? json_loadb(given.data, given.len, 0, NULL) : json_object();
    if (given.len > 0 && !json_is_object(variables)) { /* the template says what is wrong with it */
        json_decref(variables);
        return true;
    }
    bool good = variables != NULL;
    if (good && off)
        good = json_object_update_missing(variables, thoughts->switch_off) == 0;
    if (good && thoughts->budget_key[0] && !json_object_get(variables, thoughts->budget_key))
        good =
            json_object_set_new(variables, thoughts->budget_key, json_integer(prompt->thinking_budget)) == 0;
    *ret_made = good ? json_dumps(variables, JSON_COMPACT) : NULL;
    json_decref(variables);
    if (*ret_made)
        *ret_variables = bytes_of_string(*ret_made);
    return *ret_made != NULL;
}
