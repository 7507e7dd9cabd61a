/* SPDX-License-Identifier: MIT */
/* The numbers of a request, as data: which member of quern.h's flat struct is which of the protocol.
 *
 * Bounds, defaults and help are those of the protocol's table (proto/fields.c), found by name. The rows of
 * sampling parameters come from their list (common/sampling.h), so none can be forgotten here: a parameter
 * without a member in quern.h does not compile, nor does one of another type. */

#include "client/lib/requests/parameters.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/lib/core/state.h"
#include "common/number.h"
#include "common/sampling.h"
#include "proto/fields.h"

struct parameter {
    const char *name;
    uint32_t in_request, in_generation; /* offsets */
    uint32_t size;
};

#define SAME_TYPE(a, b)    sizeof(char[__builtin_types_compatible_p(__typeof__(a), __typeof__(b)) ? 1 : -1])
#define REQUEST(member)    (((struct quern_request *)0)->member)
#define GENERATION(member) (((struct generation *)0)->member)
#define PARAMETER(member, inner)                                                                             \
    {.name = #member,                                                                                        \
     .in_request = offsetof(struct quern_request, member),                                                   \
     .in_generation = offsetof(struct generation, inner),                                                    \
     .size = sizeof REQUEST(member) * SAME_TYPE(REQUEST(member), GENERATION(inner))},
#define SAMPLING_PARAMETER(name, ...) PARAMETER(name, sampling.name)

/* clang-format off */
static const struct parameter parameters[] = {
    PARAMETER(embed, embed)
    PARAMETER(continue_turn, prompt.continue_turn)
    PARAMETER(marks, marks)
    PARAMETER(max_tokens, max_tokens)
    PARAMETER(fit_context, fit_context)
    SAMPLING_PARAMETERS(SAMPLING_PARAMETER, SAMPLING_PARAMETER)
    PARAMETER(seed, sampling.seed)
    PARAMETER(ignore_eos, ignore_eos)
    PARAMETER(min_tokens, min_tokens)
    PARAMETER(thinking_budget, prompt.thinking_budget)
    PARAMETER(logprobs, logprobs)
    PARAMETER(pieces, pieces)
    PARAMETER(priority, priority)
    PARAMETER(deadline_ms, deadline_ms)
    PARAMETER(keep_s, keep_s)
    PARAMETER(cache_prompt, cache_prompt)
    PARAMETER(rpm, rates.rpm)
    PARAMETER(tpm, rates.tpm)
    PARAMETER(rpd, rates.rpd)
    PARAMETER(tpd, rates.tpd)
    PARAMETER(part, part)
    PARAMETER(progress, progress)
    PARAMETER(off, off)
    PARAMETER(lost, lost)
};
/* clang-format on */
#define N_PARAMETERS (sizeof parameters / sizeof *parameters)

static const struct field *field_of(const struct parameter *parameter)
{
    const struct field *field = field_find(field_table_of(MESSAGE_GENERATE), parameter->name);
    assert(field);
    return field;
}

void parameters_to_generation(const struct quern_request *request, struct generation *generation)
{
    for (const struct parameter *p = parameters; p < parameters + N_PARAMETERS; p++)
        memcpy((char *)generation + p->in_generation, (const char *)request + p->in_request, p->size);
}

void parameters_from_generation(const struct generation *generation, struct quern_request *request)
{
    for (const struct parameter *p = parameters; p < parameters + N_PARAMETERS; p++)
        memcpy((char *)request + p->in_request, (const char *)generation + p->in_generation, p->size);
}

void quern_request_init(struct quern_request *request)
{
    struct generation defaults;
    generation_defaults(&defaults);
    *request = (struct quern_request){0};
    parameters_from_generation(&defaults, request);
    request->special = true; /* the protocol's own default is false, for clients of old */
}

bool quern_parameter(size_t i, struct quern_parameter *ret_parameter)
{
    if (i >= N_PARAMETERS)
        return false;
    const struct field *field = field_of(&parameters[i]);
    *ret_parameter = (struct quern_parameter){.name = field->key,
                                              .letter = field->letter,
                                              .help = field->help,
                                              .initial = field->initial,
                                              .of_model = field->flags & FIELD_LEFT};
    return true;
}

