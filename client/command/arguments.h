/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_ARGUMENTS_H
#define CLIENT_COMMAND_ARGUMENTS_H

/* Command-line parsing shared by verbs. Errors end the program with a reason or the usage, and status 2. */

#include <argp.h>
#include <stdint.h>

#include "common/bytes.h"
#include "engine/backend/backend.h"

/* A number within bounds; the reason names the option. */
uint64_t argument_number(struct argp_state *state, const char *option, const char *text, uint64_t min,
                         uint64_t max);

/* The ids of --tokens: at least one number, separated by commas; blanks may follow a comma. They replace the
 * contents of `ids`; the caller frees them. The list is modified. */
void argument_ids(struct argp_state *state, char *list, struct ids *ids);

/* The type named by --kv-type. */
enum backend_kv_type argument_kv_type(struct argp_state *state, const char *text);

/* The number of rows given by --cublas. */
uint32_t argument_library_rows(struct argp_state *state, const char *text);

/* The last part of a parser whose verb takes n arguments: stores them, and ends the program with the usage if
 * there are not n. 0, or ARGP_ERR_UNKNOWN for any other key. */
int argument_words(int key, char *arg, struct argp_state *state, const char **words, unsigned n);

/* The same for one argument, MODEL. */
int argument_model(int key, char *arg, struct argp_state *state, const char **ret_model);

/* Rejects the name of a model file where a prompt is expected (prompt_names_model). */
void argument_refuse_model(struct argp_state *state, const char *word);

#endif
