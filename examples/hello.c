/* SPDX-License-Identifier: MIT */
/* libquern in one page: send a question to a pool and print the answer as it arrives.
 *
 *   cc hello.c -o hello $(pkg-config --cflags --libs quern)
 *   ./hello [--connect ENDPOINT] "What is Quern?"
 *
 * with a pool running: quern serve MODEL.gguf. ENDPOINT is ipc://PATH, tcp://HOST:PORT or a run directory. */

#include <quern.h>
#include <stdio.h>
#include <string.h>

/* Called for each piece of the output, and once more with its end. */
static void on_output(void *arg, const struct quern_output *output)
{
    int *failed = arg;
    fwrite(output->text, 1, output->text_len, stdout);
    fflush(stdout);
    if (!output->end)
        return;
    printf("\n");
    *failed = output->end->reason == QUERN_ERROR;
    if (*failed)
        fprintf(stderr, "%s: %s\n", output->end->error, output->end->text);
    else
        fprintf(stderr, "%u tokens, ended by %s; the same again with seed %llu\n", output->end->output_tokens,
                quern_reason_name(output->end->reason), (unsigned long long)output->end->seed);
}

int main(int argc, char **argv)
{
    struct quern *client;
    struct quern_error err;
    struct quern_request request;
    struct quern_message question = {.role = "user", .content = "What is Quern?"};
    const char *endpoint = NULL; /* the pool of the default run directory */
    int failed = 0;

    if (argc > 2 && strcmp(argv[1], "--connect") == 0) {
        endpoint = argv[2];
        argc -= 2;
        argv += 2;
    }
    if (argc > 1)
        question.content = argv[1];
    if (quern_connect(endpoint, 5000, &client, &err) != 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    /* A conversation, which the model's chat template makes a prompt of. To a model without one, raw text is
     * all that can be sent: request.text. */
    quern_request_init(&request);
    request.messages = &question;
    request.n_messages = 1;
    request.max_tokens = 64;
    if (quern_generate_wait(client, &request, on_output, &failed, &err) != 0) {
        fprintf(stderr, "%s\n", err.text);
        failed = 1;
    }
    quern_free(client);
    return failed;
}
