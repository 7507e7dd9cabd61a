/* SPDX-License-Identifier: MIT */
/* Options of a request, for argp: those of lists by hand, those of numbers from the list of parameters, those
 * of the pool from pool_arguments.c. */

#include "client/command/request_arguments.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/command/arguments.h"
#include "client/command/terminal/io.h"
#include "common/number.h"

enum {
    KEY_STOP = 1024, /* beyond the keys of the verbs */
    KEY_STOP_ID,
    KEY_LOGIT_BIAS,
    KEY_BAD_WORD,
    KEY_BREAKER,
    KEY_GRAMMAR,
    KEY_JSON_SCHEMA,
    KEY_JSON_OBJECT,
    KEY_REGEX,
    KEY_PARAMETER /* plus the option's index */
};

enum { GROUP_POOL = 1, GROUP_REQUEST };

static const struct argp_child children[] = {{&pool_argp, 0, NULL, GROUP_POOL}, {0}};

static const struct argp_option fixed_options[] = {
    {"stop", KEY_STOP, "TEXT", 0, "Stop before this text; may be given several times", GROUP_REQUEST},
    {"stop-id", KEY_STOP_ID, "ID", 0, "Stop after this token; may be given several times", GROUP_REQUEST},
    {"logit-bias", KEY_LOGIT_BIAS, "ID:BIAS", 0,
     "Add BIAS, from -100 to 100, to the logit of this token, or with TEXT:BIAS to those of the tokens of a "
     "text; may be given several times",
     GROUP_REQUEST},
    {"bad-word", KEY_BAD_WORD, "TEXT", 0, "Never write this text; may be given several times", GROUP_REQUEST},
    {"dry-sequence-breaker", KEY_BREAKER, "TEXT", 0,
     "DRY: repetitions end at this text, \"none\" for no text; may be given several times (default: newline "
     ": \" *)",
     GROUP_REQUEST},
    {"json-schema", KEY_JSON_SCHEMA, "FILE", 0, "Answer with JSON that matches this JSON Schema",
     GROUP_REQUEST},
    {"json-object", KEY_JSON_OBJECT, NULL, 0, "Answer with a JSON object", GROUP_REQUEST},
    {"grammar", KEY_GRAMMAR, "FILE", 0, "Answer with text that matches this GBNF grammar", GROUP_REQUEST},
    {"regex", KEY_REGEX, "TEXT", 0, "Answer with text that matches this regular expression", GROUP_REQUEST},
};
#define N_FIXED (sizeof fixed_options / sizeof *fixed_options)

/* Shorter ways to say an option that is named after its parameter. */
static const struct {
    const char *parameter;
    struct argp_option alias;
} aliases[] = {
    {"max_tokens", {.key = 'n', .flags = OPTION_ALIAS}},
    {"temperature", {.name = "temp", .flags = OPTION_ALIAS}},
    {"repetition_penalty", {.name = "repeat-penalty", .flags = OPTION_ALIAS}},
    {"typical_p", {.name = "typical", .flags = OPTION_ALIAS}},
    {"top_n_sigma", {.name = "top-nsigma", .flags = OPTION_ALIAS}},
    {"dynatemp_exponent", {.name = "dynatemp-exp", .flags = OPTION_ALIAS}},
};
#define N_ALIASES (sizeof aliases / sizeof *aliases)

/* ---- parsing ---- */

static void add_logit_bias(struct request_arguments *arguments, char *text, struct argp_state *state)
{
    struct quern_request *request = &arguments->request;
    struct error err = {0};
    char *colon = strrchr(text, ':');
    uint32_t id = 0;
    double bias = 0;
    if (request->n_logit_bias + request->n_logit_bias_text == SAMPLING_MAX_BIASES)
        argp_error(state, "--logit-bias: at most %d are allowed", SAMPLING_MAX_BIASES);
    if (!colon || colon == text)
        argp_error(state, "--logit-bias: \"%s\" is not ID:BIAS or TEXT:BIAS", text);
    *colon = 0;
    const char *digits = text + (text[0] == '-');
    const bool is_id = digits[0] && digits[strspn(digits, "0123456789")] == 0;
    if ((is_id && number_read_u32(text, 0, INT32_MAX, &id, &err) < 0) ||
        number_read_real(colon + 1, -SAMPLING_MAX_BIAS, SAMPLING_MAX_BIAS, &bias, &err) < 0)
        argp_error(state, "--logit-bias: %s", err.text);
    if (!is_id && strlen(text) > PROTO_MAX_WORD_BYTES)
        argp_error(state, "--logit-bias: expected 1 to %d bytes, not %zu", PROTO_MAX_WORD_BYTES,
                   strlen(text));
    if (is_id)
        arguments->biases[request->n_logit_bias++] = (struct quern_logit_bias){(int32_t)id, (float)bias};
    else
        arguments->text_biases[request->n_logit_bias_text++] = (struct quern_text_bias){text, (float)bias};
}

