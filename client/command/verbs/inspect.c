/* SPDX-License-Identifier: MIT */
/* quern inspect: what a GGUF file holds.
 *
 * One report is built as JSON and either dumped or laid out in columns, so that both always say the same. Any
 * well-formed file can be inspected; whether a worker could run it is part of the report. Arrays show their
 * first few elements. */

#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/command/arguments.h"
#include "client/command/inspect_device.h"
#include "client/command/inspect_serving.h"
#include "client/command/verbs.h"
#include "common/hex.h"
#include "common/program/arguments.h"
#include "common/program/program.h"
#include "common/system/topology.h"
#include "common/utf8.h"
#include "engine/backend/backends.h"
#include "text/dialect/dialect.h"
#include "model/huggingface/folder.h"
#include "model/model.h"
#include "model/overrides.h"
#include "model/sampling_hints.h"
#include "model/traits.h"
#include "gguf/gguf_values.h"
#include "proto/launch.h"

#define SHOWN_ELEMENTS 4
#define MOST_SEQUENCES (1u << 20)
#define MOST_CONTEXT   (1u << 24)

struct options {
    const char *path;
    bool json, digest, device;
    uint32_t sequences, context; /* context 0: the model's */
    uint32_t draft;              /* ids of a draft; 0: none are made */
    char overrides[OVERRIDES_TEXT];
};

#define KEY_OVERRIDE 1024             /* plus the option's index */
enum { FIRST_ROW = __COUNTER__ + 1 }; /* of the overrides, which are counted from here */
#define OVERRIDE_ROW(name, argument, help, ...)                                                              \
    {name, KEY_OVERRIDE + __COUNTER__ - FIRST_ROW, argument, 0, help, 1},

static const struct argp_option known[] = {
    {"json", 'j', NULL, 0, "Print one JSON object instead of columns", 0},
    {"sequences", 'n', "N", 0, "Sequences for the memory estimate (1)", 0},
    {"ctx", 'c', "N", 0, "Tokens of each sequence (the model's context)", 0},
    {"draft", 'x', "N", 0, "Memory estimate for serve --draft N (0: no drafts)", 0},
    {"device", 'D', NULL, 0, "Show this machine's devices instead of a model", 0},
    {"digest", 'd', NULL, 0, "Also print the model's digest, as pools use it; reads the whole file", 0},
    {NULL, 0, NULL, 0, "As with quern serve:", 1},
    OVERRIDE_OPTIONS(OVERRIDE_ROW){0}};

static const struct argument arguments[] = {
    {'j', ARGUMENT_FLAG, offsetof(struct options, json), 0, 0},
    {'n', ARGUMENT_NUMBER, offsetof(struct options, sequences), 1, MOST_SEQUENCES},
    {'c', ARGUMENT_NUMBER, offsetof(struct options, context), 1, MOST_CONTEXT},
    {'x', ARGUMENT_NUMBER, offsetof(struct options, draft), 0, LAUNCH_MAX_DRAFT},
    {'D', ARGUMENT_FLAG, offsetof(struct options, device), 0, 0},
    {'d', ARGUMENT_FLAG, offsetof(struct options, digest), 0, 0},
    {0}};

static int parse(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;
    struct error err = {0};
    const struct override_option *option =
        key >= KEY_OVERRIDE ? override_option((size_t)(key - KEY_OVERRIDE)) : NULL;
    if (option && overrides_add(options->overrides, option->name, arg, &err) < 0)
        argp_error(state, "--%s: %s", option->name, err.text);
    if (option)
        return 0;
    if (arguments_take(arguments, known, key, arg, state, options) == 0)
        return 0;
    if (key == ARGP_KEY_END && options->device)
        return 0; /* which need no name */
    return argument_model(key, arg, state, &options->path);
}

/* ---- the report ---- */

/* Text that is no UTF-8 gets question marks. */
static json_t *text_json(struct bytes text)
{
    json_t *json = json_stringn(text.data, text.len);
    if (json)
        return json;
    char *copy = malloc(text.len + 4);
    if (!copy)
        return NULL;
    json = json_string(utf8_printable(text, text.len + 4, copy));
    free(copy);
    return json;
}

/* JSON has no NaN and no infinity: they become text. */
static json_t *real_json(double value)
{
    char text[32];
    json_t *json = json_real(value);
    if (json)
        return json;
    snprintf(text, sizeof text, "%f", value);
    return json_string(text);
}

