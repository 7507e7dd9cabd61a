/* SPDX-License-Identifier: MIT */
/* A table is a launch's name, and for each number of rows the way that was chosen, the rule's, and how long
 * each took. */

#include "client/command/inspect_choices.h"

#include <stdio.h>
#include <string.h>

#include "engine/backend/choices/kept.h"

struct adding {
    const char *name;
    json_t *tables;
};

/* ---- as JSON ---- */

static double microseconds(uint32_t ns)
{
    return (double)ns / 1e3;
}

static json_t *bucket_json(uint32_t rows, const struct choices_bucket *bucket)
{
    json_t *json = json_pack("{s:i, s:s, s:s, s:{}}", "rows", (int)rows, "way", product_way_name(bucket->way),
                             "rule", product_way_name(bucket->rule), "us");
    json_t *times = json_object_get(json, "us");
    for (enum product_way way = PRODUCT_THIN_8; way < PRODUCT_WAYS; way++)
        if (bucket->ns[way] > 0)
            json_object_set_new(times, product_way_name(way), json_real(microseconds(bucket->ns[way])));
    return json;
}

static json_t *launch_json(const struct choices_launch *launch)
{
    char name[CHOICES_NAME];
    choices_name_launch(launch, name);
    json_t *json = json_pack("{s:s, s:[]}", "matrices", name, "rows");
    for (uint32_t b = 0; b < CHOICES_BUCKETS; b++)
        if (launch->buckets[b].way != PRODUCT_BY_RULE)
            json_array_append_new(json_object_get(json, "rows"),
                                  bucket_json(choices_rows(b), &launch->buckets[b]));
    return json;
}

static void add_table(void *arg, const struct choices *choices)
{
    struct adding *adding = arg;
    char summary[CHOICES_SUMMARY];
    if (strcmp(choices->key.device, adding->name) != 0)
        return;
    choices_summarize(choices, summary);
    json_t *json = json_pack("{s:s, s:s, s:s, s:i, s:I, s:[]}", "model", choices->model, "summary", summary,
                             "driver", choices->key.driver, "max_rows", (int)choices->key.max_rows, "when",
                             (json_int_t)choices->when, "launches");
    if (json && choices->key.library > 0)
        json_object_set_new(json, "cublas", json_integer(choices->key.library));
    for (uint32_t i = 0; json && i < choices->n_launches; i++)
        json_array_append_new(json_object_get(json, "launches"), launch_json(&choices->launches[i]));
    if (json)
        json_array_append_new(adding->tables, json);
}

void inspect_add_choices(json_t *device, const char *name)
{
    struct adding adding = {name, json_array()};
    if (adding.tables)
        kept_list(add_table, &adding);
    if (json_array_size(adding.tables) > 0)
        json_object_set(device, "choices", adding.tables);
    json_decref(adding.tables);
}

/* ---- as text ---- */

static const char *text_of(const json_t *json, const char *key)
{
    const char *text = json_string_value(json_object_get(json, key));
    return text ? text : "";
}

static double time_of(const json_t *bucket, const char *key)
{
    return json_real_value(json_object_get(json_object_get(bucket, "us"), text_of(bucket, key)));
}

static void print_launch(const json_t *launch)
{
    const json_t *bucket;
    size_t i;
    printf("    %s\n", text_of(launch, "matrices"));
    json_array_foreach(json_object_get(launch, "rows"), i, bucket)
    {
        printf("      to %4d rows  %-8s %10.1f µs", (int)json_integer_value(json_object_get(bucket, "rows")),
               text_of(bucket, "way"), time_of(bucket, "way"));
        if (strcmp(text_of(bucket, "way"), text_of(bucket, "rule")) != 0)
            printf("   by rule %s, %.1f µs", text_of(bucket, "rule"), time_of(bucket, "rule"));
        printf("\n");
    }
}

void inspect_print_choices(const json_t *device)
{
    const json_t *table, *launch;
    size_t i, j;
    json_array_foreach(json_object_get(device, "choices"), i, table)
    {
        printf("  %-20s %s, driver %s: %s\n", "measured", text_of(table, "model"), text_of(table, "driver"),
               text_of(table, "summary"));
        json_array_foreach(json_object_get(table, "launches"), j, launch)
        {
            print_launch(launch);
        }
    }
}
