/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_JSON_JSON_MEMORY_H
#define GATEWAY_JSON_JSON_MEMORY_H

/* The memory for jansson's tree of one body: a region of a fixed size that is freed all at once.
 *
 *     json_memory_begin(&memory);
 *     … json_in_parse, json_in_take: everything that jansson allocates on this thread is in the region …
 *     json_memory_end(&memory);         nothing of it may be used from here on
 *
 * A tree can be a hundred times as large as its text ("[{},{},…]"), so its bytes are bounded, not only those
 * of the text. Outside such a pair of calls, and on other threads, jansson uses malloc. */

#include <stdbool.h>
#include <stddef.h>

struct json_memory {
    char *base;   /* [size], mapped; NULL: not set up */
    size_t size;  /* bytes that a tree may have */
    size_t used;  /* bytes in use */
    bool limited; /* a tree was too large since json_memory_begin */
};

/* Maps the region, whose pages cost nothing before they are used. 0, or -ENOMEM. */
int json_memory_init(struct json_memory *memory, size_t size);
void json_memory_deinit(struct json_memory *memory);

/* From now on jansson uses the region on this thread; the region is empty. Does not nest. */
void json_memory_begin(struct json_memory *memory);

/* Stops using the region, and returns all but a few of its pages to the system. */
void json_memory_end(struct json_memory *memory);

/* Whether a tree failed because the region in use on this thread was too small; false if none is in use. */
bool json_memory_limited(void);

#endif
