/* SPDX-License-Identifier: MIT */
/* What stands around the text of an answer: mostly nothing, and the end of the turn behind it. */

#include "text/dialect/derive/internal.h"

static struct span answer(struct derivation *derivation, bool with_call)
{
    json_t *message = probe_assistant(PROBE_SAYS);
    if (with_call)
        probe_add_call(&derivation->probe, message, PROBE_FIRST, PROBE_ID_1,
                       json_pack("{s:s}", PROBE_ONE, PROBE_TWO));
    return derivation_render(derivation, probe_conversation(probe_user(), message, NULL),
                             (struct probe_manner){.tools = with_call});
}

void derive_content(struct derivation *derivation)
{
    struct model_dialect *dialect = derivation->dialect;
    const struct span says = span_of(PROBE_SAYS);
    const struct span text = answer(derivation, false);
    size_t at = span_find(text, says);
    if (at == text.len)
        return;
    const struct span behind = span_from(text, at + says.len);
    size_t begin = spans_common_prefix(derivation->prompt, text, false);
    if (begin < at) {
        struct span open = derive_without_thought(derivation, span_to(span_from(text, begin), at - begin));
        if (!dialect->content_open[0])
            dialect->content_open = derivation_keep(derivation, span_trim_right(open));
    }
    /* With a call behind it, the text ends, but not the turn. */
    const struct span called = answer(derivation, true);
    const size_t in_called = span_find(called, says);
    size_t closes = 0;
    if (in_called < called.len)
        closes = spans_common_prefix(behind, span_from(called, in_called + says.len), false);
    else if (called.at)
        closes = behind.len - spans_common_suffix(behind, called, false);
    const struct span close = span_trim(span_to(behind, closes));
    const bool bare = !dialect->content_open[0] || close.len == 0 || span_is_blank(span_from(behind, closes));
    derivation->end_of_turn = span_from(behind, bare ? 0 : closes);
    if (!bare)
        dialect->content_close = derivation_keep(derivation, close);
}
