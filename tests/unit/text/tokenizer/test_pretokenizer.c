/* SPDX-License-Identifier: MIT */
#include "tests/unit/run.h"
#include "text/tokenizer/pretokenizer_table.h"

#include <stdlib.h>
#include <time.h>

static struct pretokenizer *open_named(const char *name)
{
    struct pretokenizer *p = NULL;
    struct error err = {0};
    ck_assert_msg(pretokenizer_new(bytes_of_string(name), &p, &err) == 0, "%s: %s", name, err.text);
    return p;
}

#define TEXT                                                                                                 \
    "HTTPServer's WE'VE don'T iPhone 1234567 ½x=1;\n\n\tif (a)  {中文ひら カナ々} //\n  e\xcc\x81"   \
    "a नमस्ते, 1.5… \r\n  "

/* The words with ¦ between them, as Python's module `regex` makes them of the expressions in the models' own
 * tokenizer.json: each expression in turn, matches and gaps apart. */
static const struct {
    const char *name, *text, *words;
} splits[] = {
    {"gpt-2", TEXT,
     "HTTPServer¦'s¦ WE¦'¦VE¦ don¦'¦T¦ iPhone¦ 1234567¦ ½¦x¦=¦1¦;¦\n\n¦\t¦if¦ (¦a¦)¦ ¦ {¦中文ひら¦ カナ々¦}¦ "
     "//¦\n ¦ e¦\xcc\x81"
     "¦a¦ नमस¦्¦त¦े,¦ 1¦.¦5¦…¦ \r\n  "},
    {"smollm", TEXT,
     "HTTPServer¦'s¦ WE¦'¦VE¦ don¦'¦T¦ iPhone¦ ¦1¦2¦3¦4¦5¦6¦7¦ ¦½¦x¦=¦1¦;¦\n\n¦\t¦if¦ (¦a¦)¦ ¦ {¦中文ひら¦ "
     "カナ々¦}¦ //¦\n ¦ e¦\xcc\x81"
     "¦a¦ नमस¦्¦त¦े,¦ ¦1¦.¦5¦…¦ \r\n  "},
    {"llama-bpe", TEXT,
     "HTTPServer¦'s¦ WE¦'VE¦ don¦'T¦ iPhone¦ ¦123¦456¦7¦ ¦½¦x¦=¦1¦;\n\n¦\tif¦ (¦a¦)¦ ¦ {¦中文ひら¦ カナ々¦}¦ "
     "//\n¦ ¦ e¦\xcc\x81"
     "a¦ नमस¦्त¦े,¦ ¦1¦.¦5¦…¦ \r\n¦  "},
    {"qwen2", TEXT,
     "HTTPServer¦'s¦ WE¦'VE¦ don¦'T¦ iPhone¦ ¦1¦2¦3¦4¦5¦6¦7¦ ¦½¦x¦=¦1¦;\n\n¦\tif¦ (¦a¦)¦ ¦ {¦中文ひら¦ "
     "カナ々¦}¦ //\n¦ ¦ e¦\xcc\x81"
     "a¦ नमस¦्त¦े,¦ ¦1¦.¦5¦…¦ \r\n¦  "},
    {"minicpm5", TEXT,
     "HTTPServer¦'s¦ WE¦'VE¦ don¦'T¦ iPhone¦ ¦123¦456¦7¦ ¦½¦x¦=¦1¦;\n\n¦\tif¦ (¦a¦)¦ ¦ {¦中文ひら¦ カナ々¦}¦ "
     "//\n¦ ¦ e¦\xcc\x81"
     "a¦ नमस¦्त¦े,¦ ¦1¦.¦5¦…¦ \r\n¦  "},
    {"minicpm5", "12345 1", "123¦45¦ ¦1"},
    {"laguna", TEXT,
     "HTTPServer¦'s¦ WE¦'VE¦ don¦'T¦ iPhone¦ ¦1¦2¦3¦4¦5¦6¦7¦ ¦½¦x¦=¦1¦;¦\n\n¦\tif¦ (¦a¦)¦ ¦ {¦中文ひら¦ "
     "カナ々¦}¦ //¦\n¦ ¦ e¦\xcc\x81"
     "a¦ नमस¦्त¦े,¦ ¦1¦.¦5¦…¦ \r¦\n¦  "},
    {"laguna", "a\n\n b 12", "a¦\n\n¦ b¦ ¦1¦2"},
    {"qwen35", TEXT,
     "HTTPServer¦'s¦ WE¦'VE¦ don¦'T¦ iPhone¦ ¦1¦2¦3¦4¦5¦6¦7¦ ¦½¦x¦=¦1¦;\n\n¦\tif¦ (¦a¦)¦ ¦ {¦中文ひら¦ "
     "カナ々¦}¦ //\n¦ ¦ e\xcc\x81"
     "a¦ नमस्ते¦,¦ ¦1¦.¦5¦…¦ \r\n¦  "},
    {"qwen35",
     "e\xcc\x81"
     "\xcc\x81"
     " नि12!",
     "e\xcc\x81"
     "\xcc\x81"
     "¦ नि¦1¦2¦!"},
    {"seed-coder", TEXT,
     "HTTPServer¦'s¦ WE¦'VE¦ don¦'T¦ iPhone¦ ¦1¦2¦3¦4¦5¦6¦7¦ ¦½¦x¦=¦1¦;¦\n\n¦\tif¦ (¦a¦)¦ ¦ {¦中文ひら¦ "
     "カナ々¦}¦ //¦\n¦ ¦ e¦\xcc\x81"
     "a¦ नमस¦्त¦े,¦ ¦1¦.¦5¦…¦ \r\n¦  "},
    {"seed-coder", " !\n\nx 12", " !¦\n\n¦x¦ ¦1¦2"},
    {"bailingmoe", TEXT,
     "HTTPServer¦'s¦ WE¦'VE¦ don¦'T¦ iPhone¦ ¦1¦2¦3¦4¦5¦6¦7¦ ¦½¦x¦=¦1¦;\n\n¦\tif¦ (¦a¦)¦ ¦ {¦中文ひら¦ "
     "カナ々¦}¦ //\n¦ ¦ e¦\xcc\x81"
     "a¦ नमस¦्त¦े,¦ ¦1¦.¦5¦…¦ \r\n¦  "},
    {"bailingmoe", "\n\n 'SX!!\n", "\n\n¦ '¦SX¦!!\n"},
    {"exaone-moe", TEXT,
     "HTTPServer¦'s¦ WE¦'VE¦ don¦'T¦ iPhone¦ ¦1¦2¦3¦4¦5¦6¦7¦ ¦½¦x¦=¦1¦;\n¦\n¦\tif¦ (¦a¦)¦ ¦ {¦中文ひら "
     "カナ々¦}¦ //\n¦ ¦ e\xcc\x81"
     "a नमस्ते¦,¦ ¦1¦.¦5¦…¦ \r\n¦  "},
    {"exaone-moe", "a b cd  e\n\n!\n/", "a b cd¦ ¦ e¦\n\n¦!\n¦/"},
    {"gpt-4o", TEXT,
     "HTTPServer's¦ WE'VE¦ don'T¦ i¦Phone¦ ¦123¦456¦7¦ ¦½¦x¦=¦1¦;\n\n¦\tif¦ (¦a¦)¦ ¦ {¦中文ひら¦ カナ々¦}¦ "
     "//\n¦ ¦ e\xcc\x81"
     "a¦ नमस्ते¦,¦ ¦1¦.¦5¦…¦ \r\n¦  "},
    {"tekken", TEXT,
     "HTTPServer¦'s¦ WE¦'VE¦ don¦'T¦ i¦Phone¦ ¦1¦2¦3¦4¦5¦6¦7¦ ¦½¦x¦=¦1¦;\n\n¦\tif¦ (¦a¦)¦ ¦ {¦中文ひら¦ "
     "カナ々¦}¦ //\n¦ ¦ e\xcc\x81"
     "a¦ नमस्ते¦,¦ ¦1¦.¦5¦…¦ \r\n¦  "},
    {"kimi-k2", TEXT,
     "HTTPServer's¦ WE'VE¦ don'T¦ i¦Phone¦ ¦123¦456¦7¦ ¦½¦x¦=¦1¦;\n\n¦\tif¦ (¦a¦)¦ ¦ {¦中文¦ひら¦ カナ¦々¦}¦ "
     "//\n¦ ¦ e\xcc\x81"
     "a¦ नमस्ते¦,¦ ¦1¦.¦5¦…¦ \r\n¦  "},
    {"kimi-k2", "中文 WordsHere'S 1234 〇x", "中文¦ Words¦Here'S¦ ¦123¦4¦ ¦〇¦x"},
    {"youtu", TEXT,
     "HTTPServer's¦ WE'VE¦ don'T¦ i¦Phone¦ ¦1¦2¦3¦4¦5¦6¦7¦ ¦½¦x¦=¦1¦;\n\n¦\tif¦ (¦a¦)¦ ¦ {¦中文ひら¦ "
     "¦カナ¦々¦}¦ //\n¦ ¦ e\xcc\x81"
     "a¦ नमस्ते¦,¦ ¦1¦.¦5¦…¦ \r\n¦  "},
    {"youtu", "한국어 中文ㄅㄆ，ABc's 12/\n", "한국어¦ ¦中文¦ㄅㄆ¦，¦ABc's¦ ¦1¦2¦/\n"},
    {"deepseek-v3", TEXT,
     "HTTPServer¦'s¦ WE¦'VE¦ don¦'T¦ iPhone¦ ¦123¦456¦7¦ ¦½¦x¦=¦1¦;\n\n¦\tif¦ (¦a¦)¦ ¦ {¦中文ひら¦ "
     "¦カナ¦々¦}¦ //\n¦ ¦ e\xcc\x81"
     "a¦ नमस्ते¦,¦ ¦1¦.¦5¦…¦ \r\n¦  "},
    {"deepseek-coder", TEXT,
     "HTTPServer¦'¦s¦ WE¦'¦VE¦ don¦'¦T¦ iPhone¦ ¦1¦2¦3¦4¦5¦6¦7¦ ¦½¦x¦=¦1¦;¦\n¦\n¦\tif¦ (¦a¦)¦ ¦ {¦中文ひら¦ "
     "¦カナ々¦}¦ //¦\n¦ ¦ e¦\xcc\x81"
     "¦a¦ ¦नमस¦्¦त¦े¦,¦ ¦1¦.¦5¦…¦ ¦\r¦\n¦  "},
    {"falcon", TEXT,
     "HTTPServer¦'¦s¦ WE¦'¦VE¦ don¦'¦T¦ iPhone¦ ¦123¦456¦7¦ ½¦x¦=¦1¦;¦\n\n¦\t¦if¦ ¦(¦a¦)¦  ¦{¦中文ひら¦ "
     "カナ々¦}¦ ¦//¦\n ¦ e¦\xcc\x81"
     "¦a¦ नमस¦्¦त¦े¦,¦ 1¦.¦5¦…¦ \r\n  "},
    {"bloom", TEXT,
     "HTTPServer's¦ WE'VE¦ don'T¦ iPhone¦ 1234567¦ ½x=1;¦\n\n\t¦if¦ (¦a¦) ¦ {中文ひら¦ カナ々}¦ //¦\n ¦ "
     "e\xcc\x81"
     "a¦ नमस्ते¦,¦ 1¦.¦5¦… \r\n  "},
    {"bloom", "(a|b) c…d،e ।f\n g", "(¦a¦|¦b¦)¦ c¦…¦d¦،¦e¦ ।¦f¦\n¦ g"},
    {"viking", TEXT,
     "HTTPServer's¦ WE'VE¦ don'T¦ iPhone¦ ¦1¦2¦3¦4¦5¦6¦7¦ ¦½¦x=¦1¦;¦\n\n\t¦if¦ (¦a¦) ¦ {中文ひら¦ カナ々}¦ "
     "//¦\n ¦ e\xcc\x81"
     "a¦ नमस्ते¦,¦ ¦1¦.¦5¦… \r\n  "},
    {"viking", "a1 23,4 (x)", "a¦1¦ ¦2¦3¦,¦4¦ (¦x¦)"},
    {"chameleon", TEXT,
     "HTTPServer¦'¦s¦ WE¦'¦VE¦ don¦'¦T¦ iPhone¦ ¦1¦2¦3¦4¦5¦6¦7¦ ¦½¦x¦=¦1¦;¦\n¦\n¦\t¦if¦ ¦(¦a¦)¦  "
     "¦{¦中文ひら¦ カナ々¦}¦ ¦/¦/¦\n¦  ¦e¦\xcc\x81"
     "¦a¦ नमस¦्¦त¦े¦,¦ ¦1¦.¦5¦…¦ \r¦\n¦  "},
    {"chameleon", "<sentinel:12>IMGIMGABCZ    a\tb1!", "<¦sentinel¦:¦1¦2¦>¦IMGIMGABCZ¦    ¦a¦\t¦b¦1¦!"},
};

