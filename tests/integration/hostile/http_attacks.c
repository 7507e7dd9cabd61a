/* SPDX-License-Identifier: MIT */
/* The attacks by HTTP. Each makes what it sends before it begins, so that it costs the machine little more
 * than the sending, and keeps its numbers in one place: how many connections, with what, for how long. */

#include "tests/integration/hostile/http.h"

#include "tests/integration/hostile/bodies.h"
#include "tests/integration/hostile/gateway.h"

#define KEY GATEWAY_HOSTILE_KEY

enum {
    MOST_BODY = 8000000,   /* the gateway takes 8,192 KiB */
    MOST_PROMPT = 3900000, /* the pool takes 4 MiB */
    MOST_INPUTS = 2048,    /* of a request for embeddings */
    MOST_TEXT = 1000000,   /* of which a worker tells the tokens in one message */
    MOST_IDS = 500000,     /* that it makes a text of */
    PIPELINED = 300,
    NAP_MS = 2,
    SOCKETS = 4000
};

static void run(const struct attack_target *target, struct crowd crowd)
{
    crowd_run(&crowd, target->port, target->tally);
}

/* Many connections that send the same, read what comes, and come again. */
static void flood(const struct attack_target *target, unsigned n, const struct crowd_request *requests,
                  size_t n_requests)
{
    run(target, (struct crowd){.n = n,
                               .requests = requests,
                               .n_requests = n_requests,
                               .send_rate = CROWD_ALL,
                               .read_rate = CROWD_ALL,
                               .nap_ms = NAP_MS});
}

/* ---- what is large ---- */

/* 2,048 inputs, each of 1,000 ids. */
static struct crowd_request many_inputs(void)
{
    struct body input = body_repeat("[", "1", 1000, true, "]");
    return request_post("/v1/embeddings", KEY,
                        body_repeat("{\"input\":[", input.text, MOST_INPUTS, true, "]}"));
}

void attack_embeddings(const struct attack_target *target)
{
    const struct crowd_request request = many_inputs();
    flood(target, 60, &request, 1);
}

void attack_embeddings_leaving(const struct attack_target *target)
{
    const struct crowd_request request = many_inputs();
    run(target, (struct crowd){.n = 60,
                               .requests = &request,
                               .n_requests = 1,
                               .send_rate = CROWD_ALL,
                               .read_rate = CROWD_ALL,
                               .leave_ms = 50,
                               .nap_ms = NAP_MS});
}

void attack_choices(const struct attack_target *target)
{
    const struct crowd_request request = request_post(
        "/v1/completions", KEY,
        body_repeat("{\"n\":128,\"max_tokens\":5,\"prompt\":\"", "a", MOST_PROMPT, false, "\"}"));
    flood(target, 6, &request, 1);
}

void attack_bodies(const struct attack_target *target)
{
    struct crowd_request requests[BODY_KINDS];
    for (int i = 0; i < BODY_KINDS; i++)
        requests[i] = request_post("/v1/completions", KEY, body_bad((enum body_kind)i, MOST_BODY));
    flood(target, 48, requests, BODY_KINDS);
}

static void attack_by_body(const struct attack_target *target, unsigned n, enum body_kind kind)
{
    const struct crowd_request request = request_post("/v1/completions", KEY, body_bad(kind, MOST_BODY));
    flood(target, n, &request, 1);
}

void attack_objects(const struct attack_target *target)
{
    attack_by_body(target, 1, BODY_OBJECTS);
}

void attack_broken(const struct attack_target *target)
{
    attack_by_body(target, 48, BODY_BROKEN);
}

void attack_types(const struct attack_target *target)
{
    attack_by_body(target, 48, BODY_TYPES);
}

void attack_unknown(const struct attack_target *target)
{
    attack_by_body(target, 48, BODY_UNKNOWN);
}

void attack_duplicates(const struct attack_target *target)
{
    attack_by_body(target, 48, BODY_DUPLICATES);
}

void attack_nesting(const struct attack_target *target)
{
    attack_by_body(target, 48, BODY_NESTING);
}

void attack_escapes(const struct attack_target *target)
{
    attack_by_body(target, 48, BODY_ESCAPES);
}

void attack_numbers(const struct attack_target *target)
{
    attack_by_body(target, 48, BODY_NUMBERS);
}

void attack_digits(const struct attack_target *target)
{
    attack_by_body(target, 48, BODY_DIGITS);
}

static struct crowd_request text_of(size_t size)
{
    return request_post("/tokenize", KEY, body_repeat("{\"content\":\"", "a", size, false, "\"}"));
}

