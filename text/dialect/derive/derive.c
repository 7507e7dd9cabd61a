/* SPDX-License-Identifier: MIT */
/* See derive.h. The order matters: switches give the prompts, prompts show where answers begin, thoughts have
 * to be known before the marks around an answer's text, and these before the calls. */

#include "text/dialect/derive/derive.h"

#include <errno.h>
#include <stdlib.h>

#include "text/dialect/derive/internal.h"

static void set_reason(struct derivation *derivation, const char *reason)
{
    struct model_dialect *dialect = derivation->dialect;
    const char *kept = derivation_keep(derivation, span_of(reason));
    if (!dialect->calls.known && !dialect->calls.reason[0])
        dialect->calls.reason = kept;
    if (!dialect->thoughts.known && !dialect->thoughts.reason[0])
        dialect->thoughts.reason = kept;
}

int dialect_derive(const struct chat_template *chat_template, struct bytes source, struct dialect_stops stops,
                   struct model_dialect *dialect)
{
    struct derivation derivation = {.dialect = dialect, .source = source, .stops = stops};
    int r = probe_init(&derivation.probe, chat_template);
    if (r == 0) {
        derivation.prompt = derivation_render(&derivation, probe_conversation(probe_user(), NULL, NULL),
                                              (struct probe_manner){.prompt = true});
        if (!derivation.prompt.at)
            set_reason(&derivation, derivation.probe.last.text);
        derive_switches(&derivation);
        derive_thoughts(&derivation);
        derive_content(&derivation);
        derive_calls(&derivation);
        if (derivation.fatal == -EMSGSIZE) {
            dialect->calls.known = dialect->thoughts.known = false;
            dialect->calls.reason = dialect->thoughts.reason = "";
            set_reason(&derivation, derivation.probe.last.text);
        }
        r = derivation.fatal == -ENOMEM ? -ENOMEM : 0;
    }
    for (size_t i = 0; i < derivation.n_texts; i++)
        free(derivation.texts[i]);
    probe_deinit(&derivation.probe);
    return r;
}