static json_t *element_json(const struct gguf_value *array, uint64_t i, size_t *cursor)
{
    switch (array->array.type) {
    case GGUF_STRING:
        return text_json(gguf_array_next_string(array, cursor));
    case GGUF_F32:
    case GGUF_F64:
        return real_json(gguf_array_real(array, i));
    default:
        return json_integer(gguf_array_int(array, i));
    }
}

static json_t *value_json(const struct gguf_value *value)
{
    switch (value->type) {
    case GGUF_STRING:
        return text_json(value->string);
    case GGUF_F32:
    case GGUF_F64:
        return real_json(value->f);
    case GGUF_BOOL:
        return json_boolean(value->u);
    case GGUF_ARRAY: {
        json_t *first = json_array();
        size_t cursor = 0;
        for (uint64_t i = 0; i < value->array.n && i < SHOWN_ELEMENTS; i++)
            json_array_append_new(first, element_json(value, i, &cursor));
        return json_pack("{s:I, s:o}", "elements", (json_int_t)value->array.n, "first", first);
    }
    default:
        return json_integer(value->i);
    }
}

static json_t *metadata_json(const struct gguf *gguf)
{
    json_t *metadata = json_object();
    for (size_t i = 0; i < gguf_n_pairs(gguf); i++) {
        const struct gguf_pair *pair = gguf_pair_at(gguf, i);
        char key[128];
        json_object_set_new(metadata, utf8_printable(pair->key, sizeof key, key), value_json(&pair->value));
    }
    return metadata;
}

static json_t *tensors_json(const struct gguf *gguf)
{
    json_t *tensors = json_array();
    for (size_t i = 0; i < gguf_n_tensors(gguf); i++) {
        const struct gguf_tensor *tensor = gguf_tensor_at(gguf, i);
        json_t *shape = json_array();
        for (uint32_t d = 0; d < tensor->n_dims; d++)
            json_array_append_new(shape, json_integer((json_int_t)tensor->dims[d]));
        json_array_append_new(tensors,
                              json_pack("{s:o, s:o, s:s, s:I}", "name", text_json(tensor->name), "shape",
                                        shape, "format", format_traits(tensor->format)->name, "bytes",
                                        (json_int_t)tensor->size));
    }
    return tensors;
}

static json_t *totals_json(const struct gguf *gguf)
{
    json_int_t elements = 0, bytes = 0;
    json_t *formats = json_object();
    for (size_t i = 0; i < gguf_n_tensors(gguf); i++) {
        const struct gguf_tensor *tensor = gguf_tensor_at(gguf, i);
        const char *format = format_traits(tensor->format)->name;
        json_int_t before = json_integer_value(json_object_get(formats, format));
        json_object_set_new(formats, format, json_integer(before + (json_int_t)tensor->size));
        elements += (json_int_t)(tensor->dims[0] * tensor->dims[1] * tensor->dims[2] * tensor->dims[3]);
        bytes += (json_int_t)tensor->size;
    }
    return json_pack("{s:I, s:I, s:I, s:o}", "tensors", (json_int_t)gguf_n_tensors(gguf), "parameters",
                     elements, "bytes", bytes, "bytes_by_format", formats);
}

/* By which pools know the model. NULL when there is no memory. */
static json_t *digest_json(struct model *model)
{
    char text[33];
    if (model_read_digest(model, topology_threads_here(), NULL, NULL, NULL) < 0)
        return NULL;
    hex_write(model->digest, 16, text);
    return json_string(text);
}

/* What the model's layers do, as backends are asked for it. */
static json_t *traits_json(const struct model *model)
{
    const trait_set traits = model_traits(model);
    json_t *names = json_array();
    for (int i = 0; i < MODEL_TRAITS; i++)
        if (traits & TRAIT_BIT(i))
            json_array_append_new(names, json_string(model_trait_name((enum model_trait)i)));
    return names;
}

static json_t *experts_json(const struct model_params *p)
{
    return json_pack("{s:I, s:I, s:I, s:I}", "n_experts", (json_int_t)p->n_experts, "n_experts_used",
                     (json_int_t)p->n_experts_used, "n_expert_ff", (json_int_t)p->n_expert_ff, "n_shared_ff",
                     (json_int_t)p->n_shared_ff);
}

/* What layers with a window have that the others have not, those that borrow keys and values, and what each
 * gets of a token by itself. */
static void add_kinds(json_t *json, const struct model_params *p)
{
    if (p->window_head_dim > 0)
        json_object_update_new(json,
                               json_pack("{s:I, s:I}", "window_head_dim", (json_int_t)p->window_head_dim,
                                         "window_rope_dims", (json_int_t)p->window_rope_dims));
    if (p->n_borrowing_layers > 0)
        json_object_set_new(json, "n_borrowing_layers", json_integer(p->n_borrowing_layers));
    if (p->n_layer_embd > 0)
        json_object_set_new(json, "n_layer_embd", json_integer(p->n_layer_embd));
}

