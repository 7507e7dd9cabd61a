/* SPDX-License-Identifier: MIT */
/* Message → bytes, with msgpack-c's packer, driven by the same tables as decoding.
 *
 * "k" first, then the fields in the order of their table. Optional fields that say nothing (zero, empty, a
 * flag as it is by default, not present) are left out, except those marked FIELD_ALWAYS: a receiver with
 * other defaults must not put its own in their place. What decoding would refuse is refused here, so that a
 * mistake shows at its sender. On failure the buffer is as it was. */

#include "proto/fields.h"

#include <endian.h>
#include <errno.h>
#include <math.h>

#include <msgpack.h>

#define MOST_NUMBER_BYTES 5 /* of an id */

/* The packer, and where the reason of a refusal goes. */
struct encoder {
    msgpack_packer packer;
    struct error *err;
};

static int write_buffer(void *arg, const char *data, size_t len)
{
    struct buffer *buffer = arg;
    /* The packer calls for every few bytes: one comparison must do. */
    if (buffer->cap - buffer->len < len)
        return buffer_append(buffer, data, len) < 0 ? -1 : 0;
    memcpy(buffer->data + buffer->len, data, len);
    buffer->len += len;
    return 0;
}

static int encode_map(struct encoder *e, const struct field_table *table, const char *kind, const void *base);

static bool is_zero(const void *at, size_t len)
{
    const uint8_t *bytes = at;
    uint8_t any = 0;
    for (size_t i = 0; i < len; i++)
        any |= bytes[i];
    return any == 0;
}

/* Whether the field is left out. */
static bool is_absent(const struct field *field, const void *base)
{
    const void *at = (const uint8_t *)base + field->offset;
    if (field->present)
        return !*((const uint8_t *)base + field->present);
    if (field->flags & FIELD_LEFT)
        return field->type == FIELD_REAL ? sampling_real_is_left(*(const double *)at)
                                         : *(const int32_t *)at == SAMPLING_LEFT_COUNT;
    if (field->flags & FIELD_ALWAYS)
        return false;
    switch ((enum field_type)field->type) {
    case FIELD_BOOL:
        return *(const bool *)at == (field->initial != 0);
    case FIELD_U32:
    case FIELD_I32:
    case FIELD_ENUM:
        return *(const uint32_t *)at == 0;
    case FIELD_U64:
        return *(const uint64_t *)at == 0;
    case FIELD_REAL:
        return *(const double *)at == 0;
    case FIELD_ID:
        return is_zero(at, sizeof(struct id128));
    case FIELD_DIGEST:
    case FIELD_FLOATS:
    case FIELD_BIN:
    case FIELD_TEXT:
    case FIELD_NAME:
        return ((const struct bytes *)at)->len == 0;
    case FIELD_EPOCH:
        return ((const struct epoch *)at)->boot == 0 && ((const struct epoch *)at)->move == 0;
    case FIELD_NAMES:
    case FIELD_IDS:
    case FIELD_BINS:
    case FIELD_MAPS:
    case FIELD_BIASES:
        return ((const struct list *)at)->n == 0;
    case FIELD_LOGPROBS:
        return ((const struct frame_logprobs *)at)->width == 0 ||
               ((const struct message *)base)->frame.ids.n == 0;
    case FIELD_HISTOGRAM:
        return is_zero(at, sizeof(struct histogram));
    case FIELD_RANGE:
    case FIELD_PROMPT:
    case FIELD_MAP:
        return false;
    }
    return false;
}

static int pack_text(struct encoder *e, struct bytes text)
{
    int r = msgpack_pack_str(&e->packer, text.len);
    return r == 0 && text.len > 0 ? msgpack_pack_str_body(&e->packer, text.data, text.len) : r;
}

static int pack_bin(struct encoder *e, const void *data, size_t len)
{
    int r = msgpack_pack_bin(&e->packer, len);
    return r == 0 && len > 0 ? msgpack_pack_bin_body(&e->packer, data, len) : r;
}

/* A key, which is shorter than 32 bytes: head and text at once, past the packer. */
static int pack_key(struct encoder *e, const char *key, uint8_t len)
{
    struct buffer *out = e->packer.data;
    if (out->cap - out->len < 32u && buffer_reserve(out, 32) < 0)
        return -1;
    out->data[out->len++] = 0xa0 | len;
    memcpy(out->data + out->len, key, len);
    out->len += len;
    return 0;
}

