/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_BACKEND_CHOICES_KEPT_H
#define ENGINE_BACKEND_CHOICES_KEPT_H

/* Tables of choices in files, in the cache folder `choices` (common/files/cache_folder.h): what one worker
 * has measured, others of the machine take, at the same time or at a later start.
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
 * A key has one of 1,024 places, so the folder does not grow beyond that; a table whose place another key
 * takes is measured again. A file is replaced as a whole. */

#include "engine/backend/choices/choices.h"

/* The bytes of a file, aligned to 8. 0; -EINVAL with what is wrong. */
int kept_parse(const void *bytes, size_t len, struct choices *ret_choices, struct error *err);

/* 0; -ENOENT: there is none; -ESTALE: it is of another key; -EINVAL: it is broken, or not ours. `why` says so
 * in one line. */
int kept_find(const struct choices_key *key, struct choices *ret_choices, struct error *why);

/* Waits until no other process measures for this place, calling `progress` (or NULL) now and then. A lock
 * that kept_unlock takes, which ends with the process in any case; -ETIMEDOUT; -errno: there is no folder for
 * it. */
int kept_lock(const struct choices_key *key, uint32_t timeout_ms, bool (*progress)(void *arg), void *arg);
void kept_unlock(int lock); /* < 0: none */

/* 0 or -errno with a reason that names the file. */
int kept_write(const struct choices *choices, struct error *err);

/* Removes what is in the key's place. */
void kept_forget(const struct choices_key *key);

/* Calls `see` for each table that is kept and sound, in no particular order. */
void kept_list(void (*see)(void *arg, const struct choices *choices), void *arg);

#endif
