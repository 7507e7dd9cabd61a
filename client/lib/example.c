/* SPDX-License-Identifier: MIT */
/* libquern in one page: ask a pool for an answer and print it as it comes.
 *
 *   cc example.c $(pkg-config --cflags --libs quern) && ./a.out "Once upon a time"
 *
 * with a pool running: quern serve MODEL.gguf */

#include <quern.h>
#include <stdio.h>

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
    int failed = 0;

    if (quern_connect(NULL, 5000, &client, &err) != 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    quern_request_init(&request);
    request.text = argc > 1 ? argv[1] : "Once upon a time";
    request.max_tokens = 64;
    if (quern_generate_wait(client, &request, on_output, &failed, &err) != 0) {
        fprintf(stderr, "%s\n", err.text);
        failed = 1;
    }
    quern_free(client);
    return failed;
}