/* The shortest form that msgpack has. Past the packer, which calls back for every few bytes: most of what a
 * pool says is ids. Returns where the next one goes. */
static uint8_t *put_number(uint8_t *at, uint32_t number)
{
    if (number < 0x80) {
        *at++ = (uint8_t)number;
    } else if (number <= UINT8_MAX) {
        *at++ = 0xcc;
        *at++ = (uint8_t)number;
    } else if (number <= UINT16_MAX) {
        *at++ = 0xcd;
        *at++ = (uint8_t)(number >> 8);
        *at++ = (uint8_t)number;
    } else {
        *at++ = 0xce;
        number = htobe32(number);
        memcpy(at, &number, sizeof number);
        at += sizeof number;
    }
    return at;
}

static int encode_ids(struct encoder *e, struct id_list list)
{
    struct buffer *out = e->packer.data;
    int r = msgpack_pack_array(&e->packer, list.n);
    if (r == 0)
        r = buffer_reserve(out, list.n * MOST_NUMBER_BYTES);
    uint8_t *at = out->data + out->len;
    for (size_t i = 0; r == 0 && i < list.n; i++) {
        if (list.items[i] < 0)
            return error_set(e->err, -EINVAL, "a token id is negative");
        at = put_number(at, (uint32_t)list.items[i]);
    }
    out->len = (size_t)(at - out->data);
    return r;
}

static int encode_strings(struct encoder *e, const struct field *field, const void *at)
{
    struct list list;
    memcpy(&list, at, sizeof list);
    const struct bytes *items = list.items;
    int r = msgpack_pack_array(&e->packer, list.n);
    for (size_t i = 0; r == 0 && i < list.n; i++) {
        if (field_check_item(field, items[i], e->err) != 0)
            return error_prefix(e->err, -EINVAL, "item %zu", i);
        r = field->type == FIELD_NAMES ? pack_text(e, items[i]) : pack_bin(e, items[i].data, items[i].len);
    }
    return r;
}

static int encode_maps(struct encoder *e, const struct field_table *table, struct list list)
{
    int r = msgpack_pack_array(&e->packer, list.n);
    for (size_t i = 0; r == 0 && i < list.n; i++)
        r = encode_map(e, table, NULL, (const uint8_t *)list.items + i * table->size);
    return r;
}

static int encode_prompt(struct encoder *e, const struct prompt *prompt)
{
    size_t n = prompt->form == PROMPT_TEXT  ? prompt->text.len
               : prompt->form == PROMPT_IDS ? prompt->ids.n
                                            : prompt->chat.n;
    if (n == 0 && !prompt->has_suffix)
        return error_set(e->err, -EINVAL, "is empty");
    switch (prompt->form) {
    case PROMPT_TEXT:
        if (field_check_text(prompt->text, PROTO_MAX_GENERATE_BYTES, false, e->err) != 0)
            return -EINVAL;
        return pack_text(e, prompt->text);
    case PROMPT_IDS:
        if (field_check_count(n, PROTO_MAX_PROMPT_IDS, e->err) != 0)
            return -EINVAL;
        return encode_ids(e, prompt->ids);
    case PROMPT_CHAT:
        if (field_check_count(n, PROTO_MAX_MESSAGES, e->err) != 0)
            return -EINVAL;
        return encode_maps(e, field_table_of_chat(), (struct list){prompt->chat.items, n});
    }
    return error_set(e->err, -EINVAL, "has an unknown form");
}

/* [id, real], as a float 32. */
static int encode_id_and_real(struct encoder *e, int32_t id, float real)
{
    if (id < 0)
        return error_set(e->err, -EINVAL, "a token id is negative");
    int r = msgpack_pack_array(&e->packer, 2);
    if (r == 0)
        r = msgpack_pack_int32(&e->packer, id);
    return r == 0 ? msgpack_pack_float(&e->packer, real) : r;
}