START_TEST(words_end_where_the_models_own_expressions_end_them)
{
    struct pretokenizer_scratch scratch = {0};
    for (size_t i = 0; i < sizeof splits / sizeof splits[0]; i++) {
        struct pretokenizer *p = open_named(splits[i].name);
        struct buffer words = {0};
        ck_assert_int_eq(pretokenizer_split(p, bytes_of_string(splits[i].text), &scratch), 0);
        for (size_t k = 0; k < scratch.n; k++) {
            ck_assert_int_eq(buffer_append(&words, "¦", k > 0 ? strlen("¦") : 0), 0);
            ck_assert_int_eq(
                buffer_append(&words, splits[i].text + scratch.words[k].start, scratch.words[k].len), 0);
        }
        ck_assert_int_eq(buffer_append(&words, "", 1), 0);
        ck_assert_msg(strcmp((const char *)words.data, splits[i].words) == 0, "%s gives\n%s, not\n%s",
                      splits[i].name, (const char *)words.data, splits[i].words);
        buffer_deinit(&words);
        pretokenizer_free(p);
    }
    pretokenizer_scratch_deinit(&scratch);
}
END_TEST

/* The expressions of a name, one after the other, in a static buffer. */
static const char *expressions_of(const char *name)
{
    static char all[8][8192];
    static unsigned next;
    char *out = all[next++ % 8];
    const struct pretokenizer_expressions *found = pretokenizer_find(bytes_of_string(name));
    ck_assert_msg(found, "%s", name);
    out[0] = '\0';
    for (size_t i = 0; found->patterns[i]; i++) {
        ck_assert_uint_lt(strlen(out) + strlen(found->patterns[i]) + 2, sizeof all[0]);
        strcat(strcat(out, found->patterns[i]), "\n");
    }
    return out;
}

