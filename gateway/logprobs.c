/* SPDX-License-Identifier: MIT */
/* See logprobs.h. Outputs live during their callback only, so pieces are copied. A piece may end inside a
 * character: "token" shows U+FFFD then, and "bytes" has what there is. */

#include "gateway/logprobs.h"

struct logprob_entry {
    int32_t id;
    float logprob;
    size_t at, len; /* of its piece, in the bytes */
};

int logprobs_add(struct logprobs *logprobs, const struct quern_output *output)
{
    size_t n = output->logprobs ? output->n_ids * output->n_logprobs : 0;
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++) {
        const struct quern_logprob *from = &output->logprobs[i];
        struct logprob_entry entry = {from->id, from->logprob, logprobs->bytes.len, 0};
        if (output->pieces) {
            entry.len = output->pieces[i].len;
            r = buffer_append(&logprobs->bytes, output->pieces[i].bytes, entry.len);
        }
        if (r == 0)
            r = buffer_append(&logprobs->entries, &entry, sizeof entry);
    }
    if (n > 0)
        logprobs->width = (uint32_t)output->n_logprobs;
    return r;
}

/* The entries of the i-th token; NULL beyond the last. */
static const struct logprob_entry *token(const struct logprobs *logprobs, size_t i)
{
    const struct logprob_entry *entries = (const struct logprob_entry *)(const void *)logprobs->entries.data;
    size_t n = logprobs->entries.len / sizeof *entries;
    return logprobs->width > 0 && i < n / logprobs->width ? &entries[i * logprobs->width] : NULL;
}

static struct bytes piece(const struct logprobs *logprobs, const struct logprob_entry *entry)
{
    return (struct bytes){entry->len > 0 ? logprobs->bytes.data + entry->at : NULL, entry->len};
}

static void forget(struct logprobs *logprobs)
{
    logprobs->entries.len = logprobs->bytes.len = 0;
}

/* ---- /v1/chat/completions ---- */

/* `"token":…,"logprob":…,"bytes":[…]`. */
static void write_entry(const struct logprobs *logprobs, const struct logprob_entry *entry,
                        struct json_out *out)
{
    const struct bytes bytes = piece(logprobs, entry);
    json_out_text(out, "\"token\":");
    json_out_string(out, bytes);
    json_out_text(out, ",\"logprob\":");
    json_out_real(out, (double)entry->logprob);
    json_out_text(out, ",\"bytes\":[");
    for (size_t i = 0; i < bytes.len; i++) {
        json_out_text(out, i ? "," : "");
        json_out_number(out, ((const uint8_t *)bytes.data)[i]);
    }
    json_out_text(out, "]");
}

void logprobs_write_chat(struct logprobs *logprobs, struct json_out *out)
{
    const struct logprob_entry *entries;
    if (!logprobs_any(logprobs)) {
        json_out_text(out, "null");
        return;
    }
    json_out_text(out, "{\"content\":[");
    for (size_t i = 0; (entries = token(logprobs, i)); i++) {
        json_out_text(out, i ? ",{" : "{");
        write_entry(logprobs, entries, out);
        json_out_text(out, ",\"top_logprobs\":[");
        for (uint32_t j = 1; j < logprobs->width; j++) {
            json_out_text(out, j > 1 ? ",{" : "{");
            write_entry(logprobs, &entries[j], out);
            json_out_text(out, "}");
        }
        json_out_text(out, "]}");
    }
    json_out_text(out, "],\"refusal\":null}");
    forget(logprobs);
}

/* ---- /v1/completions: lists beside one another ---- */

/* The most likely ones by name, and the token's own where it is none of them. */
static void write_likely(const struct logprobs *logprobs, const struct logprob_entry *entries,
                         struct json_out *out)
{
    bool own = true;
    json_out_text(out, "{");
    for (uint32_t j = 1; j < logprobs->width; j++) {
        own = own && entries[j].id != entries[0].id;
        json_out_text(out, j > 1 ? "," : "");
        json_out_string(out, piece(logprobs, &entries[j]));
        json_out_text(out, ":");
        json_out_real(out, (double)entries[j].logprob);
    }
    if (own) {
        json_out_text(out, ",");
        json_out_string(out, piece(logprobs, &entries[0]));
        json_out_text(out, ":");
        json_out_real(out, (double)entries[0].logprob);
    }
    json_out_text(out, "}");
}

static void write_list(const struct logprobs *logprobs, const char *name, bool of_logprobs,
                       struct json_out *out)
{
    const struct logprob_entry *entries;
    json_out_text(out, name);
    for (size_t i = 0; (entries = token(logprobs, i)); i++) {
        json_out_text(out, i ? "," : "");
        if (of_logprobs)
            json_out_real(out, (double)entries->logprob);
        else
            json_out_string(out, piece(logprobs, entries));
    }
}

static uint64_t characters(struct bytes piece)
{
    uint64_t n = 0;
    for (size_t i = 0; i < piece.len; i++)
        n += (((const uint8_t *)piece.data)[i] & 0xc0) != 0x80;
    return n;
}

void logprobs_write_completion(struct logprobs *logprobs, struct json_out *out)
{
    const struct logprob_entry *entries;
    if (!logprobs_any(logprobs)) {
        json_out_text(out, "null");
        return;
    }
    write_list(logprobs, "{\"tokens\":[", false, out);
    write_list(logprobs, "],\"token_logprobs\":[", true, out);
    if (logprobs->width > 1) {
        json_out_text(out, "],\"top_logprobs\":[");
        for (size_t i = 0; (entries = token(logprobs, i)); i++) {
            json_out_text(out, i ? "," : "");
            write_likely(logprobs, entries, out);
        }
        json_out_text(out, "],\"text_offset\":[");
    } else {
        json_out_text(out, "],\"top_logprobs\":null,\"text_offset\":[");
    }
    for (size_t i = 0; (entries = token(logprobs, i)); i++) {
        json_out_text(out, i ? "," : "");
        json_out_number(out, (int64_t)logprobs->characters);
        logprobs->characters += characters(piece(logprobs, entries));
    }
    json_out_text(out, "]}");
    forget(logprobs);
}

void logprobs_deinit(struct logprobs *logprobs)
{
    buffer_deinit(&logprobs->entries);
    buffer_deinit(&logprobs->bytes);
}