/* A frame's logprobs: as many rows as it has ids. */
static int encode_logprobs(struct encoder *e, const struct field *field,
                           const struct frame_logprobs *logprobs, size_t rows)
{
    if (field_check_count(logprobs->width, field->high, e->err) != 0)
        return -EINVAL;
    const struct token_logprob *entry = logprobs->items;
    int r = msgpack_pack_array(&e->packer, rows);
    for (size_t i = 0; r == 0 && i < rows; i++) {
        r = msgpack_pack_array(&e->packer, logprobs->width);
        for (uint32_t j = 0; r == 0 && j < logprobs->width; j++, entry++) {
            if (field_check_logprob(entry->logprob, e->err) != 0)
                return -EINVAL;
            r = encode_id_and_real(e, entry->id, entry->logprob);
        }
    }
    return r;
}

static int encode_biases(struct encoder *e, const struct field *field, const struct logit_bias_list *list)
{
    int r = msgpack_pack_array(&e->packer, list->n);
    for (size_t i = 0; r == 0 && i < list->n; i++) {
        const double bias = (double)list->items[i].bias;
        if (bias != -INFINITY && field_check_real(field, bias, e->err) != 0)
            return -EINVAL;
        r = encode_id_and_real(e, list->items[i].id, list->items[i].bias);
    }
    return r;
}

static int encode_pair(struct encoder *e, uint64_t a, uint32_t b)
{
    int r = msgpack_pack_array(&e->packer, 2);
    if (r == 0)
        r = msgpack_pack_uint64(&e->packer, a);
    return r == 0 ? msgpack_pack_uint32(&e->packer, b) : r;
}

static int encode_histogram(struct encoder *e, const struct histogram *histogram)
{
    int r = msgpack_pack_array(&e->packer, 1 + HISTOGRAM_BUCKETS);
    if (r == 0)
        r = msgpack_pack_uint64(&e->packer, histogram->sum);
    for (uint32_t i = 0; r == 0 && i < HISTOGRAM_BUCKETS; i++)
        r = msgpack_pack_uint64(&e->packer, histogram->counts[i]);
    return r;
}

static int encode_number(struct encoder *e, const struct field *field, const void *at)
{
    if (field->type == FIELD_REAL) {
        double real = *(const double *)at;
        return field_check_real(field, real, e->err) != 0 ? -EINVAL : msgpack_pack_double(&e->packer, real);
    }
    if (field->type == FIELD_I32) {
        int32_t number = *(const int32_t *)at;
        return field_check_signed(field, number, e->err) != 0 ? -EINVAL
                                                              : msgpack_pack_int32(&e->packer, number);
    }
    uint64_t number = field->type == FIELD_U32 ? *(const uint32_t *)at : *(const uint64_t *)at;
    return field_check_unsigned(field, number, e->err) != 0 ? -EINVAL
                                                            : msgpack_pack_uint64(&e->packer, number);
}

static int encode_bytes(struct encoder *e, const struct field *field, struct bytes bytes)
{
    if (field->type == FIELD_DIGEST && bytes.len != 16)
        return error_set(e->err, -EINVAL, "has %zu bytes, not 16", bytes.len);
    if (field->type == FIELD_DIGEST)
        return pack_bin(e, bytes.data, 16);
    if (field->type == FIELD_FLOATS)
        return field_check_floats(field, bytes, e->err) != 0 ? -EINVAL : pack_bin(e, bytes.data, bytes.len);
    if (field->type == FIELD_BIN)
        return field_check_bin(field, bytes, e->err) != 0 ? -EINVAL : pack_bin(e, bytes.data, bytes.len);
    if (field_check_text(bytes, field->high, field->type == FIELD_NAME, e->err) != 0)
        return -EINVAL;
    return pack_text(e, bytes);
}

