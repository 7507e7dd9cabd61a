/* SPDX-License-Identifier: MIT */
/* BPE over characters, the kind that GGUF files call "gemma4".
 *
 * Spaces become U+2581, each character is a symbol, and the pair of neighbours that comes first in the list
 * of merges is joined, until none is in the list. Nothing is joined across the ends of a run of line feeds,
 * and a run that is a token is that token whatever the merges are. A character that is no token falls back to
 * the tokens of its bytes, or to the unknown token. */

#include "text/tokenizer/tokenizer_characters.h"

#include <errno.h>
#include <string.h>
#include <utf8proc.h>

#include "text/tokenizer/tokenizer.h"

int characters_init(struct characters *characters, const struct vocabulary *vocabulary,
                    const struct gguf *gguf, int32_t unknown, struct error *err)
{
    int r = merge_ranks_init(&characters->ranks, vocabulary, gguf, "gemma4", err);
    return r < 0 ? r : byte_tokens_init(&characters->bytes, vocabulary, unknown, err);
}

void characters_deinit(struct characters *characters)
{
    merge_ranks_deinit(&characters->ranks);
}

/* Where the run of line feeds, or of other characters, ends that begins at `at`. */
static size_t end_of_run(const struct buffer *text, size_t at)
{
    const bool feeds = text->data[at] == '\n';
    while (at < text->len && (text->data[at] == '\n') == feeds)
        at++;
    return at;
}

static int add_symbols(struct merger *merger, const struct vocabulary *vocabulary, const struct buffer *text,
                       size_t at, size_t end)
{
    int r = 0;
    merger_clear(merger);
    while (at < end && r == 0) {
        utf8proc_int32_t point;
        utf8proc_ssize_t len = utf8proc_iterate(text->data + at, (utf8proc_ssize_t)(end - at), &point);
        if (len <= 0)
            return -EILSEQ;
        r = merger_add(merger, (uint32_t)at, (uint32_t)len,
                       vocabulary_find(vocabulary, text->data + at, (size_t)len));
        at += (size_t)len;
    }
    return r;
}

/* What lies between `at` and `end`. */
static int encode_run(const struct characters *characters, const struct vocabulary *vocabulary,
                      struct characters_scratch *scratch, size_t at, size_t end, struct ids *ret_ids)
{
    const struct buffer *text = &scratch->text;
    struct merger *merger = &scratch->merger;
    const int32_t whole =
        text->data[at] == '\n' ? vocabulary_find(vocabulary, text->data + at, end - at) : -1;
    if (whole >= 0)
        return ids_push(ret_ids, whole);
    int r = add_symbols(merger, vocabulary, text, at, end);
    if (r == 0)
        r = merger_run(merger, merge_ranks_find, &characters->ranks);
    for (int32_t i = 0; r == 0 && i >= 0; i = merger->symbols[i].next) {
        const struct merge_symbol *symbol = &merger->symbols[i];
        r = symbol->id >= 0
                ? ids_push(ret_ids, symbol->id)
                : byte_tokens_push(&characters->bytes, text->data + symbol->start, symbol->len, ret_ids);
    }
    return r;
}

int characters_encode(const struct characters *characters, const struct vocabulary *vocabulary,
                      struct characters_scratch *scratch, struct bytes text, struct ids *ret_ids)
{
    int r = spelling_escape(&scratch->text, text, false);
    for (size_t at = 0, end; r == 0 && at < scratch->text.len; at = end) {
        end = end_of_run(&scratch->text, at);
        r = encode_run(characters, vocabulary, scratch, at, end, ret_ids);
    }
    return r;
}

void characters_scratch_deinit(struct characters_scratch *scratch)
{
    merger_deinit(&scratch->merger);
    buffer_deinit(&scratch->text);
}