/* Reads the value of a field from text, within the field's bounds, to where it stands in a request. */
static int read_value(const struct field *field, const char *text, void *ret_value, struct error *err)
{
    int64_t with_sign = 0;
    uint32_t flag = 0;
    int r = -EINVAL;
    switch ((enum field_type)field->type) {
    case FIELD_BOOL:
        r = number_read_u32(text, 0, 1, &flag, err);
        if (r == 0)
            *(bool *)ret_value = flag != 0;
        return r;
    case FIELD_U32:
        return number_read_u32(text, (uint32_t)field->low, (uint32_t)field->high, ret_value, err);
    case FIELD_U64:
        return number_read(text, (uint64_t)field->low, field->high, ret_value, err);
    case FIELD_REAL:
        return number_read_real(text, field->real_low, field->real_high, ret_value, err);
    case FIELD_I32:
        r = number_read_signed(text, field->low, (int64_t)field->high, &with_sign, err);
        if (r == 0)
            *(int32_t *)ret_value = (int32_t)with_sign;
        return r;
    default:
        return error_set(err, -EINVAL, "is not a number");
    }
}

/* The index of a name; N_PARAMETERS: there is none. */
static size_t index_of(const char *name)
{
    size_t i = 0;
    while (i < N_PARAMETERS && strcmp(parameters[i].name, name) != 0)
        i++;
    return i;
}

/* The flag that says whether a parameter was set; NULL: its value says it. */
static bool *flag_of(struct quern_request *request, const struct parameter *parameter)
{
    if (parameter->in_request == offsetof(struct quern_request, seed))
        return &request->has_seed;
    if (parameter->in_request == offsetof(struct quern_request, thinking_budget))
        return &request->has_thinking_budget;
    return NULL;
}

int quern_request_set(struct quern_request *request, const char *name, const char *value,
                      struct quern_error *ret_err)
{
    struct error err = {0};
    const size_t i = index_of(name);
    int r = 0;
    if (i == N_PARAMETERS) {
        error_set(&err, 0, "%.80s: unknown parameter", name);
        return state_say(ret_err, -ENOENT, &err);
    }
    const struct parameter *parameter = &parameters[i];
    void *to = (char *)request + parameter->in_request;
    if (value) {
        r = read_value(field_of(parameter), value, to, &err);
    } else {
        struct quern_request defaults;
        quern_request_init(&defaults);
        memcpy(to, (const char *)&defaults + parameter->in_request, parameter->size);
    }
    if (r < 0)
        return state_say(ret_err, error_prefix(&err, r, "%s", name), &err);
    bool *flag = flag_of(request, parameter);
    if (flag)
        *flag = value != NULL;
    return 0;
}

/* A real number in as few digits as read back the same. */
static void write_real(double real, char ret_value[QUERN_VALUE_BYTES])
{
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(ret_value, QUERN_VALUE_BYTES, "%.*g", digits, real);
        if (strtod(ret_value, NULL) == real)
            return;
    }
}

/* Of an integer whose bounds exclude it: it was not set. */
static void write_integer(const struct field *field, int64_t value, char ret_value[QUERN_VALUE_BYTES])
{
    if (value >= field->low)
        snprintf(ret_value, QUERN_VALUE_BYTES, "%" PRId64, value);
}

int quern_request_get(const struct quern_request *request, const char *name,
                      char ret_value[QUERN_VALUE_BYTES])
{
    const size_t i = index_of(name);
    if (i == N_PARAMETERS)
        return -ENOENT;
    const struct field *field = field_of(&parameters[i]);
    struct quern_request copy = *request;
    const void *at = (char *)&copy + parameters[i].in_request;
    const bool *flag = flag_of(&copy, &parameters[i]);
    ret_value[0] = 0;
    if (flag && !*flag)
        return 0;
    switch ((enum field_type)field->type) {
    case FIELD_BOOL:
        snprintf(ret_value, QUERN_VALUE_BYTES, "%d", *(const bool *)at);
        break;
    case FIELD_U32:
        write_integer(field, *(const uint32_t *)at, ret_value);
        break;
    case FIELD_I32:
        write_integer(field, *(const int32_t *)at, ret_value);
        break;
    case FIELD_U64:
        snprintf(ret_value, QUERN_VALUE_BYTES, "%" PRIu64, *(const uint64_t *)at);
        break;
    case FIELD_REAL:
        if (!isnan(*(const double *)at))
            write_real(*(const double *)at, ret_value);
        break;
    default:
        break;
    }
    return 0;
}
