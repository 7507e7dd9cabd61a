/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_ENGINE_BACKEND_BACKEND_CONTRACT_H
#define TESTS_UNIT_ENGINE_BACKEND_BACKEND_CONTRACT_H

/* The contract of backends with the engine, as tests over a table of functions. A program that links it runs
 * these tests with its own. */

#include <check.h>
#include <stdbool.h>

#include "engine/backend/backend.h"

/* Adds the tests. same_bits: the backend promises equal logits, bit for bit, however rows are batched. */
void backend_contract_add(TCase *tests, const struct backend_ops *of, bool same_bits);

#endif
