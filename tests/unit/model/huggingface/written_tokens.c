/* SPDX-License-Identifier: MIT */
#include "tests/unit/model/huggingface/written_tokens.h"

#include <check.h>
#include <stdio.h>

#include "gguf/gguf_assemble.h"
#include "gguf/gguf_values.h"
#include "gguf/gguf_writer.h"

#define VOCAB "\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]"

static struct gguf *written(const struct tokens_files *files, struct error *err)
{
    struct gguf_writer *writer;
    struct gguf *gguf = NULL;
    ck_assert_int_eq(gguf_writer_new(&writer), 0);
    if (tokens_write(files, writer, err) == 0) {
        ck_assert_int_eq(gguf_new(&gguf), 0);
        ck_assert_msg(gguf_assemble(gguf, writer, NULL, err) == 0, "%s", err->text);
    }
    gguf_writer_free(writer);
    return gguf;
}

struct gguf *accepted(const struct tokens_files *files)
{
    struct error err = {0};
    struct gguf *gguf = written(files, &err);
    ck_assert_msg(gguf != NULL, "%s", err.text);
    return gguf;
}

void refused(const struct tokens_files *files, const char *says)
{
    struct error err = {0};
    struct gguf *gguf = written(files, &err);
    ck_assert_msg(!gguf, "accepted, \"%s\" expected", says);
    ck_assert_str_eq(err.text, says);
}

struct bytes bytes_json(const char *pre, const char *more_of_model, const char *more)
{
    static char text[4096];
    snprintf(text, sizeof text, "{\"pre_tokenizer\":%s,\"model\":{\"type\":\"BPE\"%s," VOCAB "}%s}", pre,
             more_of_model, more);
    return bytes_of_string(text);
}

struct bytes characters_json(const char *normalizer, const char *pre, const char *more)
{
    static char text[4096];
    snprintf(text, sizeof text,
             "{\"normalizer\":%s,\"pre_tokenizer\":%s,\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,"
             "\"unk_token\":\"b\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"" SPACE "\":3,\"<0x4a>\":4},"
             "\"merges\":[\"a b\"]}%s}",
             normalizer, pre, more);
    return bytes_of_string(text);
}

void expect_text(const struct gguf *gguf, const char *key, const char *expected)
{
    struct bytes value = {0};
    ck_assert_msg(gguf_string(gguf, key, &value, NULL) == 0, "%s is missing", key);
    ck_assert_msg(bytes_equal(value, bytes_of_string(expected)), "%s: %.*s", key, (int)value.len,
                  (const char *)value.data);
}

int64_t id(const struct gguf *gguf, const char *key)
{
    uint32_t value;
    return gguf_u32(gguf, key, &value, NULL) == 0 ? (int64_t)value : -1;
}

bool flag(const struct gguf *gguf, const char *key)
{
    bool value = false;
    ck_assert_msg(gguf_bool(gguf, key, &value, NULL) == 0, "%s is missing", key);
    return value;
}
