/* SPDX-License-Identifier: MIT */
/* The file has a flag for each way to pool, or in newer versions the name of one. Several flags mean that the
 * vectors are concatenated, which is not supported. Embeddings here have length one, so a mean that is scaled
 * by the root of the length is the mean. */

#include "model/huggingface/pooling.h"

#include <errno.h>
#include <string.h>

#include "common/utf8.h"
#include "model/huggingface/json_values.h"

#define MOST_BYTES ((size_t)1 << 20)

enum { MEAN = 1, CLS = 2, LAST = 3 }; /* 0: not supported */

static const struct {
    const char *flag, *name;
    uint32_t type;
} ways[] = {
    {"pooling_mode_cls_token", "cls", CLS},
    {"pooling_mode_mean_tokens", "mean", MEAN},
    {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", MEAN},
    {"pooling_mode_lasttoken", "lasttoken", LAST},
    {"pooling_mode_max_tokens", "max", 0},
    {"pooling_mode_weightedmean_tokens", "weightedmean", 0},
};
#define N_WAYS (sizeof ways / sizeof *ways)

/* The one way whose flag is set: its index, or -EINVAL. */
static int find_by_flag(const json_t *json, struct error *err)
{
    int found = -1;
    for (size_t i = 0; i < N_WAYS; i++) {
        bool set = false;
        int r = json_read_flag(json, ways[i].flag, &set, err);
        if (r < 0)
            return r;
        if (set && found >= 0)
            return error_set(err, -EINVAL, "%s and %s are both set; only one is supported", ways[found].flag,
                             ways[i].flag);
        if (set)
            found = (int)i;
    }
    return found >= 0 ? found : error_set(err, -EINVAL, "no pooling_mode is set");
}

static int find_by_name(const char *name, struct error *err)
{
    char shown[40];
    for (size_t i = 0; i < N_WAYS; i++)
        if (strcmp(ways[i].name, name) == 0)
            return (int)i;
    return error_set(err, -EINVAL, "unknown pooling_mode \"%s\"",
                     utf8_printable(bytes_of_string(name), sizeof shown, shown));
}

int pooling_parse(struct bytes text, uint32_t *ret_type, struct error *err)
{
    json_t *json;
    const char *name;
    int r = json_object_parse(text, MOST_BYTES, &json, err);
    if (r < 0)
        return r;
    r = json_read_text(json, "pooling_mode", &name, err);
    if (r >= 0)
        r = r == JSON_E_MISSING ? find_by_flag(json, err) : find_by_name(name, err);
    if (r >= 0 && ways[r].type == 0)
        r = error_set(err, -EINVAL, "%s is not supported (mean, cls and lasttoken are)", ways[r].flag);
    json_decref(json);
    if (r < 0)
        return r;
    *ret_type = ways[r].type;
    return 0;
}