/* One that is answered, two that are not, and the way back. */
void attack_texts(const struct attack_target *target)
{
    const struct crowd_request requests[] = {
        text_of(MOST_TEXT), text_of(MOST_PROMPT), text_of(MOST_BODY),
        request_post("/detokenize", KEY, body_repeat("{\"tokens\":[", "97", MOST_IDS, true, "]}"))};
    flood(target, 24, requests, sizeof requests / sizeof *requests);
}

/* A body that begins with the model's name. */
static struct body of_model(const struct attack_target *target, const char *begin, const char *unit, size_t n,
                            bool comma, const char *end)
{
    struct crowd_request begun = request_head("{\"model\":\"%s\",%s", target->model, begin);
    return body_repeat(begun.head, unit, n, comma, end);
}

/* Large ones by the interfaces of Anthropic and Ollama, well and broken. */
void attack_families(const struct attack_target *target)
{
    static const char turn[] = "\"max_tokens\":5,\"messages\":[{\"role\":\"user\",\"content\":\"",
                      chat[] = "\"messages\":[{\"role\":\"user\",\"content\":\"",
                      turns[] = "\"max_tokens\":5,\"messages\":[",
                      one[] = "{\"role\":\"user\",\"content\":\"a\"}";
    struct body text = body_repeat("\"", "on and ", 100, false, "\"");
    const struct crowd_request requests[] = {
        request_post("/v1/messages", KEY, of_model(target, turn, "a", MOST_PROMPT, false, "\"}]}")),
        request_post("/v1/messages", KEY, of_model(target, turns, one, MOST_BODY / sizeof one, true, "]}")),
        request_post("/v1/messages", KEY, body_bad(BODY_OBJECTS, MOST_BODY)),
        request_post("/api/chat", KEY, of_model(target, chat, "a", MOST_PROMPT, false, "\"}]}")),
        request_post("/api/generate", KEY, of_model(target, "\"prompt\":\"", "a", MOST_PROMPT, false, "\"}")),
        request_post("/api/generate", KEY, body_bad(BODY_UNKNOWN, MOST_BODY)),
        request_post("/api/embed", KEY, of_model(target, "\"input\":[", text.text, MOST_INPUTS, true, "]}"))};
    flood(target, 28, requests, sizeof requests / sizeof *requests);
}

/* Bodies that are refused, by their size or their key, and go on all the same. */
void attack_too_large(const struct attack_target *target)
{
    static const char post[] =
        "POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer " KEY;
    struct body bytes = body_repeat("", "a", 1 << 20, false, ""),
                chunk = body_repeat("100000\r\n", "a", 1 << 20, false, "\r\n");
    struct crowd_request requests[] = {
        request_head("%s\r\nContent-Length: 60000000\r\n\r\n", post),
        request_head("%s\r\nContent-Length: 1000000000000\r\n\r\n", post),
        request_head("%s\r\nTransfer-Encoding: chunked\r\n\r\n", post),
        request_post("/v1/completions", "not-the-key", body_repeat("", "a", MOST_BODY, false, ""))};
    for (int i = 0; i < 3; i++) {
        requests[i].body = i < 2 ? bytes.text : chunk.text;
        requests[i].body_len = i < 2 ? bytes.len : chunk.len;
        requests[i].endless = true;
    }
    flood(target, 24, requests, sizeof requests / sizeof *requests);
}

/* A line of a megabyte, and 100,000 lines. */
void attack_large_heads(const struct attack_target *target)
{
    const struct body path = body_repeat("GET /", "a", 1000000, false, " HTTP/1.1\r\n\r\n"),
                      lines = body_repeat("GET / HTTP/1.1\r\n", "X: y\r\n", 100000, false, "\r\n");
    const struct crowd_request requests[] = {{.head = path.text, .head_len = path.len},
                                             {.head = lines.text, .head_len = lines.len}};
    flood(target, 30, requests, sizeof requests / sizeof *requests);
}

/* ---- what is many ---- */

/* 800 choices at once. */
void attack_shares(const struct attack_target *target)
{
    const struct crowd_request request =
        request_post("/v1/completions", KEY,
                     body_repeat("{\"n\":32,\"max_tokens\":400,\"prompt\":\"", "a", 1, false, "\"}"));
    flood(target, 25, &request, 1);
}

static void be_silent(const struct attack_target *target, unsigned addresses)
{
    const struct crowd_request nothing = {.head = ""};
    run(target, (struct crowd){.n = SOCKETS,
                               .addresses = addresses,
                               .requests = &nothing,
                               .n_requests = 1,
                               .read_rate = CROWD_ALL,
                               .nap_ms = NAP_MS});
}