START_TEST(names_share_expressions_but_not_always_the_rest)
{
    static const struct {
        const char *name, *like;
        bool whole_words, adds_bos;
    } all[] = {
        {"", "gpt-2", false, false},
        {"default", "gpt-2", false, false},
        {"jais", "gpt-2", false, false},
        {"refact", "smollm", false, false},
        {"command-r", "smollm", false, false},
        {"codeshell", "smollm", false, false},
        {"exaone", "smollm", false, false},
        {"minerva-7b", "smollm", false, false},
        {"llama-bpe", "llama-bpe", true, true},
        {"falcon3", "llama-bpe", true, true},
        {"pixtral", "llama-bpe", true, true},
        {"lfm2", "llama-bpe", true, true},
        {"dbrx", "llama-bpe", false, false},
        {"smaug-bpe", "llama-bpe", false, false},
        {"glm4", "llama-bpe", false, false},
        {"stablelm2", "qwen2", false, false},
        {"megrez", "qwen2", false, false},
        {"llama4", "gpt-4o", false, false},
        {"tekken", "tekken", true, true},
        {"hunyuan-dense", "deepseek-v3", false, false},
        {"gpt3-finnish", "bloom", false, false},
        {"poro-chat", "bloom", false, false},
        {"chameleon", "chameleon", false, true},
        {"minicpm5", "minicpm5", true, false},
        {"youtu", "youtu", true, false},
        {"gpt-2", "gpt-2", false, false},
        {"phi-2", "gpt-2", false, false},
        {"mpt", "gpt-2", false, false},
        {"olmo", "gpt-2", false, false},
        {"trillion", "gpt-2", false, false},
        {"granite-docling", "gpt-2", false, false},
        {"exaone4", "gpt-2", false, false},
        {"gigachat", "gpt-2", false, false},
        {"mellum", "gpt-2", false, false},
        {"modern-bert", "gpt-2", false, false},
        {"a.x-4.0", "gpt-2", false, false},
        {"jina-es", "gpt-2", false, false},
        {"jina-de", "gpt-2", false, false},
        {"jina-v2-es", "gpt-2", false, false},
        {"jina-v2-de", "gpt-2", false, false},
        {"starcoder", "smollm", false, false},
        {"smollm", "smollm", false, false},
        {"mellum2", "smollm", false, false},
        {"llama3", "llama-bpe", true, true},
        {"llama-v3", "llama-bpe", true, true},
        {"falcon-h1", "llama-bpe", true, true},
        {"midm-2.0", "llama-bpe", true, true},
        {"jina-v5-nano", "llama-bpe", true, true},
        {"chatglm-bpe", "llama-bpe", false, false},
        {"qwen2", "qwen2", false, false},
        {"deepseek-r1-qwen", "qwen2", false, false},
        {"hunyuan", "qwen2", false, false},
        {"solar-open", "qwen2", false, false},
        {"grok-2", "qwen2", false, false},
        {"kormo", "qwen2", false, false},
        {"f2llmv2", "qwen2", false, false},
        {"laguna", "laguna", false, false},
        {"qwen35", "qwen35", false, false},
        {"seed-coder", "seed-coder", false, false},
        {"bailingmoe", "bailingmoe", false, false},
        {"bailingmoe2", "bailingmoe", false, false},
        {"llada-moe", "bailingmoe", false, false},
        {"exaone-moe", "exaone-moe", false, false},
        {"gpt-4o", "gpt-4o", false, false},
        {"kanana2", "gpt-4o", false, false},
        {"talkie", "gpt-4o", false, false},
        {"minimax-m2", "gpt-4o", false, false},
        {"kimi-k2", "kimi-k2", false, false},
        {"deepseek-v3", "deepseek-v3", false, false},
        {"joyai-llm", "deepseek-v3", false, false},
        {"deepseek-llm", "deepseek-llm", false, false},
        {"deepseek-coder", "deepseek-coder", false, false},
        {"falcon", "falcon", false, false},
        {"bloom", "bloom", false, false},
        {"viking", "viking", false, false},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct pretokenizer *p = open_named(all[i].name);
        ck_assert_str_eq(expressions_of(all[i].name), expressions_of(all[i].like));
        ck_assert_msg(pretokenizer_traits(p)->whole_words == all[i].whole_words, "%s", all[i].name);
        ck_assert_msg(pretokenizer_traits(p)->adds_bos == all[i].adds_bos, "%s", all[i].name);
        pretokenizer_free(p);
    }
}
END_TEST

