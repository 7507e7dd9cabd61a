/* SPDX-License-Identifier: MIT */
/* A request as the program gives it, made into the bytes of a generate.
 *
 * All that can be seen to be wrong is refused here, before anything is sent: what is no request at all, what
 * the protocol bounds, what the pool said it takes. The seed is chosen by the client and not left to the
 * broker: the same bytes, sent again to another broker, make the same output. */

#include "client/lib/requests/request_encode.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/lib/requests/parameters.h"
#include "client/lib/core/state.h"

_Static_assert((int)QUERN_GBNF == (int)GRAMMAR_TEXT_GBNF && (int)QUERN_JSON == (int)GRAMMAR_TEXT_JSON &&
                   (int)QUERN_SCHEMA == (int)GRAMMAR_TEXT_SCHEMA &&
                   (int)QUERN_REGEX == (int)GRAMMAR_TEXT_REGEX,
               "kinds of grammars are numbered alike");

static struct bytes optional_text(const char *text)
{
    return text ? bytes_of_string(text) : (struct bytes){"", 0};
}

/* Lists whose items have another type on the wire; freed by the caller. */
struct converted {
    struct chat_message *messages;
    struct bytes *stop;
    struct logit_bias *biases;
    struct text_bias *text_biases;
    struct bytes *bad_words, *breakers;
    struct bytes needed[6];
};

struct chat_message *request_messages(const struct quern_request *request)
{
    struct chat_message *messages = calloc(request->n_messages + 1, sizeof *messages);
    for (size_t i = 0; messages && i < request->n_messages; i++)
        messages[i] = (struct chat_message){.role = optional_text(request->messages[i].role),
                                            .content = optional_text(request->messages[i].content),
                                            .name = optional_text(request->messages[i].name),
                                            .tool_calls = optional_text(request->messages[i].tool_calls),
                                            .tool_call_id = optional_text(request->messages[i].tool_call_id),
                                            .thought = optional_text(request->messages[i].thought)};
    return messages;
}

static int convert_prompt(const struct quern_request *from, struct prompt *to, struct converted *converted,
                          struct error *err)
{
    int forms = (from->text != NULL) + (from->ids != NULL) + (from->messages != NULL);
    if (forms != 1)
        return error_set(err, -EINVAL,
                         "a request needs exactly one prompt: text, ids or messages; this one has %d", forms);
    to->special = from->special;
    to->has_suffix = from->suffix != NULL;
    to->suffix = optional_text(from->suffix);
    to->files = optional_text(from->files);
    if (from->suffix && !from->text)
        return error_set(err, -EINVAL, "suffix: requires a text");
    to->has_document = from->document != NULL;
    to->document = optional_text(from->document);
    if (from->document && (!from->text || !from->embed))
        return error_set(err, -EINVAL, "document: requires a text and embed");
    if (from->text) {
        to->form = PROMPT_TEXT;
        to->text = (struct bytes){from->text, from->text_len ? from->text_len : strlen(from->text)};
    } else if (from->ids) {
        to->form = PROMPT_IDS;
        to->ids = (struct id_list){from->ids, from->n_ids};
    } else {
        converted->messages = request_messages(from);
        if (!converted->messages)
            return error_set(err, -ENOMEM, "out of memory");
        to->form = PROMPT_CHAT;
        to->chat.items = converted->messages;
        to->chat.n = from->n_messages;
    }
    return 0;
}

static struct bytes *convert_texts(const char *const *texts, size_t n)
{
    struct bytes *converted = calloc(n + 1, sizeof *converted);
    for (size_t i = 0; converted && i < n; i++)
        converted[i] = optional_text(texts[i]);
    return converted;
}

