/* SPDX-License-Identifier: MIT */
/* See overrides.h. Values are written into the parsed file, so that whoever reads it sees no difference from
 * one that says so itself: its checks and its errors are the same. */

#include "model/overrides.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/number.h"
#include "gguf/gguf_assemble.h"
#include "gguf/gguf_values.h"

#define MOST_KEY 128

/* What the rope options say, each once. */
struct rope {
    bool any;
    char type[16]; /* "" = not said */
    double factor, base, attention, slow, fast, extrapolation;
    uint32_t trained;
    const char *yarn_option; /* the last that means nothing without YaRN; NULL: none */
};

struct target {
    struct gguf *gguf;
    char architecture[64];
    struct error *err;
};

static const char *kind_of(enum gguf_type type)
{
    switch (type) {
    case GGUF_F32:
    case GGUF_F64:
        return "float";
    case GGUF_BOOL:
        return "bool";
    case GGUF_STRING:
        return "str";
    case GGUF_ARRAY:
        return "a list";
    case GGUF_U8:
    case GGUF_I8:
    case GGUF_U16:
    case GGUF_I16:
    case GGUF_U32:
    case GGUF_I32:
    case GGUF_U64:
    case GGUF_I64:
    case GGUF_TYPE_COUNT:
        break;
    }
    return "int";
}

/* Whether a key that the file lacks may be meant: others are a mistake that nothing would say. */
static bool may_be_added(const struct target *target, const char *key)
{
    const size_t len = strlen(target->architecture);
    return strncmp(key, "tokenizer.", 10) == 0 || strncmp(key, "general.", 8) == 0 ||
           (len > 0 && strncmp(key, target->architecture, len) == 0 && key[len] == '.');
}

static int set_key(const struct target *target, const char *text)
{
    const char *equals = strchr(text, '='), *colon = strchr(equals, ':'), *value = colon + 1;
    const char *type = equals + 1;
    char key[MOST_KEY];
    struct gguf_value found = {0};
    snprintf(key, sizeof key, "%.*s", (int)(equals - text), text);
    if (equals - text >= MOST_KEY)
        return error_set(target->err, -EINVAL, "--override-kv: a key of more than %d bytes", MOST_KEY - 1);
    if (type[0] == 'i') {
        found.type = GGUF_I64;
        found.i = strtoll(value, NULL, 10);
    } else if (type[0] == 'f') {
        found.type = GGUF_F64;
        found.f = strtod(value, NULL);
    } else if (type[0] == 'b') {
        found.type = GGUF_BOOL;
        found.u = value[0] == 't';
    } else {
        found.type = GGUF_STRING;
        found.string = bytes_of_string(value);
    }
    const struct gguf_value *old = gguf_find(target->gguf, key);
    if (strncmp(key, "split.", 6) == 0)
        return error_set(target->err, -EINVAL,
                         "--override-kv: %s describes how the file is split and cannot be overridden", key);
    if (!old && !may_be_added(target, key))
        return error_set(target->err, -EINVAL,
                         "--override-kv: the file has no %s, and its prefix is not %s, tokenizer or general",
                         key, target->architecture);
    if (old && strcmp(kind_of(old->type), kind_of(found.type)) != 0)
        return error_set(target->err, -EINVAL, "--override-kv: %s is %s in the file, not %s", key,
                         kind_of(old->type), kind_of(found.type));
    return gguf_set_value(target->gguf, key, &found);
}

static void note_rope(struct rope *rope, const struct override_option *option, const char *value)
{
    const double real = strtod(value, NULL);
    const char *name = option->name;
    rope->any = true;
    if (strncmp(name, "yarn-", 5) == 0)
        rope->yarn_option = name;
    if (strcmp(name, "rope-scaling") == 0)
        snprintf(rope->type, sizeof rope->type, "%.15s", value);
    else if (strcmp(name, "rope-scale") == 0)
        rope->factor = real;
    else if (strcmp(name, "rope-freq-scale") == 0)
        rope->factor = 1 / real;
    else if (strcmp(name, "rope-freq-base") == 0)
        rope->base = real;
    else if (strcmp(name, "yarn-orig-ctx") == 0)
        rope->trained = (uint32_t)strtoul(value, NULL, 10);
    else if (strcmp(name, "yarn-ext-factor") == 0)
        rope->extrapolation = real;
    else if (strcmp(name, "yarn-attn-factor") == 0)
        rope->attention = real;
    else if (strcmp(name, "yarn-beta-slow") == 0)
        rope->slow = real;
    else
        rope->fast = real;
}

