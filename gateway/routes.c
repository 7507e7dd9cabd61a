/* SPDX-License-Identifier: MIT */
/* The table of what is served. */

#include "gateway/routes.h"

#include <stdio.h>
#include <string.h>

#include "gateway/forms/openai/chat.h"
#include "gateway/forms/openai/completions.h"
#include "gateway/forms/embeddings.h"
#include "gateway/forms/ranking.h"
#include "gateway/forms/llama_server/infill.h"
#include "gateway/watch/health.h"
#include "gateway/forms/anthropic/count_tokens.h"
#include "gateway/forms/anthropic/messages.h"
#include "gateway/watch/metrics.h"
#include "gateway/forms/openai/models.h"
#include "gateway/forms/ollama/ollama.h"
#include "gateway/forms/ollama/show.h"
#include "gateway/page/page.h"
#include "gateway/watch/props.h"
#include "gateway/forms/llama_server/slots.h"
#include "gateway/watch/status.h"
#include "gateway/forms/llama_server/tokenize.h"

static const struct route routes[] = {
    {"POST", "/v1/chat/completions", chat_handle, FAMILY_OPENAI, false, false},
    {"POST", "/v1/completions", completions_handle, FAMILY_OPENAI, false, false},
    {"POST", "/v1/embeddings", embeddings_handle, FAMILY_OPENAI, false, false},
    {"POST", "/v1/rerank", ranking_handle_rerank, FAMILY_OPENAI, false, false},
    {"POST", "/v2/rerank", ranking_handle_rerank, FAMILY_OPENAI, false, false},
    {"POST", "/rerank", ranking_handle_rerank, FAMILY_OPENAI, false, false},
    {"POST", "/v1/reranking", ranking_handle_rerank, FAMILY_OPENAI, false, false},
    {"POST", "/reranking", ranking_handle_rerank, FAMILY_OPENAI, false, false},
    {"POST", "/v1/score", ranking_handle_score, FAMILY_OPENAI, false, false},
    {"POST", "/score", ranking_handle_score, FAMILY_OPENAI, false, false},
    {"GET", "/v1/models", models_handle, FAMILY_OPENAI, false, false},
    {"GET", "/v1/models/", models_handle_one, FAMILY_OPENAI, true, false},
    {"POST", "/v1/messages", messages_handle, FAMILY_ANTHROPIC, false, false},
    {"POST", "/v1/messages/count_tokens", count_tokens_handle, FAMILY_ANTHROPIC, false, false},
    {"POST", "/api/chat", ollama_handle_chat, FAMILY_OLLAMA, false, false},
    {"POST", "/api/generate", ollama_handle_generate, FAMILY_OLLAMA, false, false},
    {"POST", "/api/embed", ollama_handle_embed, FAMILY_OLLAMA, false, false},
    {"POST", "/api/embeddings", ollama_handle_embeddings, FAMILY_OLLAMA, false, false},
    {"GET", "/api/tags", ollama_handle_tags, FAMILY_OLLAMA, false, false},
    {"POST", "/api/show", ollama_handle_show, FAMILY_OLLAMA, false, false},
    {"GET", "/api/ps", ollama_handle_ps, FAMILY_OLLAMA, false, false},
    {"GET", "/version", ollama_handle_version, FAMILY_OPENAI, false, true},
    {"GET", "/ping", health_handle, FAMILY_OPENAI, false, true},
    {"GET", "/api/version", ollama_handle_version, FAMILY_OLLAMA, false, true},
    {"POST", "/infill", infill_handle, FAMILY_OPENAI, false, false},
    {"POST", "/tokenize", tokenize_handle, FAMILY_OPENAI, false, false},
    {"POST", "/detokenize", tokenize_handle_back, FAMILY_OPENAI, false, false},
    {"POST", "/apply-template", tokenize_handle_template, FAMILY_OPENAI, false, false},
    {"GET", "/props", props_handle, FAMILY_OPENAI, false, false},
    {"GET", "/slots", slots_handle, FAMILY_OPENAI, false, false},
    {"GET", "/status", status_handle, FAMILY_OPENAI, false, false},
    {"GET", "/metrics", metrics_handle, FAMILY_OPENAI, false, false},
    {"GET", "/health", health_handle, FAMILY_OPENAI, false, true},
    {"GET", "/health/ready", health_handle, FAMILY_OPENAI, false, true},
    {"GET", "/health/live", health_handle_live, FAMILY_OPENAI, false, true},
    {"GET", "/", page_handle, FAMILY_OPENAI, false, true},
    {"GET", "/page/", page_handle_file, FAMILY_OPENAI, true, true},
};

static bool path_fits(const struct route *route, const char *path)
{
    size_t len = strlen(route->path);
    return route->prefix ? strncmp(path, route->path, len) == 0 && path[len] : strcmp(path, route->path) == 0;
}

static bool method_fits(const struct route *route, const char *method)
{
    return strcmp(route->method, method) == 0 ||
           (strcmp(route->method, "GET") == 0 && strcmp(method, "HEAD") == 0);
}

/* The family whose form a 404 has, by the path's prefix. */
static enum family family_of(const char *path)
{
    static const struct {
        const char *prefix;
        enum family family;
    } families[] = {{"/api/", FAMILY_OLLAMA}, {"/v1/messages/", FAMILY_ANTHROPIC}};
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (strncmp(path, families[i].prefix, strlen(families[i].prefix)) == 0)
            return families[i].family;
    return FAMILY_OPENAI;
}

int routes_find(const char *method, const char *path, const struct route **ret_route, const char **ret_rest,
                enum family *ret_family, char ret_allowed[32], struct refusal *refusal)
{
    *ret_family = family_of(path);
    ret_allowed[0] = 0;
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
        const struct route *route = &routes[i];
        if (!path_fits(route, path))
            continue;
        *ret_family = route->family;
        if (method_fits(route, method)) {
            *ret_route = route;
            *ret_rest = path + strlen(route->path);
            return 0;
        }
        snprintf(ret_allowed, 32, "%s", strcmp(route->method, "GET") == 0 ? "GET, HEAD" : route->method);
    }
    if (ret_allowed[0])
        return refuse(refusal, 405, "method_not_allowed", NULL, "%.64s takes %s, not %.16s", path,
                      ret_allowed, method);
    return refuse(refusal, 404, "not_found", NULL, "nothing found at %.200s", path);
}