/* The lists of sampling. */
static int convert_lists(const struct quern_request *from, struct generation *to, struct converted *converted,
                         struct error *err)
{
    converted->biases = calloc(from->n_logit_bias + 1, sizeof *converted->biases);
    converted->text_biases = calloc(from->n_logit_bias_text + 1, sizeof *converted->text_biases);
    converted->bad_words = convert_texts(from->bad_words, from->n_bad_words);
    converted->breakers = convert_texts(from->dry_sequence_breakers, from->n_dry_sequence_breakers);
    if (!converted->biases || !converted->text_biases || !converted->bad_words || !converted->breakers)
        return error_set(err, -ENOMEM, "out of memory");
    for (size_t i = 0; i < from->n_logit_bias; i++)
        converted->biases[i] = (struct logit_bias){from->logit_bias[i].id, from->logit_bias[i].bias};
    for (size_t i = 0; i < from->n_logit_bias_text; i++)
        converted->text_biases[i] = (struct text_bias){optional_text(from->logit_bias_text[i].text),
                                                       (double)from->logit_bias_text[i].bias};
    to->sampling.logit_bias = (struct logit_bias_list){converted->biases, from->n_logit_bias};
    to->logit_bias_text = (struct text_bias_list){converted->text_biases, from->n_logit_bias_text};
    to->bad_words = (struct text_list){converted->bad_words, from->n_bad_words};
    to->has_dry_breakers = from->dry_sequence_breakers != NULL;
    to->dry_breakers = (struct text_list){converted->breakers, from->n_dry_sequence_breakers};
    return 0;
}

/* Whether the request asks for what a pool without PROTO_FEATURE_SAMPLERS would leave out. */
static bool needs_samplers(const struct quern_request *request)
{
    bool never = false;
    for (size_t i = 0; i < request->n_logit_bias; i++)
        never |= request->logit_bias[i].bias < -SAMPLING_MAX_BIAS;
    return never || request->n_logit_bias_text > 0 || request->n_bad_words > 0 ||
           request->repeat_last_n >= 0 || request->top_n_sigma > 0 || request->typical_p < 1 ||
           request->xtc_probability > 0 || request->dynatemp_range > 0 || request->dry_multiplier > 0;
}

/* Whether the request was begun before. */
static bool resumes(const struct quern_request *request)
{
    return request->n_output > 0 || request->off > 0 || request->lost > 0 || request->prompt_digest;
}

static int convert_output(const struct quern_request *from, struct generation *to, struct error *err)
{
    if (from->n_output > 0 && !from->has_seed)
        return error_set(err, -EINVAL, "output: its seed is missing");
    to->output = (struct id_list){from->output, from->n_output};
    to->prompt_digest = (struct bytes){from->prompt_digest, from->prompt_digest ? 16 : 0};
    return 0;
}

static int convert(const struct quern_request *from, struct generation *to, struct converted *converted,
                   struct error *err)
{
    int r = convert_prompt(from, &to->prompt, converted, err);
    if (r < 0)
        return r;
    converted->stop = calloc(from->n_stop + 1, sizeof *converted->stop);
    if (!converted->stop)
        return error_set(err, -ENOMEM, "out of memory");
    for (size_t i = 0; i < from->n_stop; i++)
        converted->stop[i] = optional_text(from->stop[i]);
    to->stop = (struct text_list){converted->stop, from->n_stop};
    to->stop_ids = (struct id_list){from->stop_ids, from->n_stop_ids};
    to->tools = optional_text(from->tools);
    to->prompt.template_kwargs = optional_text(from->template_kwargs);
    to->grammar =
        (struct grammar_text){(enum grammar_text_kind)from->grammar_kind, optional_text(from->grammar)};
    to->model = optional_text(from->model);
    parameters_to_generation(from, to);
    to->has_seed = true;
    to->prompt.has_thinking_budget = from->has_thinking_budget;
    r = convert_lists(from, to, converted, err);
    if (r == 0)
        r = convert_output(from, to, err);
    if (r < 0)
        return r;
    to->on_disconnect = from->keep_s > 0 ? DISCONNECT_KEEP : DISCONNECT_CANCEL;
    to->cache_salt = optional_text(from->cache_salt);
    to->tenant = optional_text(from->tenant);
    to->request_id = optional_text(from->request_id);
    /* A pool that does not know them would make something else. The protocol lets only one of the first three
     * be there, and ranking includes embedding. */
    static const struct bytes ranks = {PROTO_FEATURE_RANK, sizeof PROTO_FEATURE_RANK - 1},
                              embeds = {PROTO_FEATURE_EMBED, sizeof PROTO_FEATURE_EMBED - 1},
                              continues = {PROTO_FEATURE_CONTINUE, sizeof PROTO_FEATURE_CONTINUE - 1},
                              fills = {PROTO_FEATURE_INFILL, sizeof PROTO_FEATURE_INFILL - 1},
                              samplers = {PROTO_FEATURE_SAMPLERS, sizeof PROTO_FEATURE_SAMPLERS - 1},
                              endless = {PROTO_FEATURE_ENDLESS, sizeof PROTO_FEATURE_ENDLESS - 1},
                              least = {PROTO_FEATURE_LEAST, sizeof PROTO_FEATURE_LEAST - 1},
                              thinking = {PROTO_FEATURE_THINKING, sizeof PROTO_FEATURE_THINKING - 1},
                              resume = {PROTO_FEATURE_RESUME, sizeof PROTO_FEATURE_RESUME - 1};
    const struct bytes *needed = from->document        ? &ranks
                                 : from->embed         ? &embeds
                                 : from->continue_turn ? &continues
                                 : from->suffix        ? &fills
                                                       : NULL;
    to->require = (struct text_list){converted->needed, 0};
    if (needed)
        converted->needed[to->require.n++] = *needed;
    if (needs_samplers(from) && !from->embed)
        converted->needed[to->require.n++] = samplers;
    if (from->ignore_eos && !from->embed)
        converted->needed[to->require.n++] = endless;
    if (from->min_tokens > 0 && !from->embed)
        converted->needed[to->require.n++] = least;
    if (from->has_thinking_budget && !from->embed)
        converted->needed[to->require.n++] = thinking;
    if (resumes(from))
        converted->needed[to->require.n++] = resume;
    return 0;
}

