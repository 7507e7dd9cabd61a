/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_BACKEND_CHOICES_KEPT_H
#define ENGINE_BACKEND_CHOICES_KEPT_H

/* Tables of choices in files, in the cache folder `choices` (common/files/cache_folder.h): one worker
 * measures, and the others of the machine use the result, at the same time or after a later start.
 *
 *     r = kept_find(&key, &choices, &why);
 *     if (r < 0) {
 *         int lock = kept_lock(&key, …);      one measures, the others wait for it
 *         if (lock < 0 || kept_find(&key, &choices, &why) < 0) {
 *             measure; kept_write(&choices);
 *         }
 *         kept_unlock(lock);
 *     }
 *
 * A key has one of 1,024 places, which bounds the folder's size; if another key takes a table's place, the
 * table is measured again when needed. Files are replaced atomically. */

#include "engine/backend/choices/choices.h"

/* The bytes of a file, aligned to 8. 0; -EINVAL with what is wrong. */
int kept_parse(const void *bytes, size_t len, struct choices *ret_choices, struct error *err);

/* 0; -ENOENT: no table; -ESTALE: a table of another key; -EINVAL: broken, or not a table. `why` says so in
 * one line. */
int kept_find(const struct choices_key *key, struct choices *ret_choices, struct error *why);

/* Waits until no other process measures for this place, calling `progress` (or NULL) now and then. Returns a
 * lock for kept_unlock, which is also released when the process ends; -ETIMEDOUT; -errno: no folder for
 * it. */
int kept_lock(const struct choices_key *key, uint32_t timeout_ms, bool (*progress)(void *arg), void *arg);
void kept_unlock(int lock); /* < 0: none */

/* 0 or -errno with a reason that names the file. */
int kept_write(const struct choices *choices, struct error *err);

/* Removes the file in the key's place. */
void kept_forget(const struct choices_key *key);

/* Calls `see` for each valid table in the folder, in no particular order. */
void kept_list(void (*see)(void *arg, const struct choices *choices), void *arg);

#endif
