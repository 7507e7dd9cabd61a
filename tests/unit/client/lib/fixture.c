/* SPDX-License-Identifier: MIT */
/* See fixture.h. */

#include "tests/unit/client/lib/fixture.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

struct fake_broker *broker;
struct quern *client;

void gather(void *arg, const struct quern_output *output)
{
    struct gathered *g = arg;
    g->id = output->id;
    ck_assert_int_eq(g->ends, 0);
    ck_assert_uint_eq(output->index, (uint64_t)g->n_ids);
    for (size_t i = 0; i < output->n_ids; i++)
        ck_assert_int_eq(output->ids[i], g->n_ids++);
    ck_assert_uint_lt(g->text_len + output->text_len, sizeof g->text);
    memcpy(g->text + g->text_len, output->text, output->text_len);
    g->text_len += output->text_len;
    if (!output->end)
        return;
    g->ends++;
    g->reason = output->end->reason;
    snprintf(g->error, sizeof g->error, "%s", output->end->error);
    snprintf(g->error_text, sizeof g->error_text, "%s", output->end->text);
    g->retry_after_ms = output->end->retry_after_ms;
    g->output_tokens = output->end->output_tokens;
}

void start(struct fake_config config)
{
    char folder[RUNDIR_PATH_MAX + 1];
    struct quern_error err = {0};
    if (config.page_frames == 0)
        config.page_frames = 100;
    broker = fake_broker_new(&config, folder);
    int r = quern_connect(folder, 30000, &client, &err);
    ck_assert_msg(r == 0, "%d: %s", r, err.text);
}

void stop(void)
{
    client = quern_free(client);
    fake_broker_free(broker);
}

struct quern_request a_request(void)
{
    struct quern_request request;
    quern_request_init(&request);
    request.text = "Hi";
    return request;
}

struct quern_id send_request(struct gathered *g)
{
    struct quern_request request = a_request();
    struct quern_error err = {0};
    struct quern_id id;
    int r = quern_generate(client, &request, gather, g, &id, &err);
    ck_assert_msg(r == 0, "%d: %s", r, err.text);
    return id;
}

void generate(struct gathered *g)
{
    struct quern_request request = a_request();
    struct quern_error err = {0};
    int r = quern_generate_wait(client, &request, gather, g, &err);
    ck_assert_msg(r == 0, "%d: %s", r, err.text);
}

int dispatch_until_broken(struct quern_error *err)
{
    int r = 0;
    while (r >= 0)
        r = quern_dispatch(client, 1000, err);
    return r;
}

void check_whole(const struct gathered *g, int n_frames)
{
    char expected[4096] = "";
    for (int i = 0; i < n_frames; i++)
        sprintf(expected + strlen(expected), "<%d>", i);
    ck_assert_int_eq(g->n_ids, 2 * n_frames);
    ck_assert_uint_eq(g->text_len, strlen(expected));
    ck_assert_mem_eq(g->text, expected, g->text_len);
    ck_assert_int_eq(g->ends, 1);
    ck_assert_int_eq(g->reason, QUERN_LENGTH);
    ck_assert_uint_eq(quern_active(client), 0);
}
