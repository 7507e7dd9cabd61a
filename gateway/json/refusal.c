/* SPDX-License-Identifier: MIT */
/* Errors: from the protocol's names to HTTP, and from there to each family's JSON. */

#include "gateway/json/refusal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/utf8.h"

int refuse(struct refusal *refusal, unsigned status, const char *code, const char *param, const char *format,
           ...)
{
    va_list args;
    *refusal = (struct refusal){.status = status, .code = code};
    if (param)
        utf8_printable(bytes_of_string(param), sizeof refusal->param, refusal->param);
    va_start(args, format);
    vsnprintf(refusal->text, sizeof refusal->text, format, args);
    va_end(args);
    /* What it quotes may have been cut inside a character. */
    utf8_clean(refusal->text);
    return REFUSED;
}

/* What each error of the protocol is in HTTP. Others are ours to mend: 500. */
static const struct {
    const char *name;
    unsigned status;
    const char *code;
} errors[] = {
    {"bad_request", 400, NULL},
    {"too_long", 400, "context_length_exceeded"},
    {"overloaded", 429, "rate_limit_exceeded"},
    {"unsupported", 400, "unsupported"},
    {"no_worker", 503, "no_worker"},
    {"worker_lost", 503, "worker_lost"},
    {"draining", 503, "draining"},
    {"deadline", 504, "deadline"},
    {"model_error", 500, "model_error"},
};

static void refuse_by_name(struct refusal *refusal, const char *name, const char *text)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (strcmp(errors[i].name, name) == 0) {
            refuse(refusal, errors[i].status, errors[i].code, NULL, "%s", text);
            return;
        }
    refuse(refusal, 500, name, NULL, "%s", text);
}

static uint32_t seconds(uint32_t milliseconds)
{
    return (uint32_t)(((uint64_t)milliseconds + 999) / 1000);
}

void refusal_of_end(const struct quern_end *end, struct refusal *ret_refusal)
{
    switch (end->reason) {
    case QUERN_DEADLINE:
        refuse_by_name(ret_refusal, "deadline", "the deadline of the request passed");
        break;
    case QUERN_CANCELLED:
        refuse(ret_refusal, 503, "cancelled", NULL, "the request was cancelled");
        break;
    default:
        refuse_by_name(ret_refusal, end->error, end->text[0] ? end->text : end->error);
    }
    if (ret_refusal->status == 429)
        ret_refusal->retry_after_s = end->retry_after_ms ? seconds(end->retry_after_ms) : 1;
    else if (ret_refusal->status == 503)
        ret_refusal->retry_after_s = 1;
}

void refusal_of_code(int code, const char *text, struct refusal *ret_refusal)
{
    switch (code) {
    case -EINVAL:
        refuse(ret_refusal, 400, NULL, NULL, "%s", text);
        break;
    case -EMSGSIZE:
        refuse(ret_refusal, 413, "too_large", NULL, "%s", text);
        break;
    case -EREMOTEIO: { /* "no_worker: none is ready" */
        char name[32] = "";
        size_t len = strcspn(text, ":");
        if (len < sizeof name)
            memcpy(name, text, len);
        refuse_by_name(ret_refusal, name, text[len] ? text + len + 1 + (text[len + 1] == ' ') : text);
        break;
    }
    case -EAGAIN:
        refuse(ret_refusal, 429, "rate_limit_exceeded", NULL, "%s", text);
        break;
    case -ENOMEM:
        refuse_memory(ret_refusal);
        break;
    default:
        refuse(ret_refusal, 503, "unavailable", NULL, "%s", text);
    }
    if (ret_refusal->status == 429 || ret_refusal->status == 503)
        ret_refusal->retry_after_s = 1;
}

/* OpenAI's and Anthropic's word for a class of errors. */
static const char *type_of(const struct refusal *refusal, enum family family)
{
    bool anthropic = family == FAMILY_ANTHROPIC;
    switch (refusal->status) {
    case 401:
        return "authentication_error";
    case 403:
        return "permission_error";
    case 404:
        return anthropic ? "not_found_error" : "invalid_request_error";
    case 413:
        return anthropic ? "request_too_large" : "invalid_request_error";
    case 429:
        return "rate_limit_error";
    case 503:
        return anthropic ? "overloaded_error" : "server_error";
    default:
        if (refusal->status < 500)
            return "invalid_request_error";
        return anthropic ? "api_error" : "server_error";
    }
}

static void write_or_null(struct json_out *out, const char *text)
{
    if (text && *text)
        json_out_name(out, text);
    else
        json_out_text(out, "null");
}

void refusal_write(const struct refusal *refusal, enum family family, struct json_out *out)
{
    switch (family) {
    case FAMILY_OPENAI:
        json_out_text(out, "{\"error\":{\"message\":");
        json_out_name(out, refusal->text);
        json_out_text(out, ",\"type\":");
        json_out_name(out, type_of(refusal, family));
        json_out_text(out, ",\"param\":");
        write_or_null(out, refusal->param);
        json_out_text(out, ",\"code\":");
        write_or_null(out, refusal->code);
        json_out_text(out, "}}");
        break;
    case FAMILY_ANTHROPIC:
        json_out_text(out, "{\"type\":\"error\",\"error\":{\"type\":");
        json_out_name(out, type_of(refusal, family));
        json_out_text(out, ",\"message\":");
        json_out_name(out, refusal->text);
        json_out_text(out, "}}");
        break;
    case FAMILY_OLLAMA:
        json_out_text(out, "{\"error\":");
        json_out_name(out, refusal->text);
        json_out_text(out, "}");
        break;
    }
}
