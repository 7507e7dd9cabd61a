/* SPDX-License-Identifier: MIT */
/* See samplers.h. The names are kept as one text, each between spaces. */

#include "gateway/core/samplers.h"

#include <stdio.h>
#include <string.h>

/* Those that take part. "infill", which joins candidates that begin alike, has nothing here that does the
 * same. */
int samplers_take(void *into, const struct json_row *row, const char *path, json_t *value,
                  struct refusal *refusal)
{
    static const char known[] =
        " temperature temp top_k top-k top_p top-p nucleus min_p min-p penalties infill dry "
        "xtc typ_p typical_p typical-p top_n_sigma ";
    struct parameters *parameters = into;
    size_t len = 2;
    if (!json_is_array(value))
        return refuse_value(refusal, path, "%s is %s, not an array of names", path, json_in_kind(value));
    for (size_t i = 0; i < json_array_size(value); i++) {
        const char *name = json_string_value(json_array_get(value, i));
        char spaced[40];
        snprintf(spaced, sizeof spaced, " %.30s ", name ? name : "?");
        if (!strstr(known, spaced))
            return refuse(refusal, 400, "unsupported_parameter", path, "%s[%zu]: unknown sampler \"%.30s\"",
                          path, i, name ? name : "");
        len += strlen(name) + 1;
    }
    char *list = parameters_memory(parameters, len, 1);
    if (!list)
        return parameters_out_of_memory(refusal);
    strcpy(list, " ");
    for (size_t i = 0; i < json_array_size(value); i++)
        strcat(strcat(list, json_string_value(json_array_get(value, i))), " ");
    parameters->samplers = list;
    return 0;
}

/* Whether one of the names between the spaces is among the samplers. */
static bool samples_by(const struct parameters *parameters, const char *names)
{
    for (const char *at = names; *at;) {
        const size_t len = strcspn(at, " ");
        char name[32];
        snprintf(name, sizeof name, " %.*s ", (int)len, at);
        if (strstr(parameters->samplers, name))
            return true;
        at += len + strspn(at + len, " ");
    }
    return false;
}

/* A sampler that is not in llama-server's list takes no part. */
void samplers_finish(struct parameters *parameters)
{
    struct quern_request *request = &parameters->request;
    if (!parameters->samplers)
        return;
    if (!samples_by(parameters, "temperature temp t")) {
        request->temperature = 1;
        request->dynatemp_range = 0;
    }
    if (!samples_by(parameters, "top_n_sigma s"))
        request->top_n_sigma = 0;
    if (!samples_by(parameters, "typ_p typical_p typical-p y"))
        request->typical_p = 1;
    if (!samples_by(parameters, "xtc x"))
        request->xtc_probability = 0;
    if (!samples_by(parameters, "dry d"))
        request->dry_multiplier = 0;
    if (!samples_by(parameters, "top_k top-k k"))
        request->top_k = 0;
    if (!samples_by(parameters, "top_p top-p nucleus p"))
        request->top_p = 1;
    if (!samples_by(parameters, "min_p min-p m"))
        request->min_p = 0;
    if (!samples_by(parameters, "penalties e")) {
        request->repetition_penalty = 1;
        request->presence_penalty = request->frequency_penalty = 0;
    }
}
