/* SPDX-License-Identifier: MIT */
/* The loop around quern_dispatch.
 *
 * The request lives until its end has come, whatever happens meanwhile: what points to this frame of the
 * stack must not be called later. Only a pool that does not answer a cancel for a while ends the wait before;
 * the caller then ends the connection. A second signal ends the program at once. */

#include "client/command/terminal/answer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/command/terminal/interrupt.h"
#include "client/command/terminal/io.h"
#include "client/command/terminal/progress.h"
#include "common/amount.h"
#include "common/clock.h"
#include "common/program/program.h"

#define DISPATCH_MS    100
#define CANCEL_WAIT_NS (10 * CLOCK_NS_PER_S)

struct follower {
    answer_take *take;
    void *arg;
    struct answer answer;
    struct progress progress; /* of reading the prompt */
    bool over;
};

/* A long prompt takes a while. */
static void show_reading(struct follower *follower, const struct quern_progress *progress)
{
    if (progress->total > 0 && progress->read < progress->total)
        progress_show_part(&follower->progress, "reading the prompt",
                           (uint32_t)(100.0 * progress->read / progress->total));
}

static void on_output(void *arg, const struct quern_output *output)
{
    struct follower *follower = arg;
    struct answer *answer = &follower->answer;
    if (output->progress) {
        show_reading(follower, output->progress);
        return;
    }
    progress_end(&follower->progress);
    if (answer->unwritten == 0)
        answer->unwritten = follower->take(follower->arg, output);
    if (!output->end)
        return;
    follower->over = true;
    answer->reason = output->end->reason;
    answer->output_tokens = output->end->output_tokens;
    snprintf(answer->limit, sizeof answer->limit, "%s", output->end->limit);
    if (answer->reason == QUERN_ERROR) {
        snprintf(answer->error, sizeof answer->error, "%s", output->end->error);
        snprintf(answer->text, sizeof answer->text, "%s", output->end->text);
    }
}

/* Until the end. */
static int dispatch(struct quern *client, struct quern_id id, struct follower *follower, struct error *err)
{
    uint64_t cancelled_ns = 0;
    while (!follower->over) {
        struct quern_error said = {0};
        int r = quern_dispatch(client, DISPATCH_MS, &said);
        if (r < 0 && !follower->over)
            return error_set(err, r, "%s", said.text);
        if (!cancelled_ns && (interrupt_signal() || follower->answer.unwritten < 0)) {
            cancelled_ns = clock_ns();
            quern_cancel(client, id, NULL);
        }
        if (cancelled_ns && clock_ns() - cancelled_ns > CANCEL_WAIT_NS)
            return error_set(err, -ETIMEDOUT, "the pool did not end the request");
    }
    return 0;
}

int answer_follow(struct quern *client, const struct quern_request *request, answer_take *take, void *arg,
                  struct answer *ret_answer, struct error *err)
{
    struct follower follower = {.take = take, .arg = arg};
    struct quern_error said = {0};
    struct quern_id id;
    struct quern_request wanted = *request;
    wanted.progress = io_redraws(STDERR_FILENO);
    progress_start(&follower.progress);
    int r = quern_generate(client, &wanted, on_output, &follower, &id, &said);
    if (r == -EINVAL || r == -EMSGSIZE) { /* something about this request; another one may do */
        follower.answer.reason = QUERN_ERROR;
        snprintf(follower.answer.error, sizeof follower.answer.error, "%s", r == -EMSGSIZE ? "too_long" : "");
        snprintf(follower.answer.text, sizeof follower.answer.text, "%s", said.text);
        r = 0;
    } else if (r < 0) {
        error_set(err, r, "%s", said.text);
    } else {
        r = dispatch(client, id, &follower, err);
    }
    progress_end(&follower.progress);
    if (r < 0)
        return r;
    /* One that came with the end counts too: what it brought was not shown. */
    follower.answer.interrupted = interrupt_signal() != 0;
    *ret_answer = follower.answer;
    return 0;
}

static const char *why_no_more(const struct answer *answer)
{
    if (strcmp(answer->limit, "context") == 0)
        return "the context has no room for more";
    return strcmp(answer->limit, "pool") == 0 ? "this pool allows no more" : "-n allows more";
}

int answer_report(const struct answer *answer)
{
    if (answer->unwritten == -EPIPE)
        return IO_EXIT_PIPE;
    if (answer->interrupted) {
        program_error("interrupted");
        return interrupt_status();
    }
    if (answer->unwritten < 0)
        return EXIT_FAILURE;
    switch (answer->reason) {
    case QUERN_STOP:
        return EXIT_SUCCESS;
    case QUERN_LENGTH:
        program_error("the answer was cut at %s; %s", amount_of(answer->output_tokens, "token").text,
                      why_no_more(answer));
        return EXIT_SUCCESS;
    case QUERN_DEADLINE:
        program_error("the deadline passed");
        return EXIT_FAILURE;
    case QUERN_CANCELLED:
        program_error("the pool cancelled the request because it lost contact with this program");
        return EXIT_FAILURE;
    case QUERN_ERROR:
        program_error("%s%s%s", answer->error, answer->error[0] ? ": " : "", answer->text);
        return EXIT_FAILURE;
    }
    return EXIT_FAILURE;
}
