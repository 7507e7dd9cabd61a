/* SPDX-License-Identifier: MIT */
/* How parameters are written one by one: a call with two texts is cut at its keys and values.
 *
 *     <parameter=qkone>\nqvone\n</parameter>\n<parameter=qktwo>\nqvtwo\n</parameter>\n</function>…
 *     │before_key    │to_text │behind_text and separator      │to_text │behind_text, then the call's tail
 */

#include <errno.h>
#include <string.h>

#include "text/dialect/derive/internal.h"

static struct span between(struct span text, const char *from, const char *to)
{
    const size_t begin = span_find(text, span_of(from));
    if (begin == text.len)
        return (struct span){NULL, 0};
    const struct span behind = span_from(text, begin + strlen(from));
    const size_t end = to ? span_find(behind, span_of(to)) : behind.len;
    return to && end == behind.len ? (struct span){NULL, 0} : span_to(behind, end);
}

/* The text with a word replaced by a placeholder. */
static struct span with_mark(struct derivation *derivation, struct span text, const char *word, char mark)
{
    struct buffer made = {0};
    const size_t len = strlen(word);
    for (size_t at = 0; at < text.len;) {
        const bool here = text.len - at >= len && memcmp(text.at + at, word, len) == 0;
        if (buffer_append(&made, here ? &mark : text.at + at, 1) < 0)
            derivation->fatal = -ENOMEM;
        at += here ? len : 1;
    }
    const char *kept = derivation_keep(derivation, (struct span){(const char *)made.data, made.len});
    buffer_deinit(&made);
    return span_of(kept);
}

/* Numbers, and what tells them from texts. */
static bool derive_other(struct derivation *derivation, bool with_result, struct span rest)
{
    struct dialect_calls *calls = &derivation->dialect->calls;
    const struct span text = derive_render_call(
        derivation, json_pack("{s:s, s:i}", PROBE_ONE, "qvone", PROBE_NUM, 7070707), with_result);
    const struct span to = between(text, PROBE_NUM, "7070707"), behind = between(text, "7070707", NULL);
    if (!to.at || !behind.at)
        return false;
    const struct span marked = with_mark(derivation, behind, PROBE_NUM, DIALECT_KEY);
    if (!span_ends_with(marked, rest))
        return false;
    struct span to_other = to, to_text = span_of(calls->to_text);
    /* The type by its name, where texts are called "string". */
    const char *const numbers[] = {"number", "integer"};
    for (size_t i = 0; i < 2 && span_find(to_text, span_of("string")) < to_text.len; i++)
        if (span_find(to, span_of(numbers[i])) < to.len)
            to_other = with_mark(derivation, to, numbers[i], DIALECT_TYPE);
    calls->to_other = derivation_keep(derivation, to_other);
    calls->behind_other = derivation_keep(derivation, span_to(marked, marked.len - rest.len));
    calls->quoted =
        strcmp(calls->to_other, calls->to_text) != 0 || strcmp(calls->behind_other, calls->behind_text) != 0;
    return true;
}

static void derive_values(struct derivation *derivation, bool with_result)
{
    struct dialect_calls *calls = &derivation->dialect->calls;
    struct span text = derive_render_call(derivation, json_pack("{s:b}", PROBE_FLAG, 1), with_result);
    calls->python = span_find(text, span_of("True")) < text.len;
    text = derive_render_call(derivation, json_pack("{s:s}", PROBE_ONE, "qv<one&\nx"), with_result);
    calls->cdata = span_find(text, span_of("<![CDATA[qv<one&\nx]]>")) < text.len;
}

bool derive_members(struct derivation *derivation, struct span call, bool with_result)
{
    struct dialect_calls *calls = &derivation->dialect->calls;
    const struct span behind_name = between(call, PROBE_FIRST, NULL);
    const size_t key = span_find(behind_name, span_of(PROBE_ONE));
    const struct span first = span_to(behind_name, key);
    const struct span to_text = between(call, PROBE_ONE, "qvone");
    struct span next = between(call, "qvone", PROBE_TWO), last = between(call, "qvtwo", NULL);
    if (key == behind_name.len || !to_text.at || !next.at || !last.at)
        return false;
    next = with_mark(derivation, next, PROBE_ONE, DIALECT_KEY);
    last = with_mark(derivation, last, PROBE_TWO, DIALECT_KEY);
    const size_t before = spans_common_suffix(first, next, false);
    size_t behind = spans_common_prefix(next, last, false);
    if (behind > next.len - before)
        behind = next.len - before;
    calls->before_key = derivation_keep(derivation, span_from(next, next.len - before));
    calls->to_text = derivation_keep(derivation, to_text);
    calls->behind_text = derivation_keep(derivation, span_to(next, behind));
    calls->separator = derivation_keep(derivation, span_from(span_to(next, next.len - before), behind));
    if (!derive_other(derivation, with_result, span_from(last, behind)))
        return false;
    derive_values(derivation, with_result);
    return true;
}