/* Adds a text to a list of at most so many. */
static void add_word(const char **list, size_t *n, size_t most, const char *option, const char *text,
                     struct argp_state *state)
{
    const size_t len = strlen(text);
    if (*n == most)
        argp_error(state, "%s: at most %zu are allowed", option, most);
    if (len == 0 || len > PROTO_MAX_WORD_BYTES)
        argp_error(state, "%s: expected 1 to %d bytes, not %zu", option, PROTO_MAX_WORD_BYTES, len);
    list[(*n)++] = text;
}

/* "none": none, and those before it are forgotten. */
static void add_breaker(struct request_arguments *arguments, const char *text, struct argp_state *state)
{
    struct quern_request *request = &arguments->request;
    request->dry_sequence_breakers = arguments->breakers;
    if (strcmp(text, "none") == 0)
        request->n_dry_sequence_breakers = 0;
    else
        add_word(arguments->breakers, &request->n_dry_sequence_breakers, PROTO_MAX_DRY_BREAKERS,
                 "--dry-sequence-breaker", text, state);
}

static void add_stop_id(struct request_arguments *arguments, const char *text, struct argp_state *state)
{
    struct quern_request *request = &arguments->request;
    if (request->n_stop_ids == PROTO_MAX_STOP_IDS)
        argp_error(state, "--stop-id: at most %d are allowed", PROTO_MAX_STOP_IDS);
    arguments->stop_ids[request->n_stop_ids++] =
        (int32_t)argument_number(state, "--stop-id", text, 0, INT32_MAX);
}

static void add_stop(struct request_arguments *arguments, const char *text, struct argp_state *state)
{
    struct quern_request *request = &arguments->request;
    if (request->n_stop == PROTO_MAX_STOPS)
        argp_error(state, "--stop: at most %d are allowed", PROTO_MAX_STOPS);
    size_t len = strlen(text);
    if (len == 0 || len > PROTO_MAX_STOP_BYTES)
        argp_error(state, "--stop: expected 1 to %d bytes, not %zu", PROTO_MAX_STOP_BYTES, len);
    arguments->stops[request->n_stop++] = text;
}

static void set_grammar(struct request_arguments *arguments, enum quern_grammar kind, const char *text,
                        struct argp_state *state)
{
    struct quern_request *request = &arguments->request;
    if (request->grammar)
        argp_error(state, "--json-schema, --json-object, --grammar and --regex exclude one another");
    request->grammar = text;
    request->grammar_kind = kind;
}

/* The text of a file, which stays until the program ends. */
static void read_grammar(struct request_arguments *arguments, enum quern_grammar kind, const char *path,
                         struct argp_state *state)
{
    struct error err = {0};
    set_grammar(arguments, kind, "", state); /* whether there is one already */
    if (io_read_file(path, PROTO_MAX_GRAMMAR_BYTES, &arguments->grammar, &err) < 0 ||
        buffer_append(&arguments->grammar, "", 1) < 0)
        argp_failure(state, EXIT_FAILURE, 0, "%s", err.text[0] ? err.text : "out of memory");
    if (strlen((const char *)arguments->grammar.data) + 1 < arguments->grammar.len)
        argp_failure(state, EXIT_FAILURE, 0, "%s: contains a zero byte", path);
    arguments->request.grammar = (const char *)arguments->grammar.data;
}

/* The option that has the key, or REQUEST_MAX_OPTIONS. */
static size_t option_of(const struct request_arguments *arguments, int key)
{
    size_t i = 0;
    while (i < REQUEST_MAX_OPTIONS && !(arguments->texts[i].parameter && arguments->options[i].key == key))
        i++;
    return i;
}

/* Whether the key is that of a parameter; then it is set. */
static bool set_parameter(struct request_arguments *arguments, int key, const char *text,
                          struct argp_state *state)
{
    struct quern_error err;
    /* A long alias has no key of its own: 0, as an argument that is no option has. */
    size_t i = key == ARGP_KEY_ARG ? REQUEST_MAX_OPTIONS : option_of(arguments, key);
    if (i == REQUEST_MAX_OPTIONS)
        return false;
    const char *name = arguments->texts[i].parameter;
    if (quern_request_set(&arguments->request, name, text, &err) == 0)
        return true;
    while (arguments->texts[i].name[0] == 0) /* an alias stands behind its option */
        i--;
    argp_error(state, "--%s%s", arguments->texts[i].name, err.text + strlen(name));
    return true;
}

