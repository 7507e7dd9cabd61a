/* SPDX-License-Identifier: MIT */
/* Rendering and keeping texts, for all parts of a derivation. */

#include <errno.h>

#include "text/dialect/derive/internal.h"

struct span derivation_render(struct derivation *derivation, json_t *messages, struct probe_manner manner)
{
    char *text = NULL;
    if (derivation->fatal || derivation->n_texts == DERIVATION_MOST_TEXTS) {
        json_decref(messages);
        return (struct span){NULL, 0};
    }
    int r = probe_render(&derivation->probe, messages, manner, &text);
    if (r == -ENOMEM || r == -EMSGSIZE)
        derivation->fatal = r;
    if (r != 0)
        return (struct span){NULL, 0};
    derivation->texts[derivation->n_texts++] = text;
    return probe_behind(text);
}

const char *derivation_keep(struct derivation *derivation, struct span text)
{
    const char *kept = dialect_keep(derivation->dialect, (struct bytes){text.at, text.len});
    if (kept)
        return kept;
    derivation->fatal = -ENOMEM;
    return "";
}

struct span derive_render_answer(struct derivation *derivation, json_t *message, bool with_result)
{
    return derivation_render(
        derivation, probe_conversation(probe_user(), message, with_result ? probe_result() : NULL),
        (struct probe_manner){.tools = !derivation->without_tools, .prompt = with_result});
}

struct span derive_render_call(struct derivation *derivation, json_t *arguments, bool with_result)
{
    json_t *message = probe_assistant("");
    probe_add_call(&derivation->probe, message, PROBE_FIRST, PROBE_ID_1, arguments);
    return derive_render_answer(derivation, message, with_result);
}
