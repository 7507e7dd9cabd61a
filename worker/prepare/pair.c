/* SPDX-License-Identifier: MIT */
/* See pair.h. The text is put together with a mark for each byte that a client wrote, as a chat template's,
 * and tokenized as a whole: tokens may cross the borders between template and texts, as they did in training.
 * What is put in is not looked through again, so a query that spells {document} is only text. */

#include "worker/prepare/pair.h"

#include <errno.h>
#include <string.h>

#include "common/amount.h"

struct pair {
    struct buffer text, marks; /* a mark for each byte: 1, a client wrote it */
    size_t most_bytes;
};

/* 0, -E2BIG or -ENOMEM. */
static int add(struct pair *pair, struct bytes text, uint8_t mark)
{
    if (text.len > pair->most_bytes - pair->text.len)
        return -E2BIG;
    int r = buffer_append(&pair->text, text.data, text.len);
    if (r == 0)
        r = buffer_reserve(&pair->marks, text.len);
    if (r == 0 && text.len > 0) {
        memset(pair->marks.data + pair->marks.len, mark, text.len);
        pair->marks.len += text.len;
    }
    return r;
}

/* The text that replaces what begins here, and of how many bytes that is; 0: nothing does. */
static size_t replaced(struct bytes rest, const struct prompt *prompt, struct bytes *ret_text)
{
    const struct {
        struct bytes name, text;
    } places[] = {{BYTES_LITERAL("{query}"), prompt->text}, {BYTES_LITERAL("{document}"), prompt->document}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (rest.len >= places[i].name.len &&
            memcmp(rest.data, places[i].name.data, places[i].name.len) == 0) {
            *ret_text = places[i].text;
            return places[i].name.len;
        }
    return 0;
}

static int fill_in(struct pair *pair, struct bytes template, const struct prompt *prompt)
{
    const char *at = template.data, *end = at + template.len, *from = at;
    int r = 0;
    while (r == 0 && (at = memchr(at, '{', (size_t)(end - at)))) {
        struct bytes text;
        const size_t len = replaced((struct bytes){at, (size_t)(end - at)}, prompt, &text);
        if (len > 0) {
            r = add(pair, (struct bytes){from, (size_t)(at - from)}, 0);
            if (r == 0)
                r = add(pair, text, 1);
            from = at + len;
        }
        at += len > 0 ? len : 1;
    }
    return r < 0 ? r : add(pair, (struct bytes){from, (size_t)(end - from)}, 0);
}

bool pair_encode(const struct prompt_encoder *encoder, const struct prompt *prompt, struct ids *ret_ids,
                 struct refusal *ret_refusal)
{
    if (!encoder->ranks)
        return refuse(ret_refusal, PROTO_UNSUPPORTED,
                      "document: the model does not rank pairs of texts: its file has no pooling_type rank");
    if (encoder->rank_template.len == 0)
        return refuse(ret_refusal, PROTO_UNSUPPORTED,
                      "document: the model's file has no " MODEL_RANK_TEMPLATE
                      ", which says how a pair of texts is combined");
    struct pair pair = {.most_bytes = encoder->most_bytes};
    int r = fill_in(&pair, (struct bytes){encoder->rank_template.data, encoder->rank_template.len}, prompt);
    if (r == 0)
        r = tokenizer_encode_mixed(encoder->tokenizer, (struct bytes){pair.text.data, pair.text.len},
                                   pair.marks.data, TOKENIZER_PARSE_SPECIAL, ret_ids);
    buffer_deinit(&pair.text);
    buffer_deinit(&pair.marks);
    if (r == -E2BIG)
        return refuse(ret_refusal, PROTO_TOO_LONG, "the document has %s and the query %s; at most %s fit",
                      amount_of_bytes(prompt->document.len).text, amount_of_bytes(prompt->text.len).text,
                      amount_of_bytes(encoder->most_bytes).text);
    if (r == -EILSEQ)
        return refuse(ret_refusal, PROTO_BAD_REQUEST, "the text is not UTF-8");
    return r == 0 || refuse(ret_refusal, PROTO_INTERNAL, "out of memory for the text");
}
