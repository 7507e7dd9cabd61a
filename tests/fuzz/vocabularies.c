/* SPDX-License-Identifier: MIT */
/* Two small vocabularies, written to a temporary file and opened again, as a worker would open them. Both
 * have control and user-defined tokens that overlap, and merges that compete. */

#include "tests/fuzz/vocabularies.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/files/rundir.h"
#include "gguf/gguf_writer.h"

enum { MAX_TOKENS = 300 };

struct list {
    char texts[MAX_TOKENS][16];
    int32_t types[MAX_TOKENS];
    float scores[MAX_TOKENS];
    size_t n;
};

static void add(struct list *list, const char *text, enum token_type type)
{
    snprintf(list->texts[list->n], sizeof list->texts[0], "%s", text);
    list->types[list->n] = type;
    list->scores[list->n] = -(float)list->n;
    list->n++;
}

static void add_special(struct list *list, bool user_defined)
{
    add(list, "<unk>", TOKEN_UNKNOWN);
    add(list, "<s>", TOKEN_CONTROL);
    add(list, "</s>", TOKEN_CONTROL);
    add(list, "<|im_end|>", TOKEN_CONTROL);
    if (!user_defined)
        return;
    add(list, "aba", TOKEN_USER_DEFINED);
    add(list, "ab<s", TOKEN_USER_DEFINED);
    add(list, "  ", TOKEN_USER_DEFINED);
}

static struct tokenizer *open_list(struct gguf_writer *writer, const struct list *list)
{
    struct bytes texts[MAX_TOKENS];
    char dir[RUNDIR_PATH_MAX + 1], path[RUNDIR_PATH_MAX + 32];
    struct gguf *gguf = NULL;
    struct tokenizer *tokenizer = NULL;
    struct error err = {0};
    for (size_t i = 0; i < list->n; i++)
        texts[i] = bytes_of_string(list->texts[i]);
    int r = rundir_temporary(dir, &err);
    if (r < 0)
        abort();
    snprintf(path, sizeof path, "%s/vocabulary.gguf", dir);
    gguf_writer_strings(writer, "tokenizer.ggml.tokens", texts, list->n);
    gguf_writer_i32s(writer, "tokenizer.ggml.token_type", list->types, list->n);
    gguf_writer_f32s(writer, "tokenizer.ggml.scores", list->scores, list->n);
    r = gguf_writer_write(writer, path, &err);
    if (r == 0)
        r = gguf_open(path, &gguf, &err);
    if (r == 0)
        r = tokenizer_new(gguf, &tokenizer, &err);
    if (r < 0) {
        fprintf(stderr, "%s\n", err.text);
        abort();
    }
    gguf_free(gguf);
    gguf_writer_free(writer);
    rundir_remove(dir);
    return tokenizer;
}

struct tokenizer *fuzz_spm_tokenizer(bool space_prefix)
{
    static const char *const pieces[] = {"\xe2\x96\x81",
                                         "a",
                                         "b",
                                         "ab",
                                         "ba",
                                         "\xe2\x96\x81"
                                         "a",
                                         "aa",
                                         "<",
                                         "s",
                                         "<s",
                                         ">",
                                         "aab",
                                         "\xc3\xa9",
                                         "bab"};
    struct list list = {.n = 0};
    struct gguf_writer *writer;
    if (gguf_writer_new(&writer) < 0)
        abort();
    add_special(&list, !space_prefix);
    for (int b = 0; b < 256; b++) {
        char text[8];
        snprintf(text, sizeof text, "<0x%02X>", b);
        add(&list, text, TOKEN_BYTE);
    }
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++)
        add(&list, pieces[i], TOKEN_NORMAL);
    gguf_writer_string(writer, "tokenizer.ggml.model", "llama");
    gguf_writer_bool(writer, "tokenizer.ggml.add_space_prefix", space_prefix);
    return open_list(writer, &list);
}

struct tokenizer *fuzz_bpe_tokenizer(const char *pre)
{
    static const char *const merges[] = {"a b", "b a", "ab a", "\xc4\xa0 a", "\xc4\xa0 \xc4\xa0",
                                         "a a", "1 2"};
    static const char *const wholes[] = {"ab",
                                         "ba",
                                         "aba",
                                         "\xc4\xa0"
                                         "a",
                                         "\xc4\xa0\xc4\xa0",
                                         "aa",
                                         "12"};
    struct list list = {.n = 0};
    struct bytes lines[sizeof merges / sizeof merges[0]];
    struct gguf_writer *writer;
    int beyond = 0;
    if (gguf_writer_new(&writer) < 0)
        abort();
    for (int b = 0; b < 256; b++) {
        bool visible = (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
        int character = visible ? b : 0x100 + beyond++;
        char text[3] = {(char)character, 0, 0};
        if (character >= 0x80) {
            text[0] = (char)(0xc0 | character >> 6);
            text[1] = (char)(0x80 | (character & 0x3f));
        }
        add(&list, text, TOKEN_NORMAL);
    }
    for (size_t i = 0; i < sizeof merges / sizeof merges[0]; i++) {
        add(&list, wholes[i], TOKEN_NORMAL);
        lines[i] = bytes_of_string(merges[i]);
    }
    add_special(&list, true);
    gguf_writer_string(writer, "tokenizer.ggml.model", "gpt2");
    gguf_writer_string(writer, "tokenizer.ggml.pre", pre);
    gguf_writer_strings(writer, "tokenizer.ggml.merges", lines, sizeof merges / sizeof merges[0]);
    return open_list(writer, &list);
}