static const char *full_key(const struct target *target, const char *name, char key[MOST_KEY])
{
    snprintf(key, MOST_KEY, "%s.%s", target->architecture, name);
    return key;
}

static int set_real(const struct target *target, const char *name, double value)
{
    char key[MOST_KEY];
    return value > 0 ? gguf_set_value(target->gguf, full_key(target, name, key),
                                      &(struct gguf_value){.type = GGUF_F64, .f = value})
                     : 0;
}

static int set_count(const struct target *target, const char *name, uint32_t value)
{
    char key[MOST_KEY];
    return gguf_set_value(target->gguf, full_key(target, name, key),
                          &(struct gguf_value){.type = GGUF_U32, .u = value});
}

/* The type that holds in the end: what was said, else the file's, else that of a factor. */
static int find_type(const struct target *target, struct rope *rope)
{
    char key[MOST_KEY];
    struct bytes type = BYTES_LITERAL("none");
    if (rope->type[0] == 0) {
        int r = gguf_string(target->gguf, full_key(target, "rope.scaling.type", key), &type, target->err);
        if (r < 0)
            return r;
        snprintf(rope->type, sizeof rope->type, "%.*s", (int)(type.len < 15 ? type.len : 15),
                 (const char *)type.data);
        if (strcmp(rope->type, "none") == 0 && rope->factor > 1)
            snprintf(rope->type, sizeof rope->type, "linear");
    }
    if (strcmp(rope->type, "longrope") == 0 && (rope->factor > 0 || rope->yarn_option))
        return error_set(target->err, -EINVAL,
                         "--rope-scale and --yarn-*: the model has long-rope factors, which exclude them");
    if (rope->yarn_option && strcmp(rope->type, "yarn") != 0)
        return error_set(target->err, -EINVAL, "--%s: the scaling is %s, not yarn (--rope-scaling yarn)",
                         rope->yarn_option, rope->type);
    if (strcmp(rope->type, "none") == 0 && rope->factor > 1)
        return error_set(target->err, -EINVAL, "--rope-scale: --rope-scaling none excludes it");
    if (rope->extrapolation > -1 && rope->extrapolation != 0 && rope->extrapolation != 1)
        return error_set(target->err, -EINVAL, "--yarn-ext-factor: only 1 (or -1) and 0 are supported");
    if (rope->extrapolation == 0)
        snprintf(rope->type, sizeof rope->type, "linear");
    return 0;
}

/* What the factor scales from, and how long the context gets. */
static int set_contexts(const struct target *target, const struct rope *rope, bool has_context)
{
    char key[MOST_KEY];
    uint32_t context = 0, trained = 0;
    float factor = (float)rope->factor;
    int r = gguf_u32(target->gguf, full_key(target, "context_length", key), &context, target->err);
    if (r == 0)
        r = gguf_u32(target->gguf, full_key(target, "rope.scaling.original_context_length", key), &trained,
                     target->err);
    if (r < 0)
        return r;
    trained = rope->trained > 0 ? rope->trained : trained > 0 ? trained : context;
    if (factor == 0 &&
        gguf_f32(target->gguf, full_key(target, "rope.scaling.factor", key), &factor, NULL) != 0)
        return strcmp(rope->type, "none") == 0 || strcmp(rope->type, "longrope") == 0
                   ? 0
                   : error_set(target->err, -EINVAL, "--rope-scaling %s: --rope-scale is missing",
                               rope->type);
    if (strcmp(rope->type, "none") == 0 || trained == 0)
        return 0;
    const double longer = round((double)trained * (double)factor);
    r = set_count(target, "rope.scaling.original_context_length", trained);
    if (r == 0 && !has_context && longer > context && longer <= 1 << 24)
        r = set_count(target, "context_length", (uint32_t)longer);
    return r;
}

