/* SPDX-License-Identifier: MIT */
/* Several questions at once over one connection, and how to stop an answer.
 *
 *   cc several.c -o several $(pkg-config --cflags --libs quern)
 *   ./several [--connect ENDPOINT] "What is Quern?" "What is 2 plus 3?" "Tell me about days"
 *
 * The pool answers all of them at once; each answer is printed when it is complete. An answer that grows
 * beyond LONGEST bytes is cancelled, from inside its callback; Ctrl-C cancels those still running. A
 * cancelled request ends like any other: the output so far is kept, and its end gives the reason. */

#include <quern.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST 200

struct answer {
    struct quern *client;
    const char *question;
    struct quern_id id;
    char text[2 * LONGEST + 1];
    size_t len;
    int *failures;
};

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

static void on_output(void *arg, const struct quern_output *output)
{
    struct answer *answer = arg;
    size_t room = sizeof answer->text - 1 - answer->len;
    size_t n = output->text_len < room ? output->text_len : room;
    memcpy(answer->text + answer->len, output->text, n);
    answer->len += n;
    if (output->end) {
        printf("%s\n  %s\n  (%s, %u tokens)\n", answer->question, answer->text,
               quern_reason_name(output->end->reason), output->end->output_tokens);
        if (output->end->reason == QUERN_ERROR) {
            fprintf(stderr, "%s: %s\n", output->end->error, output->end->text);
            ++*answer->failures;
        }
    } else if (answer->len > LONGEST) {
        quern_cancel(answer->client, output->id, NULL);
    }
}

static int ask_all(struct quern *client, char **questions, int n, struct answer *answers, int *failures)
{
    struct quern_error err;
    for (int i = 0; i < n; i++) {
        struct quern_message message = {.role = "user", .content = questions[i]};
        struct quern_request request;
        answers[i] = (struct answer){.client = client, .question = questions[i], .failures = failures};
        quern_request_init(&request);
        request.messages = &message; /* everything is copied */
        request.n_messages = 1;
        if (quern_generate(client, &request, on_output, &answers[i], &answers[i].id, &err) != 0) {
            fprintf(stderr, "%s: %s\n", questions[i], err.text);
            return -1;
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    static char *few[] = {"What is Quern?", "What is 2 plus 3?", "Which day comes after Monday?"};
    struct quern *client;
    struct quern_error err;
    const char *endpoint = NULL; /* the pool of the default run directory */
    if (argc > 2 && strcmp(argv[1], "--connect") == 0) {
        endpoint = argv[2];
        argc -= 2;
        argv += 2;
    }
    char **questions = argc > 1 ? argv + 1 : few;
    int n = argc > 1 ? argc - 1 : 3, failures = 0, cancelled = 0;

    if (quern_connect(endpoint, 5000, &client, &err) != 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    struct answer *answers = calloc((size_t)n, sizeof *answers);
    signal(SIGINT, on_interrupt);
    bool asked = answers && ask_all(client, questions, n, answers, &failures) == 0;
    while (asked && quern_active(client) > 0) {
        /* Callbacks are made in here, and nowhere else. */
        if (quern_dispatch(client, 1000, &err) < 0)
            fprintf(stderr, "%s\n", err.text); /* every request has got its end, an error */
        for (int i = 0; i < n && interrupted && !cancelled; i++)
            quern_cancel(client, answers[i].id, NULL); /* of one that has ended: -ENOENT, and no harm */
        cancelled = interrupted;
    }
    quern_free(client);
    free(answers);
    return !asked || failures > 0;
}