/* Of recurrent layers, and of those that guess tokens ahead, which are not used. */
static void add_layers(json_t *json, const struct model *model)
{
    const struct delta_net *net = NULL;
    json_int_t n = 0;
    for (uint32_t l = 0; l < model->params.n_layers; l++)
        if (model->layers[l].traits.mixer == MIXER_DELTA) {
            net = &model->layers[l].traits.delta;
            n++;
        }
    if (net)
        json_object_update_new(
            json, json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "n_recurrent_layers", n, "n_key_heads",
                            (json_int_t)net->n_key_heads, "n_value_heads", (json_int_t)net->n_value_heads,
                            "key_dim", (json_int_t)net->key_dim, "value_dim", (json_int_t)net->value_dim,
                            "n_taps", (json_int_t)net->n_taps));
    if (model->params.n_draft_layers > 0)
        json_object_set_new(json, "n_draft_layers_unused", json_integer(model->params.n_draft_layers));
}

/* What a worker would make of the file. NULL where it has nothing to say. */
struct understood {
    json_t *hyperparameters, *sampling, *text, *dialect, *memory, *digest;
    bool out_of_memory; /* which says nothing of the file */
};

/* What a request that does not say gets, where the pool says nothing either, and from where. */
static json_t *sampling_json(const struct model *model)
{
    struct sampling_defaults defaults;
    struct error odd = {0};
    json_t *json = json_object();
    sampling_defaults_init(&defaults);
    sampling_hints(model->gguf, &defaults, &odd);
    for (size_t i = 0; i < SAMPLING_N; i++) {
        char text[64];
        snprintf(text, sizeof text, "%.15g (%s)", defaults.values[i],
                 sampling_source_name(defaults.sources[i]));
        json_object_set_new(json, sampling_name(i), json_string(text));
    }
    if (odd.text[0])
        json_object_set_new(json, "passed_over", json_string(odd.text));
    return json;
}

/* Hyperparameters are null, with the reason in `err`, when a worker would refuse the file. The digest, if it
 * is wanted. */
static void understand(const struct options *options, struct understood *ret, struct error *err)
{
    struct model *model;
    struct backend_choice choice;
    *ret = (struct understood){.hyperparameters = json_null()};
    int r = model_open_overridden(options->path, options->overrides, false, &model, err);
    ret->out_of_memory = r == -ENOMEM;
    if (r < 0)
        return;
    if (backend_choose("auto", model, &choice, err) == 0 && choice.ops->check &&
        choice.ops->check(model, err) < 0) {
        model_free(model);
        return;
    }
    const struct model_params *p = &model->params;
    if (options->digest)
        ret->digest = digest_json(model);
    json_t *json = json_pack(
        "{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:I, s:f, s:b, s:b}", "architecture",
        p->architecture, "n_vocab", (json_int_t)p->n_vocab, "n_context", (json_int_t)p->n_context, "n_embd",
        (json_int_t)p->n_embd, "n_layers", (json_int_t)p->n_layers, "n_heads", (json_int_t)p->n_heads,
        "n_kv_heads", (json_int_t)p->n_kv_heads, "head_dim", (json_int_t)p->head_dim, "n_ff",
        (json_int_t)p->n_ff, "norm_epsilon", (double)p->norm_epsilon, "rope_base", (double)p->rope_base,
        "rope_dims", (json_int_t)p->rope_dims, "rope_scale", (double)p->rope_factor, "rope_factors",
        model->tensors[TENSOR_ROTARY_FACTORS].weight != NULL, "tied_head", model_head_is_tied(model));
    if (p->n_experts > 0)
        json_object_update_new(json, experts_json(p));
    add_layers(json, model);
    add_kinds(json, p);
    json_object_set_new(json, "window", json_integer((json_int_t)p->window));
    json_object_set_new(json, "pooling", json_string(pooling_name(p->pooling)));
    json_object_set_new(json, "chat_template", json_boolean(model->chat_template.len > 0));
    json_object_set_new(json, "traits", traits_json(model));
    ret->hyperparameters = json;
    ret->sampling = sampling_json(model);
    ret->text = inspect_text(model);
    ret->dialect = inspect_dialect(model);
    ret->out_of_memory = !ret->text || !ret->dialect;
    ret->memory = inspect_memory(model, options->sequences, options->context, options->draft > 0);
    model_free(model);
}