static int encode_value(struct encoder *e, const struct field *field, const void *base)
{
    const void *at = (const uint8_t *)base + field->offset;
    switch ((enum field_type)field->type) {
    case FIELD_BOOL:
        return *(const bool *)at ? msgpack_pack_true(&e->packer) : msgpack_pack_false(&e->packer);
    case FIELD_U32:
    case FIELD_U64:
    case FIELD_I32:
    case FIELD_REAL:
        return encode_number(e, field, at);
    case FIELD_ENUM: {
        uint32_t value;
        memcpy(&value, at, sizeof value);
        if (value >= field->names->n || value < field->low)
            return error_set(e->err, -EINVAL, "invalid value %u", value);
        return pack_text(e, bytes_of_string(field->names->names[value]));
    }
    case FIELD_ID:
        return pack_bin(e, at, sizeof(struct id128));
    case FIELD_DIGEST:
    case FIELD_FLOATS:
    case FIELD_BIN:
    case FIELD_TEXT:
    case FIELD_NAME:
        return encode_bytes(e, field, *(const struct bytes *)at);
    case FIELD_EPOCH:
        return encode_pair(e, ((const struct epoch *)at)->boot, ((const struct epoch *)at)->move);
    case FIELD_RANGE: {
        const struct version_range *range = at;
        if (range->min > range->max)
            return error_set(e->err, -EINVAL, "%u..%u is reversed", range->min, range->max);
        return encode_pair(e, range->min, range->max);
    }
    case FIELD_NAMES:
    case FIELD_BINS:
    case FIELD_IDS:
    case FIELD_MAPS:
    case FIELD_BIASES: {
        struct list list;
        memcpy(&list, at, sizeof list);
        if (field_check_count(list.n, field->high, e->err) != 0)
            return -EINVAL;
        if (field->type == FIELD_BIASES)
            return encode_biases(e, field, at);
        if (field->type == FIELD_IDS)
            return encode_ids(e, (struct id_list){list.items, list.n});
        return field->type == FIELD_MAPS ? encode_maps(e, field->table, list) : encode_strings(e, field, at);
    }
    case FIELD_PROMPT:
        return encode_prompt(e, at);
    case FIELD_LOGPROBS:
        return encode_logprobs(e, field, at, ((const struct message *)base)->frame.ids.n);
    case FIELD_HISTOGRAM:
        return encode_histogram(e, at);
    case FIELD_MAP:
        return encode_map(e, field->table, NULL, at);
    }
    return error_set(e->err, -EINVAL, "has an unknown type");
}

/* `kind` is the name under "k" of a whole message, NULL for a map inside one. */
static int encode_map(struct encoder *e, const struct field_table *table, const char *kind, const void *base)
{
    if (table->check && table->check(base, e->err) != 0)
        return -EINVAL;
    field_set absent = 0;
    unsigned n = kind != NULL;
    for (unsigned i = 0; i < table->n; i++) {
        const bool out = is_absent(&table->fields[i], base);
        absent |= (field_set)out << i;
        n += !out;
    }
    int r = msgpack_pack_map(&e->packer, n);
    if (r == 0 && kind)
        r = pack_key(e, "k", 1);
    if (r == 0 && kind)
        r = pack_text(e, bytes_of_string(kind));
    for (unsigned i = 0; r == 0 && i < table->n; i++) {
        const struct field *field = &table->fields[i];
        if (absent >> i & 1)
            continue;
        r = pack_key(e, field->key, field->key_len);
        if (r == 0)
            r = encode_value(e, field, base);
        if (r == -EINVAL)
            return error_prefix(e->err, r, "%s", field->key);
    }
    return r;
}

int message_encode_or_say(const struct message *message, struct buffer *out, struct error *err)
{
    const struct field_table *table = field_table_of(message->kind);
    if (!table)
        return error_set(err, -EINVAL, "a message without a kind");
    const char *name = message_kind_name(message->kind);
    size_t before = out->len, max = message_max_bytes(message->kind);
    /* Enough for most messages: the packer writes a few bytes at a time. */
    int r = buffer_reserve(out, 512);
    if (r < 0)
        return r;
    struct encoder encoder = {.err = err};
    msgpack_packer_init(&encoder.packer, out, write_buffer);
    r = encode_map(&encoder, table, name, message);
    if (r == 0 && out->len - before > max)
        r = error_set(err, -EINVAL, "%zu bytes; at most %zu are allowed", out->len - before, max);
    if (r != 0)
        out->len = before;
    if (r == -EINVAL)
        return error_prefix(err, r, "%s", name);
    return r == 0 ? 0 : -ENOMEM; /* the packer's own failure is the buffer's */
}

int message_encode(const struct message *message, struct buffer *out)
{
    return message_encode_or_say(message, out, NULL);
}
