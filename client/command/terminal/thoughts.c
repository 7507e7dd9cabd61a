/* SPDX-License-Identifier: MIT */
/* See thoughts.h. */

#include "client/command/terminal/thoughts.h"

#include <errno.h>
#include <unistd.h>

#include "client/command/terminal/io.h"

#define STATUS_MS 5000

static const char dim[] = "\033[2m", plain[] = "\033[0m";

void thoughts_init(struct thoughts *thoughts, struct quern *client)
{
    const struct quern_status *status;
    struct error err = {0};
    *thoughts = (struct thoughts){.dims = io_redraws(STDOUT_FILENO)};
    dialect_init(&thoughts->dialect);
    if (quern_status(client, STATUS_MS, &status, NULL) < 0)
        return;
    for (size_t i = 0; i < status->n_workers && !thoughts->known; i++)
        if (status->workers[i].dialect[0] &&
            dialect_read(bytes_of_string(status->workers[i].dialect), &thoughts->dialect, &err) == 0)
            thoughts->known = thoughts->dialect.thoughts.known || thoughts->dialect.content_open[0];
}

void thoughts_deinit(struct thoughts *thoughts)
{
    dialect_deinit(&thoughts->dialect);
}

static void write_part(struct thoughts *thoughts, const char *data, size_t len)
{
    if (thoughts->failed == 0)
        thoughts->failed = thoughts->write(thoughts->arg, data, len);
}

/* The colour of what comes next. */
static void turn_to(struct thoughts *thoughts, bool thought)
{
    if (thought == thoughts->inside)
        return;
    thoughts->inside = thought;
    if (thoughts->failed == 0 && thoughts->dims)
        thoughts->failed = thought ? io_write(dim, sizeof dim - 1) : io_write(plain, sizeof plain - 1);
    if (!thought)
        write_part(thoughts, "\n\n", 2);
}

static void on_text(void *arg, struct bytes text)
{
    struct thoughts *thoughts = arg;
    turn_to(thoughts, false);
    write_part(thoughts, text.data, text.len);
    if (thoughts->failed == 0)
        thoughts->failed = buffer_append(thoughts->text, text.data, text.len);
}

static void on_thought(void *arg, struct bytes text)
{
    struct thoughts *thoughts = arg;
    turn_to(thoughts, true);
    write_part(thoughts, text.data, text.len);
    if (thoughts->failed == 0)
        thoughts->failed = buffer_append(thoughts->thought, text.data, text.len);
}

static void on_call(void *arg, const char *name)
{
}

static void on_nothing(void *arg)
{
}

static struct answer_sink sink_of(struct thoughts *thoughts)
{
    return (struct answer_sink){on_text, on_thought, on_call, on_text, on_nothing, thoughts};
}

/* Where the prompt leaves the model. */
static enum dialect_start start_of(const struct dialect_thoughts *thoughts,
                                   const struct quern_request *request)
{
    const bool off = request->has_thinking_budget && request->thinking_budget == 0;
    return off && thoughts->switch_off ? thoughts->off : thoughts->usual;
}

int thoughts_begin(struct thoughts *thoughts, const struct quern_request *request, thoughts_write *write,
                   void *arg, struct buffer *text, struct buffer *thought)
{
    thoughts->write = write;
    thoughts->arg = arg;
    thoughts->text = text;
    thoughts->thought = thought;
    thoughts->inside = false;
    thoughts->failed = 0;
    return answer_parser_init(&thoughts->parser, &thoughts->dialect, NULL, 0, false, thoughts->known,
                              start_of(&thoughts->dialect.thoughts, request));
}

int thoughts_take(struct thoughts *thoughts, const struct quern_output *piece)
{
    const struct answer_sink sink = sink_of(thoughts);
    const int r = answer_parser_push(&thoughts->parser, (struct bytes){piece->text, piece->text_len}, &sink);
    return thoughts->failed ? thoughts->failed : r;
}

int thoughts_end(struct thoughts *thoughts)
{
    const struct answer_sink sink = sink_of(thoughts);
    int r = answer_parser_finish(&thoughts->parser, &sink);
    answer_parser_deinit(&thoughts->parser);
    if (thoughts->inside && thoughts->dims) /* nothing but a thought */
        io_write(plain, sizeof plain - 1);
    return thoughts->failed ? thoughts->failed : r;
}
