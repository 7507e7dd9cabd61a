/* SPDX-License-Identifier: MIT */
#ifndef WORKER_PUBLISH_H
#define WORKER_PUBLISH_H

/* Output of requests into frames: collected per request, flushed to the stream. */

#include <stdbool.h>
#include <stdint.h>

#include "common/bytes.h"
#include "proto/message.h"
#include "worker/prompt_digest.h"
#include "engine/engine.h"
#include "worker/link/link.h"
#include "worker/link/stream.h"
#include "text/tokenizer/tokenizer.h"

/* The output of one request: embedded in the request, and zeroed except for the fields below the blank line.
 */
struct output {
    /* made, and not yet in a frame; first what every token touches */
    struct ids ids;
    struct buffer text;
    uint64_t flushed_ns; /* when the last frame went */
    bool is_pending;
    uint32_t width;                             /* of logprobs */
    struct buffer logprobs;                     /* of struct token_logprob, [ids.len][width] */
    struct buffer embedding;                    /* of float 32, little-endian; goes with the end */
    uint64_t seq, off;                          /* of the first id and byte of them */
    struct output *next_pending, *prev_pending; /* utlist of those with something to flush */

    uint8_t topic[PROTO_TOPIC_BYTES]; /* session ‖ id */
    struct epoch epoch;
    double queue_ms;
    bool pieces;       /* with logprobs: the bytes of their ids too */
    bool tells_prompt; /* its next frame says this: */
    uint8_t prompt_digest[PROMPT_DIGEST_BYTES];
    uint64_t reading_ns; /* when it was told last how much of the prompt is read */
};

struct publisher {
    struct stream *stream; /* frames go there */
    struct link *link;     /* and `finished` there */
    const struct tokenizer *tokenizer;
    struct buffer pieces;   /* of struct bytes: those of one frame; reused */
    uint64_t frame_ns;      /* tokens made within this time share a frame */
    struct output *pending; /* utlist */
    uint32_t n_pending;     /* of them */
    uint64_t due_ns;        /* when the first of them is to be flushed, or before */
};

/* The stream, the link and the tokenizer outlive it. The tokenizer may be NULL if no output has pieces. */
void publisher_init(struct publisher *publisher, struct stream *stream, struct link *link,
                    const struct tokenizer *tokenizer, uint32_t frame_us);
void publisher_deinit(struct publisher *publisher);

/* Collects the output of an event. The caller publishes its end, if there is one. */
void publish_event(struct publisher *publisher, struct output *output, const struct engine_event *event);

/* Tells how much of the prompt is read: at once, unless that was told a moment ago and it is not all. Where
 * it does not get through, the next one does. */
void publish_reading(struct publisher *publisher, struct output *output,
                     const struct engine_reading *reading);

/* Sends what is left of a request with its end, on both sockets. */
void publish_end(struct publisher *publisher, struct output *output, const struct ending *ending);

/* Sends what is gathered of a request, if anything is. */
void publish_now(struct publisher *publisher, struct output *output);

/* Sends pending output: all of it after a step as long as output may wait, else what has waited that long.
 * Output may wait for frame_ns, and for longer while the broker is behind or much is pending. */
void publish_due(struct publisher *publisher, uint64_t now, uint64_t step_ns);

/* Drops unsent output and frees its memory; the request publishes nothing more. */
void publish_drop(struct publisher *publisher, struct output *output);

#endif