static int set_rope(const struct target *target, struct rope *rope, bool has_context)
{
    char key[MOST_KEY];
    if (target->architecture[0] == 0)
        return error_set(target->err, -EINVAL, "--rope-* and --yarn-*: the file names no architecture");
    int r = find_type(target, rope);
    if (r == 0)
        r = set_contexts(target, rope, has_context);
    if (r == 0 && strcmp(rope->type, "longrope") != 0)
        r = gguf_set_value(target->gguf, full_key(target, "rope.scaling.type", key),
                           &(struct gguf_value){.type = GGUF_STRING, .string = bytes_of_string(rope->type)});
    if (r == 0)
        r = set_real(target, "rope.scaling.factor", rope->factor);
    if (r == 0)
        r = set_real(target, "rope.freq_base", rope->base);
    if (r == 0)
        r = set_real(target, "rope.scaling.attn_factor", rope->attention);
    if (r == 0)
        r = set_real(target, "rope.scaling.yarn_beta_slow", rope->slow);
    return r == 0 ? set_real(target, "rope.scaling.yarn_beta_fast", rope->fast) : r;
}

static int find_architecture(struct target *target)
{
    struct bytes name = {"", 0};
    int r = gguf_string(target->gguf, "general.architecture", &name, target->err);
    if (r < 0)
        return r;
    snprintf(target->architecture, sizeof target->architecture, "%.*s", (int)(name.len < 63 ? name.len : 63),
             (const char *)name.data);
    return 0;
}

/* Is it the model's own context, of all keys, that KEY=TYPE:VALUE sets? */
static bool sets_context(const struct target *target, const char *text)
{
    char key[MOST_KEY];
    full_key(target, "context_length", key);
    return strcspn(text, "=") == strlen(key) && strncmp(text, key, strlen(key)) == 0;
}

int overrides_apply(struct gguf *gguf, const char *text, struct error *err)
{
    struct target target = {.gguf = gguf, .err = err};
    struct rope rope = {.extrapolation = -1};
    struct bytes rest = bytes_of_string(text ? text : "");
    const struct override_option *option;
    char value[OVERRIDES_TEXT];
    bool has_context = false;
    int r = rest.len > 0 ? find_architecture(&target) : 0;
    while (r == 0 && overrides_next(&rest, &option, value)) {
        if (!option)
            return error_set(err, -EINVAL, "unknown kind of override");
        if (option->kind != OVERRIDE_KEY) {
            note_rope(&rope, option, value);
            continue;
        }
        r = set_key(&target, value);
        if (r == 0)
            r = find_architecture(&target);
        has_context |= sets_context(&target, value);
    }
    if (r == 0 && rope.any)
        r = set_rope(&target, &rope, has_context);
    if (r == 0 && text && text[0])
        gguf_set_variant(gguf, text);
    return r;
}

bool overrides_scale_positions(const char *text)
{
    return text && (strncmp(text, "rope-", 5) == 0 || strncmp(text, "yarn-", 5) == 0 ||
                    strstr(text, "\nrope-") || strstr(text, "\nyarn-"));
}

const char *overrides_find_unread(const struct gguf *gguf, const char *text, char key[OVERRIDES_TEXT])
{
    struct bytes rest = bytes_of_string(text ? text : "");
    const struct override_option *option;
    while (overrides_next(&rest, &option, key)) {
        key[strcspn(key, "=")] = 0;
        if (option && option->kind == OVERRIDE_KEY && !gguf_was_found(gguf, key))
            return key;
    }
    return NULL;
}

bool overrides_set_key(const char *text, const char *key)
{
    struct bytes rest = bytes_of_string(text ? text : "");
    const struct override_option *option;
    char value[OVERRIDES_TEXT];
    while (overrides_next(&rest, &option, value))
        if (option && option->kind == OVERRIDE_KEY && strcspn(value, "=") == strlen(key) &&
            strncmp(value, key, strlen(key)) == 0)
            return true;
    return false;
}