void attack_silent_sockets(const struct attack_target *target)
{
    be_silent(target, 1);
}

void attack_silent_crowd(const struct attack_target *target)
{
    be_silent(target, 250);
}

void attack_half_heads(const struct attack_target *target)
{
    const struct crowd_request head =
        request_head("POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Filler: %02000d", 0);
    run(target, (struct crowd){.n = 2500,
                               .requests = &head,
                               .n_requests = 1,
                               .send_rate = 5,
                               .read_rate = CROWD_ALL,
                               .nap_ms = NAP_MS});
}

void attack_trickles(const struct attack_target *target)
{
    const struct crowd_request request =
        request_post("/v1/completions", KEY, body_repeat("{\"prompt\":\"", "a", 10000, false, "\"}"));
    run(target, (struct crowd){.n = 400,
                               .requests = &request,
                               .n_requests = 1,
                               .send_rate = 40,
                               .read_rate = CROWD_ALL,
                               .nap_ms = NAP_MS});
}

/* The same request over and over, the last of which ends the connection. */
static struct crowd_request pipeline(const char *request, const char *last)
{
    struct body all = body_repeat("", request, PIPELINED, false, last);
    return (struct crowd_request){.head = all.text, .head_len = all.len};
}

#define AS_MALLORY " HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer " KEY "\r\n"
#define LAST       "GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"

void attack_pipelines(const struct attack_target *target)
{
    const struct crowd_request requests[] = {
        pipeline("GET /v1/models" AS_MALLORY "\r\n", LAST), pipeline("GET /metrics" AS_MALLORY "\r\n", LAST),
        pipeline("POST /v1/completions" AS_MALLORY
                 "Content-Length: 31\r\n\r\n{\"prompt\":\"a\",\"max_tokens\":  1}",
                 LAST)};
    flood(target, 30, requests, sizeof requests / sizeof *requests);
}

/* Without a key: what is not there, what takes another method, and what needs one. */
void attack_not_found(const struct attack_target *target)
{
    const struct crowd_request requests[] = {
        pipeline("GET /nothing HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", LAST),
        pipeline("GET /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", LAST),
        pipeline("GET /status HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", LAST)};
    flood(target, 30, requests, sizeof requests / sizeof *requests);
}

/* ---- what is not read ---- */

/* One that is refused, for there is too much under way, comes back after a while. */
static void read_at(const struct attack_target *target, unsigned n, struct crowd_request request, long rate)
{
    run(target, (struct crowd){.n = n,
                               .requests = &request,
                               .n_requests = 1,
                               .send_rate = CROWD_ALL,
                               .read_rate = rate,
                               .nap_ms = 100});
}

static struct crowd_request completion(const char *parameters)
{
    return request_post("/v1/completions", KEY, body_repeat("{\"prompt\":\"a\",", parameters, 1, false, "}"));
}

/* Of about 1 MB. */
void attack_unread_answers(const struct attack_target *target)
{
    read_at(target, 200, completion("\"n\":16,\"max_tokens\":300,\"logprobs\":20"), 0);
}

/* Of 2 MB, which take a question of 1 MB and a tenth of a second. */
void attack_unread_texts(const struct attack_target *target)
{
    read_at(target, 200, text_of(MOST_TEXT), 0);
}

/* Of 7 MB, which take a question of 8 kB and less than a tenth of a second. */
void attack_unread_vectors(const struct attack_target *target)
{
    read_at(target, 200,
            request_post("/v1/embeddings", KEY, body_repeat("{\"input\":[", "[1]", MOST_INPUTS, true, "]}")),
            0);
}

/* Few enough to leave the pool room. */
void attack_unread_streams(const struct attack_target *target)
{
    read_at(target, 25, completion("\"n\":4,\"max_tokens\":1500,\"logprobs\":5,\"stream\":true"), 0);
}

void attack_slow_streams(const struct attack_target *target)
{
    read_at(target, 100, completion("\"max_tokens\":1500,\"logprobs\":5,\"stream\":true"), 500);
}

void attack_hang_ups(const struct attack_target *target)
{
    const struct crowd_request requests[] = {completion("\"n\":2,\"max_tokens\":500,\"stream\":true"),
                                             completion("\"n\":2,\"max_tokens\":500")};
    run(target, (struct crowd){.n = 40,
                               .requests = requests,
                               .n_requests = 2,
                               .send_rate = CROWD_ALL,
                               .read_rate = CROWD_ALL,
                               .leave_ms = 50,
                               .nap_ms = NAP_MS});
}