static json_t *report(const struct gguf *gguf, const struct options *options)
{
    struct error err = {0};
    struct understood understood;
    understand(options, &understood, &err);
    json_t *json =
        json_pack("{s:s, s:I, s:o, s:o*, s:o, s:o*, s:o*, s:o*, s:o*, s:o?, s:o, s:o}", "file", options->path,
                  "version", (json_int_t)gguf_version(gguf), "metadata", metadata_json(gguf), "digest",
                  understood.digest, "hyperparameters", understood.hyperparameters, "sampling",
                  understood.sampling, "text", understood.text, "dialect", understood.dialect, "memory",
                  understood.memory, "refused", err.text[0] ? json_string(err.text) : NULL, "tensors",
                  tensors_json(gguf), "totals", totals_json(gguf));
    if (!understood.out_of_memory)
        return json;
    json_decref(json);
    return NULL;
}

/* ---- columns ---- */

static void print_array(const json_t *array);
static void print_list(const json_t *list);

/* As inspect_text made it. */
static void print_token(const json_t *token)
{
    char text[80];
    struct bytes name = bytes_of_string(json_string_value(json_object_get(token, "text")));
    printf("%" JSON_INTEGER_FORMAT " %s", json_integer_value(json_object_get(token, "id")),
           utf8_printable(name, sizeof text, text));
}

/* Long texts are cut. */
static void print_value(const json_t *value)
{
    char text[80];
    struct bytes bytes = {json_string_value(value), json_string_length(value)};
    switch (json_typeof(value)) {
    case JSON_STRING:
        printf("%s", utf8_printable(bytes, sizeof text, text));
        if (bytes.len >= sizeof text)
            printf(" (%zu bytes)", bytes.len);
        return;
    case JSON_REAL:
        printf("%g", json_real_value(value));
        return;
    case JSON_INTEGER:
        printf("%" JSON_INTEGER_FORMAT, json_integer_value(value));
        return;
    case JSON_OBJECT:
        if (json_object_get(value, "text"))
            print_token(value);
        else
            print_array(value);
        return;
    case JSON_NULL:
        fputs("none", stdout);
        return;
    case JSON_ARRAY:
        print_list(value);
        return;
    default:
        fputs(json_is_true(value) ? "true" : "false", stdout);
    }
}

/* As value_json made it. */
static void print_array(const json_t *array)
{
    size_t i;
    json_t *element;
    json_int_t n = json_integer_value(json_object_get(array, "elements"));
    fputc('[', stdout);
    json_array_foreach(json_object_get(array, "first"), i, element)
    {
        fputs(i ? ", " : "", stdout);
        print_value(element);
    }
    if (n > SHOWN_ELEMENTS)
        printf(", … %" JSON_INTEGER_FORMAT " in all", n);
    fputc(']', stdout);
}

static void print_list(const json_t *list)
{
    size_t i;
    json_t *element;
    json_array_foreach(list, i, element)
    {
        fputs(i ? ", " : "", stdout);
        print_value(element);
    }
}

static void print_object(const char *title, json_t *object)
{
    const char *key;
    json_t *value;
    printf("%s\n", title);
    json_object_foreach(object, key, value)
    {
        printf("  %-44s ", key);
        print_value(value);
        fputc('\n', stdout);
    }
}

/* A text of a template on one line: what differs from call to call stands in braces. */
static void print_pattern(const char *text)
{
    static const char *const places[] = {"{name}", "{id}", "{index}", "{key}", "{type}"};
    for (; *text; text++) {
        if (*text >= DIALECT_NAME && *text <= DIALECT_TYPE)
            fputs(places[*text - DIALECT_NAME], stdout);
        else if (*text == '\n')
            fputs("\\n", stdout);
        else
            fputc(*text, stdout);
    }
}

static void print_dialect(json_t *dialect)
{
    const char *part, *key;
    json_t *members, *value;
    puts("dialect: how it calls tools and thinks");
    json_object_foreach(dialect, part, members)
    {
        json_object_foreach(members, key, value)
        {
            char name[64];
            snprintf(name, sizeof name, "%s.%s", part, key);
            printf("  %-44s ", name);
            if (json_is_string(value))
                print_pattern(json_string_value(value));
            else if (json_is_object(value))
                json_dumpf(value, stdout, JSON_COMPACT);
            else
                print_value(value);
            fputc('\n', stdout);
        }
    }
}

