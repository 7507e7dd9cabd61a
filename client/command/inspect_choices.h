/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_INSPECT_CHOICES_H
#define CLIENT_COMMAND_INSPECT_CHOICES_H

/* The kept choices of a GPU (engine/backend/choices/kept.h), for `quern inspect --device`. */

#include <jansson.h>

/* Adds "choices" to the device, an array of the tables that were measured on devices of that name, if there
 * are any. If memory runs out, tables are left out. */
void inspect_add_choices(json_t *device, const char *name);

/* Prints the added tables. */
void inspect_print_choices(const json_t *device);

#endif
