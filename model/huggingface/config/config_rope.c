/* SPDX-License-Identifier: MIT */
/* How positions turn queries and keys: rope_theta and rope_scaling, or rope_parameters of newer files, which
 * has both, and for families whose layers differ one object for each kind of layer. */

#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/utf8.h"
#include "model/huggingface/config/config.h"
#include "model/huggingface/json_values.h"

static const char *const names[] = {
    [CONFIG_UNSCALED] = "default", [CONFIG_LINEAR] = "linear", [CONFIG_YARN] = "yarn",
    [CONFIG_LLAMA3] = "llama3",    [CONFIG_LONG] = "longrope", [CONFIG_PROPORTIONAL] = "proportional"};

/* One number for each pair that turns. */
static int read_factors(const json_t *scaling, const char *key, const struct config *config,
                        float *ret_factors, struct error *err)
{
    const json_t *list = json_object_get(scaling, key);
    const uint32_t n = config->rope_dims / 2;
    if (json_array_size(list) != n || n == 0 || n > CONFIG_MOST_FACTORS)
        return error_set(err, -EINVAL, "%s is not a list of %u numbers", key, n);
    for (uint32_t i = 0; i < n; i++) {
        ret_factors[i] = (float)json_number_value(json_array_get(list, i));
        if (!(ret_factors[i] > 0) || !isfinite(ret_factors[i]))
            return error_set(err, -EINVAL, "%s: number %u is not above 0", key, i);
    }
    return 0;
}

/* The length of training stands beside the object or in it. What attention gains is a formula of the two
 * lengths if it is not said. */
static int read_long(const json_t *json, const json_t *scaling, struct config *config, struct error *err)
{
    if (!(config->family->uses & USES_LONG))
        return error_set(err, -EINVAL, "rope_type \"longrope\" is not supported in a %s model",
                         config->family->model_type);
    int r = json_read_u32(json, "original_max_position_embeddings", &config->trained_context, err);
    if (r == JSON_E_MISSING)
        r = json_read_u32(scaling, "original_max_position_embeddings", &config->trained_context, err);
    if (r >= 0 && config->trained_context < 2)
        return error_set(err, -EINVAL, "longrope needs original_max_position_embeddings");
    if (r >= 0)
        r = read_factors(scaling, "short_factor", config, config->short_factors, err);
    if (r >= 0)
        r = read_factors(scaling, "long_factor", config, config->long_factors, err);
    if (r >= 0)
        r = json_read_positive(scaling, "attention_factor", 0, &config->attention_factor, err);
    if (r < 0)
        return r;
    config->n_long = config->rope_dims / 2;
    if (config->attention_factor == 0 && config->n_context > config->trained_context)
        config->attention_factor = (float)sqrt(1 + log((double)config->n_context / config->trained_context) /
                                                       log((double)config->trained_context));
    return 0;
}

static int check_llama3(const struct config *config, struct error *err)
{
    if (config->trained_context > 0 && config->low > 0 && config->high > config->low)
        return 0;
    return error_set(err, -EINVAL,
                     "llama3 needs original_max_position_embeddings, low_freq_factor and a larger "
                     "high_freq_factor");
}

/* What some architectures fix. */
static int check_yarn(const json_t *scaling, struct config *config, struct error *err)
{
    bool truncate = true;
    int r = json_read_flag(scaling, "truncate", &truncate, err);
    if (r < 0)
        return r;
    config->exact_ramp = !truncate;
    if (config->family->uses & USES_FIXED_TURNS && ((config->fast_turns != 0 && config->fast_turns != 32) ||
                                                    (config->slow_turns != 0 && config->slow_turns != 1)))
        return error_set(err, -EINVAL, "beta_fast %g and beta_slow %g are not supported (32 and 1 are)",
                         (double)config->fast_turns, (double)config->slow_turns);
    if (config->query_growth > 0 && !(config->family->uses & USES_GROWTH))
        return error_set(err, -EINVAL, "llama_4_scaling_beta is not supported");
    return 0;
}

