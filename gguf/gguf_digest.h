/* SPDX-License-Identifier: MIT */
#ifndef GGUF_GGUF_DIGEST_H
#define GGUF_GGUF_DIGEST_H

/* The fingerprint of a model. */

#include <stdbool.h>
#include <stdint.h>

#include "gguf/gguf.h"

/* A fingerprint of every byte of the model's files (gguf_digest.c): pools treat equal digests as equal
 * models. Reads them completely, on n_threads threads, and returns their pages to the system. `progress` is
 * called now and then by the calling thread; its result is ignored, and it may be NULL. 0 or -ENOMEM. */
int gguf_digest(const struct gguf *gguf, uint32_t n_threads, bool (*progress)(void *arg), void *arg,
                uint8_t ret_digest[16]);

#endif