/* What the pool said it takes, which another version of it may set lower than the protocol does. */
static int check_limits(const struct limits *limits, const struct generation *generation, struct error *err)
{
    size_t longest = 0;
    for (size_t i = 0; i < generation->stop.n; i++)
        longest = generation->stop.items[i].len > longest ? generation->stop.items[i].len : longest;
    const struct {
        const char *what;
        size_t has, most;
    } bounds[] = {
        {"ids of an output", generation->output.n, limits->prompt_ids},
        {"ids of a prompt", generation->prompt.form == PROMPT_IDS ? generation->prompt.ids.n : 0,
         limits->prompt_ids},
        {"stop strings", generation->stop.n, limits->stops},
        {"bytes of a stop string", longest, limits->stop_bytes},
        {"stop ids", generation->stop_ids.n, limits->stop_ids},
        {"log probabilities of an id", generation->logprobs, (size_t)limits->logprobs + 1},
        /* 0, of a pool that knows no biases, would ignore them. */
        {"logit biases", generation->sampling.logit_bias.n, limits->logit_bias},
        {"bytes of a grammar", generation->grammar.text.len, limits->grammar_bytes},
    };
    if (!grammar_text_is_none(&generation->grammar) && limits->grammar_bytes == 0)
        return error_set(err, -EMSGSIZE, "the pool does not support grammars");
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
        if (bounds[i].has > bounds[i].most)
            return error_set(err, -EMSGSIZE, "the pool accepts %zu %s; this request has %zu", bounds[i].most,
                             bounds[i].what, bounds[i].has);
    return 0;
}

/* Finds where ids and seeds go, and whether it is a part. The encoded seed has the longest form, so any other
 * fits in its place. */
static int find_places(struct quern_encoded *encoded, struct error *err)
{
    const struct bytes all = {encoded->bytes.data, encoded->bytes.len};
    static const char *const keys[] = {"id", "seed", "part"};
    struct bytes places[3];
    message_find(all, keys, 3, places);
    const struct bytes id = places[0], seed = places[1], part = places[2];
    if (id.len != 2 + sizeof(struct id128) || seed.len != 1 + sizeof(uint64_t))
        return error_set(err, -EINVAL, "generate: the id or the seed is missing");
    encoded->id_at = (size_t)((const uint8_t *)id.data - encoded->bytes.data) + 2;
    encoded->seed_at = (size_t)((const uint8_t *)seed.data - encoded->bytes.data) + 1;
    if (part.data)
        encoded->part_at = (size_t)((const uint8_t *)part.data - encoded->bytes.data);
    return 0;
}

/* Frees the unused end of the buffer, which may be kept for long. */
static void trim(struct buffer *buffer)
{
    uint8_t *data = realloc(buffer->data, buffer->len);
    if (!data)
        return;
    buffer->data = data;
    buffer->cap = buffer->len;
}