static int read_scaling_numbers(const json_t *scaling, struct config *config, struct error *err)
{
    const struct {
        const char *key;
        float *value;
    } reals[] = {{"factor", &config->factor},
                 {"low_freq_factor", &config->low},
                 {"high_freq_factor", &config->high},
                 {"beta_fast", &config->fast_turns},
                 {"beta_slow", &config->slow_turns},
                 {"attention_factor", &config->attention_factor},
                 {"mscale", &config->magnitude},
                 {"mscale_all_dim", &config->magnitude_all},
                 {"llama_4_scaling_beta", &config->query_growth}};
    int r = 0;
    for (size_t i = 0; i < sizeof reals / sizeof reals[0] && r == 0; i++)
        r = json_read_positive(scaling, reals[i].key, 0, reals[i].value, err);
    if (r == 0 && config->factor == 0)
        return error_set(err, -EINVAL, "factor is missing");
    if (r == 0)
        r = json_read_u32(scaling, "original_max_position_embeddings", &config->trained_context, err);
    if (r < 0)
        return r;
    return config->scaling == CONFIG_LLAMA3 ? check_llama3(config, err) : check_yarn(scaling, config, err);
}

/* Of pairs that turn by time, height and width; in text all three are one position. */
static int read_sections(const json_t *scaling, struct config *config, struct error *err)
{
    const json_t *sections = json_object_get(scaling, "mrope_section");
    if (!sections || json_is_null(sections))
        return 0;
    if (!(config->family->uses & USES_DELTA))
        return error_set(err, -EINVAL, "mrope_section is not supported");
    for (size_t i = 0; i < 3; i++) {
        const json_t *n = json_array_get(sections, i);
        if (json_array_size(sections) != 3 || !json_is_integer(n) || json_integer_value(n) < 0 ||
            json_integer_value(n) > config->head_dim)
            return error_set(err, -EINVAL, "mrope_section is not a list of three counts");
        config->sections[i] = (uint32_t)json_integer_value(n);
    }
    return 0;
}

static int read_type(const json_t *scaling, struct config *config, struct error *err)
{
    const char *type = NULL;
    char shown[64];
    int r = json_read_text(scaling, "rope_type", &type, err);
    if (r == JSON_E_MISSING)
        r = json_read_text(scaling, "type", &type, err);
    if (r != 0)
        return r < 0 ? r : error_set(err, -EINVAL, "rope_type is missing");
    if (strcmp(type, "su") == 0) /* as older files have it */
        type = "longrope";
    int which = CONFIG_UNSCALED;
    while (which <= CONFIG_PROPORTIONAL && strcmp(names[which], type) != 0)
        which++;
    if (which > CONFIG_PROPORTIONAL || (which == CONFIG_PROPORTIONAL && !(config->family->uses & USES_APART)))
        return error_set(err, -EINVAL,
                         "rope_type \"%s\" is not supported (default, linear, yarn, llama3 and longrope are)",
                         utf8_printable(bytes_of_string(type), sizeof shown, shown));
    config->scaling = (enum config_scaling)which;
    return 0;
}

static int read_scaling(const json_t *json, const json_t *scaling, struct config *config, struct error *err)
{
    if (!json_is_object(scaling))
        return error_set(err, -EINVAL, "not an object");
    int r = read_type(scaling, config, err);
    if (r == 0)
        r = read_sections(scaling, config, err);
    if (r < 0 || config->scaling == CONFIG_UNSCALED)
        return r;
    return config->scaling == CONFIG_LONG ? read_long(json, scaling, config, err)
                                          : read_scaling_numbers(scaling, config, err);
}

/* Layers with a window turn as they were trained first, whatever scaling the others have. */
static int read_window_turns(const json_t *parameters, struct config *config, struct error *err)
{
    const json_t *window = json_object_get(parameters, "sliding_attention");
    struct config plain = {.family = config->family};
    if (!window || json_is_null(window))
        return 0;
    int r = read_type(window, &plain, err);
    if (r == 0 && plain.scaling != CONFIG_UNSCALED)
        r = error_set(err, -EINVAL, "rope_type \"%s\" is not supported (default is)", names[plain.scaling]);
    if (r == 0)
        r = json_read_positive(window, "rope_theta", 0, &config->window_base, err);
    return r < 0 ? error_prefix(err, r, "sliding_attention") : 0;
}

