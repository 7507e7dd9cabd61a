/* SPDX-License-Identifier: MIT */
/* See fields.h. */

#include "gateway/forms/llama_server/fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_FIELDS 64
#define MOST_NAME   128 /* bytes of each */

int fields_take(void *into, const struct json_row *row, const char *path, json_t *value,
                struct refusal *refusal)
{
    struct parameters *parameters = into;
    if (!json_is_array(value))
        return refuse_value(refusal, path, "%s is %s, not an array of names", path, json_in_kind(value));
    if (json_array_size(value) > MOST_FIELDS)
        return refuse_value(refusal, path, "%s: %zu names; at most %d are allowed", path,
                            json_array_size(value), MOST_FIELDS);
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *name = json_array_get(value, i);
        if (!json_is_string(name) || json_string_length(name) >= MOST_NAME)
            return refuse_value(refusal, path, "%s[%zu] is not a name of less than %d bytes", path, i,
                                MOST_NAME);
    }
    if (json_array_size(value) == 0)
        return 0; /* all, as without it */
    parameters->response_fields = parameters_keep_json(parameters, value);
    return parameters->response_fields ? 0 : parameters_out_of_memory(refusal);
}

/* Borrowed; NULL: there is none. */
static json_t *find(json_t *object, const char *path)
{
    char name[MOST_NAME];
    while (object && strchr(path, '/')) {
        const size_t len = strcspn(path, "/");
        snprintf(name, sizeof name, "%.*s", (int)len, path);
        object = json_object_get(object, name);
        path += len + 1;
    }
    return json_object_get(object, path);
}

void fields_write(const char *fields, const struct json_out *all, struct json_out *out)
{
    json_t *names = json_loads(fields, 0, NULL), *chosen = json_object(), *name;
    json_t *object = all->failed
                         ? NULL
                         : json_loadb((const char *)all->buffer.data, all->buffer.len, JSON_ALLOW_NUL, NULL);
    size_t i;
    bool failed = !names || !chosen || !object;
    json_array_foreach(names, i, name)
    {
        json_t *found = find(object, json_string_value(name));
        failed |= found && json_object_set(chosen, json_string_value(name), found) < 0;
    }
    char *text = failed ? NULL : json_dumps(chosen, JSON_COMPACT);
    if (text)
        json_out_text(out, text);
    else
        out->failed = true;
    free(text);
    json_decref(object);
    json_decref(chosen);
    json_decref(names);
}