/* 100 KB of one piece take milliseconds; a quadratic way would take minutes. */
START_TEST(no_text_takes_quadratic_time)
{
    static const char *const pieces[] = {" ",  "\n",  "A",  "a",  "1",  "!",   "\xcc\x81",
                                         "中", " \n", "' ", "a ", "Aa", "!\n", "<sentinel:1"};
    struct pretokenizer_scratch scratch = {0};
    struct buffer text = {0};
    for (size_t k = 0; k < sizeof pieces / sizeof pieces[0]; k++) {
        text.len = 0;
        while (text.len < 100000)
            ck_assert_int_eq(buffer_append(&text, pieces[k], strlen(pieces[k])), 0);
        ck_assert_int_eq(buffer_append(&text, "x", 1), 0);
        for (size_t i = 0; i < sizeof splits / sizeof splits[0]; i++) {
            struct pretokenizer *p = open_named(splits[i].name);
            const clock_t begin = clock();
            ck_assert_int_eq(pretokenizer_split(p, (struct bytes){text.data, text.len}, &scratch), 0);
            ck_assert_msg(clock() - begin < 3 * CLOCKS_PER_SEC, "%s: \"%s\"", splits[i].name, pieces[k]);
            pretokenizer_free(p);
        }
    }
    pretokenizer_scratch_deinit(&scratch);
    buffer_deinit(&text);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 100);
    tcase_add_test(tests, words_end_where_the_models_own_expressions_end_them);
    tcase_add_test(tests, names_share_expressions_but_not_always_the_rest);
    tcase_add_test(tests, no_text_takes_quadratic_time);
}

int main(void)
{
    return run_tests("pretokenizer", add);
}
