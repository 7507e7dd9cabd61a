/* SPDX-License-Identifier: MIT */
#ifndef WORKER_PUBLISH_H
#define WORKER_PUBLISH_H

/* Turns output of requests into frames: collected per request, flushed to the stream. */

#include <stdbool.h>
#include <stdint.h>

#include "common/bytes.h"
#include "proto/message.h"
#include "worker/prompt_digest.h"
#include "engine/engine.h"
#include "worker/link/link.h"
#include "worker/link/stream.h"
#include "text/tokenizer/tokenizer.h"

/* The output of one request: embedded in the request, and zeroed except for the fields below the blank
 * line. */
struct output {
    /* collected, and not yet in a frame; first the members that every token touches */
    struct ids ids;
    struct buffer text;
    uint64_t flushed_ns; /* when the last frame was sent */
    bool is_pending;
    uint32_t width;                             /* of logprobs */
    struct buffer logprobs;                     /* of struct token_logprob, [ids.len][width] */
    struct buffer embedding;                    /* of float 32, little-endian; sent with the end */
    uint64_t seq, off;                          /* of the first of these ids and bytes */
    struct output *next_pending, *prev_pending; /* utlist of outputs that have something to flush */

    uint8_t topic[PROTO_TOPIC_BYTES]; /* session ‖ id */
    struct epoch epoch;
    double queue_ms;
    bool pieces;       /* with logprobs: also the bytes of their ids */
    bool tells_prompt; /* its next frame contains this: */
    uint8_t prompt_digest[PROMPT_DIGEST_BYTES];
    uint64_t reading_ns; /* when the progress of its prompt was last reported */
};

struct publisher {
    struct stream *stream; /* for frames */
    struct link *link;     /* for `finished` */
    const struct tokenizer *tokenizer;
    struct buffer pieces;   /* of struct bytes: those of a frame; reused */
    uint64_t frame_ns;      /* tokens made within this time share a frame */
    struct output *pending; /* utlist */
    uint32_t n_pending;     /* their number */
    uint64_t due_ns;        /* when the first of them must be flushed, or earlier */
};

/* The stream, the link and the tokenizer must outlive it. The tokenizer may be NULL if no output has
 * pieces. */
void publisher_init(struct publisher *publisher, struct stream *stream, struct link *link,
                    const struct tokenizer *tokenizer, uint32_t frame_us);
void publisher_deinit(struct publisher *publisher);

/* Collects the output of an event. The caller publishes its end, if it has one. */
void publish_event(struct publisher *publisher, struct output *output, const struct engine_event *event);

/* Reports how much of the prompt is read: at once, unless it is not all and the last report was a moment ago.
 * Reports may be lost; the next one makes up for it. */
void publish_reading(struct publisher *publisher, struct output *output,
                     const struct engine_reading *reading);

/* Sends the remaining output of a request with its end, on both sockets. */
void publish_end(struct publisher *publisher, struct output *output, const struct ending *ending);

/* Sends the collected output of a request, if there is any. */
void publish_now(struct publisher *publisher, struct output *output);

/* Sends pending output: all of it after a step that took as long as output may wait, else the output that has
 * waited that long. Output may wait for frame_ns, and for longer while the broker is behind or much is
 * pending. */
void publish_due(struct publisher *publisher, uint64_t now, uint64_t step_ns);

/* Drops unsent output and frees its memory; the request publishes nothing more. */
void publish_drop(struct publisher *publisher, struct output *output);

#endif
