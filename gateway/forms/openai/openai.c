/* SPDX-License-Identifier: MIT */
/* See openai.h. */

#include "gateway/forms/openai/openai.h"

#include "common/clock.h"

void openai_event_open(struct json_out *out)
{
    json_out_text(out, "data: ");
}

void openai_event_close(struct json_out *out)
{
    json_out_text(out, "\n\n");
}

void openai_head(const struct generation *generation, const char *prefix, const char *object,
                 struct json_out *out)
{
    json_out_text(out, "{\"id\":\"");
    json_out_text(out, prefix);
    json_out_text(out, generation->id);
    json_out_text(out, "\",\"object\":\"");
    json_out_text(out, object);
    json_out_text(out, "\",\"created\":");
    json_out_number(out, generation->created);
    json_out_text(out, ",\"model\":");
    json_out_name(out, generation->model);
}

/* `,"completion_tokens_details":{…}` with what is known of the output; nothing if that is nothing. */
static void write_output_details(const struct generation *generation, struct json_out *out)
{
    if (generation->thought_tokens == 0 && generation->drafted_tokens == 0)
        return;
    json_out_text(out, ",\"completion_tokens_details\":{");
    if (generation->thought_tokens > 0) {
        json_out_text(out, "\"reasoning_tokens\":");
        json_out_number(out, generation->thought_tokens);
    }
    if (generation->drafted_tokens > 0) {
        json_out_text(out, generation->thought_tokens > 0 ? "," : "");
        json_out_text(out, "\"accepted_prediction_tokens\":");
        json_out_number(out, generation->accepted_tokens);
        json_out_text(out, ",\"rejected_prediction_tokens\":");
        json_out_number(out, (int64_t)generation->drafted_tokens - generation->accepted_tokens);
    }
    json_out_text(out, "}");
}

void openai_usage(const struct generation *generation, struct json_out *out)
{
    json_out_text(out, ",\"usage\":{\"prompt_tokens\":");
    json_out_number(out, generation->prompt_tokens);
    json_out_text(out, ",\"completion_tokens\":");
    json_out_number(out, generation->output_tokens);
    json_out_text(out, ",\"total_tokens\":");
    json_out_number(out, (int64_t)generation->prompt_tokens + generation->output_tokens);
    json_out_text(out, ",\"prompt_tokens_details\":{\"cached_tokens\":");
    json_out_number(out, generation->cached_tokens);
    json_out_text(out, "}");
    write_output_details(generation, out);
    json_out_text(out, "},\"timings\":{\"queue_ms\":");
    json_out_ms(out, generation->queue_ms);
    json_out_text(out, ",\"prefill_ms\":");
    json_out_ms(out, generation->prefill_ms);
    json_out_text(out, ",\"prepare_ms\":");
    json_out_ms(out, generation->prepare_ms);
    json_out_text(out, ",\"wait_ms\":");
    json_out_ms(out, generation->wait_ms);
    json_out_text(out, ",\"lookup_ms\":");
    json_out_ms(out, generation->lookup_ms);
    json_out_text(out, ",\"decode_ms\":");
    json_out_ms(out, generation->decode_ms);
    choice_write_drafts(generation->drafted_tokens, generation->accepted_tokens, out);
    json_out_text(out, "}");
}

void openai_progress(const struct generation *generation, const struct quern_progress *progress,
                     struct json_out *out)
{
    json_out_text(out, ",\"prompt_progress\":{\"total\":");
    json_out_number(out, progress->total);
    json_out_text(out, ",\"cache\":");
    json_out_number(out, progress->cached);
    json_out_text(out, ",\"processed\":");
    json_out_number(out, progress->read);
    json_out_text(out, ",\"time_ms\":");
    json_out_number(out, (int64_t)((clock_ns() - generation->begun_ns) / CLOCK_NS_PER_MS));
    json_out_text(out, "}");
}

const char *openai_finish_reason(const struct choice *choice)
{
    return choice->reason == QUERN_LENGTH ? "length" : choice_calls(choice) ? "tool_calls" : "stop";
}

void openai_finish(const struct choice *choice, const char *finish_reason, struct json_out *out)
{
    json_out_text(out, ",\"finish_reason\":");
    if (!finish_reason) {
        json_out_text(out, "null");
        return;
    }
    json_out_name(out, finish_reason);
    choice_write_limit(choice, out);
}

void openai_stream_end(struct generation *generation, const char *prefix, const char *object,
                       struct json_out *out)
{
    if (generation->include_usage) {
        openai_event_open(out);
        openai_head(generation, prefix, object, out);
        json_out_text(out, ",\"choices\":[]");
        openai_usage(generation, out);
        json_out_text(out, "}");
        openai_event_close(out);
    }
    json_out_text(out, "data: [DONE]\n\n");
}

void openai_fail(struct generation *generation, const struct refusal *refusal, struct json_out *out)
{
    openai_event_open(out);
    refusal_write(refusal, FAMILY_OPENAI, out);
    openai_event_close(out);
}