/* The share of a head's dims that turns. */
static int read_dims(const json_t *json, const json_t *parameters, struct config *config, struct error *err)
{
    float share = 1;
    int r = json_read_positive(json, "partial_rotary_factor", 1, &share, err);
    if (r == 0)
        r = json_read_positive(parameters, "partial_rotary_factor", share, &share, err);
    if (r < 0)
        return r;
    if (share > 1 || (share != 1 && !(config->family->uses & USES_PARTS)))
        return error_set(err, -EINVAL, "partial_rotary_factor is %g; %s supported", (double)share,
                         config->family->uses & USES_PARTS ? "at most 1 is" : "only 1 is");
    config->rope_dims = (uint32_t)((double)config->head_dim * (double)share);
    if (share != 1 && (config->rope_dims == 0 || config->rope_dims % 2 != 0))
        return error_set(
            err, -EINVAL,
            "partial_rotary_factor %g of head_dim %u: an even number of rotary dimensions is required",
            (double)share, config->head_dim);
    return 0;
}

/* Of layers with a window the base is written where it is another one and the family leaves it open; else it
 * is fixed, or they turn as all layers do. */
static int complete_window_base(const char *key, struct config *config, struct error *err)
{
    const float base = config->window_base;
    const struct family *family = config->family;
    const float only = family->window_base > 0 ? family->window_base : config->rope_base;
    const bool any = family->uses & USES_WINDOW_BASE;
    if (base > 0 && base != only && !any)
        return error_set(err, -EINVAL, "%s: sliding_attention: rope_theta is %g; only %g is supported", key,
                         (double)base, (double)only);
    if (!any || base == config->rope_base)
        config->window_base = 0;
    return 0;
}

/* Of a kind of layers: rope_theta, and the share of pairs that turn, which is 1 unless rope_type says how. */
static int read_kind(const json_t *parameters, struct config *config, float *ret_base, float *ret_share,
                     struct error *err)
{
    int r = read_type(parameters, config, err);
    if (r == 0)
        r = json_read_positive(parameters, "rope_theta", 10000, ret_base, err);
    if (r == 0)
        r = json_read_positive(parameters, "partial_rotary_factor", 1, ret_share, err);
    if (r < 0)
        return r;
    if (config->scaling != CONFIG_PROPORTIONAL && config->scaling != CONFIG_UNSCALED)
        return error_set(err, -EINVAL, "rope_type \"%s\" is not supported (default and proportional are)",
                         names[config->scaling]);
    if (*ret_share > 1 || (*ret_share != 1 && config->scaling == CONFIG_UNSCALED))
        return error_set(err, -EINVAL, "partial_rotary_factor is %g; %s is supported", (double)*ret_share,
                         config->scaling == CONFIG_UNSCALED ? "only 1" : "at most 1");
    return 0;
}

/* Heads of two sizes turn each in its own way: whole ones in layers with a window. */
static int read_kinds(const json_t *parameters, struct config *config, struct error *err)
{
    static const char *const kinds[] = {"full_attention", "sliding_attention"};
    struct config window = {.family = config->family};
    float share = 1, window_share = 1;
    for (size_t i = 0; i < 2; i++)
        if (!json_is_object(json_object_get(parameters, kinds[i])))
            return error_set(err, -EINVAL, "%s is missing or not an object", kinds[i]);
    const json_t *full = json_object_get(parameters, kinds[0]);
    int r = read_kind(full, config, &config->rope_base, &share, err);
    if (r == 0 && config->scaling == CONFIG_PROPORTIONAL)
        r = json_read_positive(full, "factor", 1, &config->factor, err);
    if (r < 0)
        return error_prefix(err, r, "%s", kinds[0]);
    config->rope_dims = config->head_dim;
    config->n_turning = (uint32_t)((double)share * config->head_dim / 2);
    r = read_kind(json_object_get(parameters, kinds[1]), &window, &config->window_base, &window_share, err);
    if (r == 0 && window.scaling != CONFIG_UNSCALED)
        r = error_set(err, -EINVAL, "rope_type \"%s\" is not supported (default is)", names[window.scaling]);
    return r < 0 ? error_prefix(err, r, "%s", kinds[1]) : 0;
}

