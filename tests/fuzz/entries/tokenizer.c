/* SPDX-License-Identifier: MIT */
/* Any text is tokenized by a "llama" and by a "gpt2" vocabulary and comes back from its tokens byte by byte;
 * text that is not UTF-8 is refused. The first byte of the input picks the flags and the pre-tokenizer. For
 * libFuzzer the sources are gguf, text/tokenizer and common. */

#include "tests/fuzz/driver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "tests/fuzz/vocabularies.h"
#include "text/tokenizer/tokenizer.h"

static bool is_utf8(const uint8_t *data, size_t len)
{
    utf8proc_int32_t point;
    for (size_t at = 0; at < len;) {
        utf8proc_ssize_t n = utf8proc_iterate(data + at, (utf8proc_ssize_t)(len - at), &point);
        if (n <= 0)
            return false;
        at += (size_t)n;
    }
    return true;
}

static void check_ids(const struct tokenizer *tokenizer, const struct ids *ids, struct bytes text)
{
    struct buffer again = {0};
    for (size_t i = 0; i < ids->len; i++) {
        struct bytes piece = tokenizer_piece(tokenizer, ids->data[i], i == 0);
        if (buffer_append(&again, piece.data, piece.len) < 0)
            abort();
    }
    if (!bytes_equal((struct bytes){again.data, again.len}, text))
        abort();
    buffer_deinit(&again);
}

static void run(const struct tokenizer *tokenizer, struct bytes text, unsigned flags, bool comes_back)
{
    struct ids ids = {0};
    int r = tokenizer_encode(tokenizer, text, flags, &ids);
    if (r != (is_utf8(text.data, text.len) ? 0 : -EILSEQ))
        abort();
    for (size_t i = 0; i < ids.len; i++)
        if (ids.data[i] < 0 || (uint32_t)ids.data[i] >= tokenizer_size(tokenizer))
            abort();
    if (r == 0 && flags == 0 && comes_back)
        check_ids(tokenizer, &ids, text);
    ids_deinit(&ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static const char *const pres[] = {
        "gpt-2",          "llama-bpe",  "qwen2",  "starcoder", "falcon", "deepseek-llm", "deepseek-v3",
        "deepseek-coder", "gpt-4o",     "tekken", "kimi-k2",   "youtu",  "qwen35",       "seed-coder",
        "bailingmoe",     "exaone-moe", "viking", "chameleon", "laguna", "minicpm5",
    };
    enum { N_PRES = sizeof pres / sizeof pres[0] };
    static struct tokenizer *spm[2], *bpe[N_PRES];
    if (!spm[0]) {
        spm[0] = fuzz_spm_tokenizer(false);
        spm[1] = fuzz_spm_tokenizer(true);
        for (size_t i = 0; i < N_PRES; i++)
            bpe[i] = fuzz_bpe_tokenizer(pres[i]);
    }
    if (len == 0)
        return 0;
    const struct bytes text = {data + 1, len - 1};
    /* In a "llama" vocabulary U+2581 is the space, and comes back as one. */
    bool has_space_mark = memmem(text.data, text.len, "\xe2\x96\x81", 3) != NULL;
    run(spm[0], text, data[0] & 3, !has_space_mark);
    run(spm[1], text, data[0] & 3, !has_space_mark);
    run(bpe[(data[0] >> 2) % N_PRES], text, data[0] & 3, true);
    return 0;
}
