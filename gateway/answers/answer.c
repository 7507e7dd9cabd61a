/* SPDX-License-Identifier: MIT */
/* See answer.h. */

#include "gateway/answers/answer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* What is being told, for the parser's calls. */
struct telling {
    struct choice *choice;
    struct json_out *out;
};

static bool streams(const struct telling *telling)
{
    return telling->choice->generation->stream;
}

static void tell_text(void *arg, struct bytes text)
{
    struct telling *telling = arg;
    struct choice *choice = telling->choice;
    if (streams(telling))
        choice->generation->dialect->piece(choice, text, telling->out);
    else if (buffer_append(&choice->text, text.data, text.len) < 0)
        telling->out->failed = true;
}

static void tell_thought(void *arg, struct bytes text)
{
    struct telling *telling = arg;
    struct choice *choice = telling->choice;
    const struct dialect *dialect = choice->generation->dialect;
    if (!dialect->thought)
        return;
    if (streams(telling))
        dialect->thought(choice, text, telling->out);
    else if (buffer_append(&choice->thought, text.data, text.len) < 0)
        telling->out->failed = true;
}

/* False: no memory. */
static bool make_id(char id[10])
{
    static const char alphabet[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    uint8_t random[9];
    if (getrandom(random, sizeof random, 0) != sizeof random)
        return false;
    for (size_t i = 0; i < sizeof random; i++)
        id[i] = alphabet[random[i] % (sizeof alphabet - 1)];
    id[sizeof random] = 0;
    return true;
}

static void tell_call(void *arg, const char *name)
{
    struct telling *telling = arg;
    struct choice *choice = telling->choice;
    struct tool_call *calls = reallocarray(choice->calls, choice->n_calls + 1, sizeof *calls);
    if (!calls) {
        telling->out->failed = true;
        return;
    }
    choice->calls = calls;
    struct tool_call *call = &calls[choice->n_calls++];
    *call = (struct tool_call){.name = strdup(name)};
    if (!call->name || !make_id(call->id))
        telling->out->failed = true;
    else if (streams(telling) && choice->generation->dialect->call)
        choice->generation->dialect->call(choice, telling->out);
}

static void tell_arguments(void *arg, struct bytes json)
{
    struct telling *telling = arg;
    struct choice *choice = telling->choice;
    if (telling->out->failed)
        return;
    if (buffer_append(&choice->calls[choice->n_calls - 1].arguments, json.data, json.len) < 0)
        telling->out->failed = true;
    else if (streams(telling) && choice->generation->dialect->arguments)
        choice->generation->dialect->arguments(choice, json, telling->out);
}

static void tell_called(void *arg)
{
    struct telling *telling = arg;
    struct choice *choice = telling->choice;
    if (!telling->out->failed && streams(telling) && choice->generation->dialect->called)
        choice->generation->dialect->called(choice, telling->out);
}

int answer_expect_parts(struct choice *choice)
{
    const struct generation *generation = choice->generation;
    choice->parser = calloc(1, sizeof *choice->parser);
    if (!choice->parser)
        return -ENOMEM;
    return answer_parser_init(choice->parser, &generation->model_dialect, generation->tools,
                              generation->n_tools, generation->finds_calls, generation->finds_thoughts,
                              generation->start);
}

int answer_keep_echo(struct generation *generation, const struct prompt_in *prompt, uint32_t number)
{
    char *text = arena_take(&generation->arena, prompt->text_len + 1, 1);
    if (!text)
        return -ENOMEM;
    memcpy(text, prompt->text, prompt->text_len);
    for (uint32_t i = number * generation->per_prompt; i < (number + 1) * generation->per_prompt; i++) {
        struct choice *choice = &generation->choices[i];
        choice->echo = (struct bytes){text, prompt->text_len};
        if (!generation->stream && buffer_append(&choice->text, text, prompt->text_len) < 0)
            return -ENOMEM;
    }
    return 0;
}

void answer_take(struct choice *choice, const struct quern_output *output, struct json_out *out)
{
    struct telling telling = {choice, out};
    struct bytes text = {output->text, output->text_len};
    if (choice->generation->untold)
        return;
    if (!choice->parser) {
        if (text.len > 0)
            tell_text(&telling, text);
        return;
    }
    const struct answer_sink sink = {tell_text,      tell_thought, tell_call,
                                     tell_arguments, tell_called,  &telling};
    if (answer_parser_thinks(choice->parser))
        choice->generation->thought_tokens += (uint32_t)output->n_ids;
    int r = answer_parser_push(choice->parser, text, &sink);
    if (r == 0 && output->end)
        r = answer_parser_finish(choice->parser, &sink);
    if (r < 0)
        out->failed = true;
}

void answer_write_object(const struct tool_call *call, struct json_out *out)
{
    json_t *object = json_loadb((const char *)call->arguments.data, call->arguments.len, 0, NULL);
    if (json_is_object(object))
        json_out_bytes(out, call->arguments.data, call->arguments.len);
    else
        json_out_text(out, "{}");
    json_decref(object);
}

void answer_deinit(struct choice *choice)
{
    for (size_t i = 0; i < choice->n_calls; i++) {
        free(choice->calls[i].name);
        buffer_deinit(&choice->calls[i].arguments);
    }
    free(choice->calls);
    if (choice->parser)
        answer_parser_deinit(choice->parser);
    free(choice->parser);
    buffer_deinit(&choice->thought);
}