int config_read_rope(const json_t *json, struct config *config, struct error *err)
{
    const json_t *parameters = json_object_get(json, "rope_parameters");
    const char *key = json_is_object(parameters) ? "rope_parameters" : "rope_scaling";
    const json_t *scaling = json_object_get(json, key), *full = json_object_get(scaling, "full_attention");
    int r = 0;
    if (config->family->uses & USES_NO_ROPE)
        return 0;
    if (config->family->uses & USES_APART) {
        r = read_kinds(parameters, config, err);
        return r < 0 ? error_prefix(err, r, "rope_parameters") : 0;
    }
    if (full && config->family->period > 0)
        r = read_window_turns(scaling, config, err);
    if (full)
        scaling = full;
    if (r == 0)
        r = read_dims(json, scaling, config, err);
    if (r == 0)
        r = json_read_positive(json, "rope_theta", 10000, &config->rope_base, err);
    if (r == 0 && json_is_object(parameters))
        r = json_read_positive(scaling, "rope_theta", config->rope_base, &config->rope_base, err);
    if (r == 0 && scaling && !json_is_null(scaling)) {
        r = read_scaling(json, scaling, config, err);
        if (r < 0)
            return error_prefix(err, r, "%s", key);
    }
    return r < 0 ? r : complete_window_base(key, config, err);
}

/* ---- factors as tensors ---- */

const char *config_factors_name(enum config_factors list)
{
    static const char *const tensors[] = {[CONFIG_FACTORS] = "rope_freqs.weight",
                                          [CONFIG_SHORT_FACTORS] = "rope_factors_short.weight",
                                          [CONFIG_LONG_FACTORS] = "rope_factors_long.weight"};
    return tensors[list];
}

uint32_t config_n_factors(const struct config *config, enum config_factors list)
{
    if (list == CONFIG_FACTORS)
        return config->scaling == CONFIG_LLAMA3 || config->scaling == CONFIG_PROPORTIONAL
                   ? config->rope_dims / 2
                   : 0;
    return config->n_long;
}

/* Llama 3: fast pairs are left alone, slow ones slowed by the whole factor, with a ramp between. */
static void llama3_factors(const struct config *config, uint32_t n, float *ret_factors)
{
    for (uint32_t i = 0; i < n; i++) {
        double frequency = pow((double)config->rope_base, -2.0 * i / config->rope_dims);
        double turns = config->trained_context * frequency / (2 * M_PI);
        double low = (double)config->low, high = (double)config->high;
        double fast = fmin(1, fmax(0, (turns - low) / (high - low)));
        ret_factors[i] = (float)(1 / ((1 - fast) / (double)config->factor + fast));
    }
}

/* What does not turn is slowed until no context is long enough to see it, as in GGUF's files. */
static void proportional_factors(const struct config *config, uint32_t n, float *ret_factors)
{
    for (uint32_t i = 0; i < n; i++)
        ret_factors[i] = i < config->n_turning ? config->factor : 1e30f;
}

void config_factors(const struct config *config, enum config_factors list, float *ret_factors)
{
    const uint32_t n = config_n_factors(config, list);
    if (list == CONFIG_FACTORS && config->scaling == CONFIG_PROPORTIONAL)
        proportional_factors(config, n, ret_factors);
    else if (list == CONFIG_FACTORS)
        llama3_factors(config, n, ret_factors);
    else
        memcpy(ret_factors, list == CONFIG_LONG_FACTORS ? config->long_factors : config->short_factors,
               n * sizeof *ret_factors);
}
