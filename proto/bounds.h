/* SPDX-License-Identifier: MIT */
#ifndef PROTO_BOUNDS_H
#define PROTO_BOUNDS_H

/* Bounds of messages and their fields. Clients learn them from hello_ok.limits; a message above its bound
 * closes the connection it came on. */

#define PROTO_MAX_REQUEST_BYTES (4u << 20) /* one message from a client */
#define PROTO_MAX_TAKEN         4096       /* ids in one ping */
/* Ids of a prompt: as many as fit the pool's largest context, between these two bounds; a worker then checks
 * the prompt against its own context. A whole generate, in one message or in parts, may have
 * PROTO_PROMPT_ID_BYTES for each id: an id takes at most five bytes, and a token of text about four. See
 * proto_limits. */
#define PROTO_LEAST_PROMPT_IDS   (1u << 19)
#define PROTO_MAX_PROMPT_IDS     (1u << 22)
#define PROTO_PROMPT_ID_BYTES    8
#define PROTO_MAX_GENERATE_BYTES (PROTO_PROMPT_ID_BYTES * PROTO_MAX_PROMPT_IDS)
/* One message to a worker: an assign holds a whole request and what the broker adds. */
#define PROTO_MAX_WORKER_BYTES (PROTO_MAX_GENERATE_BYTES + 5 * PROTO_MAX_PROMPT_IDS + (64u << 10))
/* One message from a worker, or to a client. */
#define PROTO_MAX_ANSWER_BYTES (PROTO_MAX_REQUEST_BYTES + 5 * PROTO_MAX_QUESTION_IDS + (64u << 10))
#define PROTO_MAX_QUESTION_IDS (1u << 19) /* of a detokenize; with pieces, of a tokenize_ok */
/* One stream frame; and all frames of a replay's page. */
#define PROTO_MAX_FRAME_BYTES (256u << 10)
/* A whole replay_ok: its frames and their encoding. */
#define PROTO_MAX_PAGE_BYTES    (PROTO_MAX_FRAME_BYTES + (128u << 10))
#define PROTO_MAX_MESSAGES      4096 /* chat messages of one prompt */
#define PROTO_MAX_LOST          2    /* workers that may die with a request, which still moves on */
#define PROTO_MAX_STOPS         16   /* stop strings of one request */
#define PROTO_MAX_STOP_BYTES    256  /* bytes of one stop string */
#define PROTO_MAX_STOP_IDS      64
#define PROTO_MAX_BAD_WORDS     128
#define PROTO_MAX_DRY_BREAKERS  32
#define PROTO_MAX_WORD_BYTES    128 /* of a bad word, a breaker, a text with a bias */
#define PROTO_MAX_GRAMMAR_BYTES 262144
#define PROTO_MAX_LOGPROBS      20    /* alternatives per token */
#define PROTO_MAX_PIECE_BYTES   256   /* bytes of one token in a frame; longer ones are cut */
#define PROTO_MAX_FEATURES      32    /* of hello, register, require */
#define PROTO_MAX_NAME_BYTES    128   /* model, worker, feature, device, salt, tenant */
#define PROTO_MAX_FLEET_SECRET  128   /* bytes */
#define PROTO_MAX_PIECES        8192  /* hashes of pieces in one message; added and dropped each */
#define PROTO_MAX_SPACE_BYTES   40    /* names the requests that share prefixes; set by the broker */
#define PROTO_MAX_ALIASES       8     /* other names of a model */
#define PROTO_MAX_DIALECT_BYTES 8192  /* how a model calls tools and thinks */
#define PROTO_MAX_TEXT_BYTES    1024  /* an error text */
#define PROTO_MAX_FRAME_IDS     4096  /* ids of one frame */
#define PROTO_MAX_PAGE_FRAMES   16384 /* frames of one page of a replay */
#define PROTO_MAX_WORKERS       1024  /* of one pool, in hello_ok and status_ok */
#define PROTO_MAX_EMBEDDING     32768 /* numbers of one embedding */
#define PROTO_MAX_CREDITS       1024  /* requests in one credit */
#define PROTO_MAX_RATE          1000000000000000ull /* requests or tokens per minute or day */
#define PROTO_MAX_TENANTS       4096                /* in one tenants or tenants_ok */
#define PROTO_MAX_USED          1e18                /* requests or tokens that a tenant has used recently */
#define PROTO_MAX_TRACE         1024                /* records of one trace_ok */
#define PROTO_MAX_KERNELS       128                 /* of one profile_ok */
#define PROTO_MAX_PROFILE       1000                /* steps of one profile */
#define PROTO_MAX_GIVEN         16                  /* kinds of memory of one trim_ok */
#define PROTO_MAX_REQUESTS      1024                /* requests of one status_ok */

#endif
