/* SPDX-License-Identifier: MIT */
/* See samplers.h. The names are kept as one text, each between spaces. */

#include "gateway/core/samplers.h"

#include <stdio.h>
#include <string.h>

#define MOST_SAMPLERS 64
#define MOST_NAME     30

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
    if (json_array_size(value) > MOST_SAMPLERS)
        return refuse_value(refusal, path, "%s: %zu names; at most %d are allowed", path,
                            json_array_size(value), MOST_SAMPLERS);
    for (size_t i = 0; i < json_array_size(value); i++) {
        const char *name = json_string_value(json_array_get(value, i));
        char spaced[40];
        snprintf(spaced, sizeof spaced, " %.30s ", name ? name : "?");
        if (!strstr(known, spaced) || strchr(name, ' ') || strlen(name) > MOST_NAME)
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