static int encode(const struct limits *limits, const struct quern_request *from,
                  struct quern_encoded *encoded, struct error *err)
{
    struct message message = {.kind = MESSAGE_GENERATE};
    struct converted converted = {0};
    int r = convert(from, &message.generate.generation, &converted, err);
    message.generate.generation.sampling.seed = UINT64_MAX;
    message.generate.generation.part = rates_any(&message.generate.generation.rates);
    if (r == 0)
        r = message_encode_or_say(&message, &encoded->bytes, err);
    if (r == 0)
        r = check_limits(limits, &message.generate.generation, err);
    free(converted.messages);
    free(converted.stop);
    free(converted.biases);
    free(converted.text_biases);
    free(converted.bad_words);
    free(converted.breakers);
    if (r == 0)
        r = find_places(encoded, err);
    return r;
}

int request_encode(const struct limits *limits, const struct quern_request *from,
                   struct quern_encoded **ret_encoded, struct error *err)
{
    struct quern_encoded *encoded = calloc(1, sizeof *encoded);
    if (!encoded)
        return error_set(err, -ENOMEM, "out of memory");
    *encoded = (struct quern_encoded){.refs = 1,
                                      .embeds = from->embed,
                                      .part = from->part,
                                      .has_seed = from->has_seed,
                                      .tells_admitted = from->tell_admitted,
                                      .resumes = resumes(from),
                                      .n_output = from->n_output,
                                      .off = from->off,
                                      .seed = from->seed};
    int r = encode(limits, from, encoded, err);
    if (r < 0) {
        quern_encoded_free(encoded);
        return r;
    }
    if (from->tenant) /* encoding it has checked its length */
        snprintf(encoded->tenant, sizeof encoded->tenant, "%s", from->tenant);
    trim(&encoded->bytes);
    *ret_encoded = encoded;
    return 0;
}

/* Writes the message again, with more in it. */
static int encode_again(const struct limits *limits, struct message *message,
                        const struct quern_resume *resume, struct quern_encoded *encoded, struct error *err)
{
    struct generation *generation = &message->generate.generation;
    struct bytes needed[PROTO_MAX_FEATURES];
    struct text_list *require = &generation->require;
    if (require->n >= PROTO_MAX_FEATURES)
        return error_set(err, -EINVAL, "require: too many features");
    for (size_t i = 0; i < require->n; i++)
        needed[i] = require->items[i];
    needed[require->n] = (struct bytes){PROTO_FEATURE_RESUME, sizeof PROTO_FEATURE_RESUME - 1};
    *require = (struct text_list){needed, require->n + 1};
    generation->output = (struct id_list){resume->output, resume->n_output};
    generation->off = resume->off;
    generation->lost = resume->lost;
    if (generation->deadline_ms > 0)
        generation->deadline_ms =
            generation->deadline_ms > resume->elapsed_ms ? generation->deadline_ms - resume->elapsed_ms : 1;
    generation->prompt_digest = (struct bytes){resume->prompt_digest, resume->prompt_digest ? 16 : 0};
    int r = message_encode_or_say(message, &encoded->bytes, err);
    if (r == 0)
        r = check_limits(limits, generation, err);
    return r == 0 ? find_places(encoded, err) : r;
}

int request_encode_resumed(const struct limits *limits, const struct quern_encoded *from,
                           const struct quern_resume *resume, struct quern_encoded **ret_encoded,
                           struct error *err)
{
    struct message_decoder *decoder;
    struct message message;
    if (from->resumes || from->embeds)
        return error_set(err, -EINVAL, "output: the request %s",
                         from->embeds ? "asks for an embedding" : "already resumes another one");
    struct quern_encoded *encoded = calloc(1, sizeof *encoded);
    if (!encoded || message_decoder_new(&decoder) < 0) {
        free(encoded);
        return error_set(err, -ENOMEM, "out of memory");
    }
    *encoded = *from;
    encoded->refs = 1;
    encoded->pending = 0;
    encoded->counted_by = NULL;
    encoded->used = false;
    encoded->part = true;
    encoded->resumes = true;
    encoded->n_output = resume->n_output;
    encoded->off = resume->off;
    encoded->bytes = (struct buffer){0};
    int r = message_decode(decoder, from->bytes.data, from->bytes.len, &message, err);
    if (r == 0)
        r = encode_again(limits, &message, resume, encoded, err);
    else if (r > 0)
        r = -EINVAL;
    message_decoder_free(decoder);
    if (r < 0) {
        quern_encoded_free(encoded);
        return r;
    }
    trim(&encoded->bytes);
    *ret_encoded = encoded;
    return 0;
}