static void print_tensors(const json_t *tensors)
{
    size_t i, d;
    json_t *tensor, *dim;
    puts("tensors");
    json_array_foreach(tensors, i, tensor)
    {
        char shape[96];
        size_t n = 0;
        json_array_foreach(json_object_get(tensor, "shape"), d, dim)
        {
            n += (size_t)snprintf(shape + n, sizeof shape - n, "%s%" JSON_INTEGER_FORMAT, d ? " x " : "",
                                  json_integer_value(dim));
        }
        char name[64];
        struct bytes bytes = bytes_of_string(json_string_value(json_object_get(tensor, "name")));
        printf("  %-32s %-16s %-7s %12" JSON_INTEGER_FORMAT "\n", utf8_printable(bytes, sizeof name, name),
               shape, json_string_value(json_object_get(tensor, "format")),
               json_integer_value(json_object_get(tensor, "bytes")));
    }
}

static void print_totals(const json_t *totals)
{
    const char *format;
    json_t *bytes;
    double parameters = (double)json_integer_value(json_object_get(totals, "parameters"));
    double all = (double)json_integer_value(json_object_get(totals, "bytes"));
    printf("%" JSON_INTEGER_FORMAT " tensors, %.2f M parameters, %.2f MB, %.2f bits a parameter\n",
           json_integer_value(json_object_get(totals, "tensors")), parameters / 1e6, all / 1e6,
           parameters > 0 ? all * 8 / parameters : 0);
    json_object_foreach(json_object_get(totals, "bytes_by_format"), format, bytes)
    {
        printf("  %-7s %10.2f MB\n", format, (double)json_integer_value(bytes) / 1e6);
    }
}

static void print_report(const json_t *report)
{
    const char *refused = json_string_value(json_object_get(report, "refused"));
    const char *file = json_string_value(json_object_get(report, "file"));
    if (huggingface_is_folder(file))
        printf("%s, a folder with SafeTensors\n\n", file);
    else
        printf("%s, GGUF version %" JSON_INTEGER_FORMAT "\n\n", file,
               json_integer_value(json_object_get(report, "version")));
    print_object("metadata", json_object_get(report, "metadata"));
    fputc('\n', stdout);
    if (!refused) {
        print_object("hyperparameters", json_object_get(report, "hyperparameters"));
        const char *digest = json_string_value(json_object_get(report, "digest"));
        if (digest)
            printf("  %-44s %s\n", "digest", digest);
        fputc('\n', stdout);
        print_object("sampling, if the request does not set it", json_object_get(report, "sampling"));
        fputc('\n', stdout);
        print_object("text", json_object_get(report, "text"));
        fputc('\n', stdout);
        if (json_object_size(json_object_get(report, "dialect")) > 0) {
            print_dialect(json_object_get(report, "dialect"));
            fputc('\n', stdout);
        }
        print_object("memory, in bytes", json_object_get(report, "memory"));
        fputc('\n', stdout);
    }
    print_tensors(json_object_get(report, "tensors"));
    fputc('\n', stdout);
    print_totals(json_object_get(report, "totals"));
}

int verb_inspect(int argc, char **argv)
{
    static const struct argp argp = {
        .options = known,
        .parser = parse,
        .args_doc = "MODEL\n--device [D]",
        .doc =
            "Shows the contents of a GGUF file, or of a folder with SafeTensors in GGUF's terms. The exit "
            "status is 1 if no worker can run the model; the readable part is shown anyway.\vWith --device: "
            "the processor and the GPUs of this machine, or those that quern serve --device D would use."};
    struct options options = {.sequences = 1};
    struct error err = {0};
    struct gguf *gguf;
    arguments_parse(&argp, argc, argv, &options);
    if (options.device) {
        const int found = inspect_devices(options.path, options.json, &err);
        return found < 0 ? verb_fail(found, &err) : EXIT_SUCCESS;
    }
    int r = model_open_files(options.path, &gguf, &err);
    if (r < 0)
        return verb_fail(r, &err);
    r = overrides_apply(gguf, options.overrides, &err);
    if (r < 0) {
        gguf_free(gguf);
        return verb_fail(r, &err);
    }
    json_t *json = report(gguf, &options);
    gguf_free(gguf);
    if (!json)
        return verb_fail(-ENOMEM, &err);
    if (options.json) {
        json_dumpf(json, stdout, JSON_COMPACT);
        fputc('\n', stdout);
    } else {
        print_report(json);
    }
    const char *refused = json_string_value(json_object_get(json, "refused"));
    if (refused) {
        fflush(stdout);
        program_error("no worker can run it: %s", refused);
    }
    json_decref(json);
    return refused ? EXIT_FAILURE : EXIT_SUCCESS;
}