static int parse(int key, char *arg, struct argp_state *state)
{
    struct request_arguments *arguments = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &arguments->pool;
        return 0;
    case KEY_STOP:
        add_stop(arguments, arg, state);
        return 0;
    case KEY_STOP_ID:
        add_stop_id(arguments, arg, state);
        return 0;
    case KEY_LOGIT_BIAS:
        add_logit_bias(arguments, arg, state);
        return 0;
    case KEY_BAD_WORD:
        add_word(arguments->bad_words, &arguments->request.n_bad_words, PROTO_MAX_BAD_WORDS, "--bad-word",
                 arg, state);
        return 0;
    case KEY_BREAKER:
        add_breaker(arguments, arg, state);
        return 0;
    case KEY_JSON_SCHEMA:
        read_grammar(arguments, QUERN_SCHEMA, arg, state);
        return 0;
    case KEY_GRAMMAR:
        read_grammar(arguments, QUERN_GBNF, arg, state);
        return 0;
    case KEY_JSON_OBJECT:
        set_grammar(arguments, QUERN_JSON, "", state);
        return 0;
    case KEY_REGEX:
        set_grammar(arguments, QUERN_REGEX, arg, state);
        return 0;
    default:
        return set_parameter(arguments, key, arg, state) ? 0 : ARGP_ERR_UNKNOWN;
    }
}

/* ---- the list of options ---- */

/* Adds an option of a parameter, and what else it may be called; the number of options then. */
static size_t add_parameter(struct request_arguments *arguments, size_t n,
                            const struct quern_parameter *parameter)
{
    char *name = arguments->texts[n].name, *help = arguments->texts[n].help;
    snprintf(name, sizeof arguments->texts[n].name, "%s", parameter->name);
    for (char *c = name; *c; c++)
        *c = *c == '_' ? '-' : *c;
    int len = snprintf(help, sizeof arguments->texts[n].help, "%s", parameter->help);
    help[0] = (char)toupper((unsigned char)help[0]);
    if (parameter->of_model)
        snprintf(help + len, sizeof arguments->texts[n].help - (size_t)len, " (the model's or %g)",
                 parameter->initial);
    else if (parameter->initial != 0)
        snprintf(help + len, sizeof arguments->texts[n].help - (size_t)len, " (%g)", parameter->initial);
    arguments->options[n] =
        (struct argp_option){name, KEY_PARAMETER + (int)n, parameter->letter, 0, help, GROUP_REQUEST};
    arguments->texts[n].parameter = parameter->name;
    for (size_t i = 0; i < N_ALIASES; i++) {
        if (strcmp(aliases[i].parameter, parameter->name) != 0)
            continue;
        arguments->texts[n + 1].parameter = parameter->name;
        arguments->options[++n] = aliases[i].alias;
    }
    return n + 1;
}

void request_arguments_init(struct request_arguments *arguments)
{
    size_t n = N_FIXED;
    struct quern_parameter parameter;
    *arguments = (struct request_arguments){0};
    quern_request_init(&arguments->request);
    arguments->request.stop = arguments->stops;
    arguments->request.stop_ids = arguments->stop_ids;
    arguments->request.logit_bias = arguments->biases;
    arguments->request.logit_bias_text = arguments->text_biases;
    arguments->request.bad_words = arguments->bad_words;
    memcpy(arguments->options, fixed_options, sizeof fixed_options);
    for (size_t i = 0; quern_parameter(i, &parameter); i++)
        if (parameter.letter)
            n = add_parameter(arguments, n, &parameter);
    /* Two for an alias, and the one that ends the list. */
    assert(n < REQUEST_MAX_OPTIONS);
    arguments->argp = (struct argp){.options = arguments->options, .parser = parse, .children = children};
}

void request_arguments_deinit(struct request_arguments *arguments)
{
    buffer_deinit(&arguments->grammar);
}

void request_arguments_describe(struct request_arguments *arguments, const char *parameter, const char *help)
{
    for (size_t i = 0; i < REQUEST_MAX_OPTIONS; i++)
        if (arguments->options[i].doc == arguments->texts[i].help && arguments->texts[i].parameter &&
            strcmp(arguments->texts[i].parameter, parameter) == 0)
            snprintf(arguments->texts[i].help, sizeof arguments->texts[i].help, "%s", help);
}

bool request_has_chat_template(struct quern *client)
{
    size_t n;
    const struct quern_model *models = quern_models(client, &n);
    return n > 0 && models[0].chat;
}
