/* SPDX-License-Identifier: MIT */
/* The regular expressions that models were trained with, by the names that GGUF files give them.
 *
 * Most families go back to one of four: GPT-2's, the one of Llama 3 and Qwen 2 (digits in groups,
 * contractions in any case, newlines kept together), GPT-4o's (words end where lower case turns to upper),
 * DeepSeek's (several expressions in turn). Each is written once; what varies is a parameter.
 *
 * White space is written out as the Unicode property White_Space, because \s also takes U+180E in PCRE. An
 * expression must match in time linear in the text, whatever it is: no repeat stands in a repeat, unless it
 * is possessive, and none is tried again and again inside one run of blanks. (DeepSeek's "blanks at the end"
 * looks back for that reason: it begins where a run begins.) Names whose expressions need more than that
 * (tiny_aya, superbpe, afmoe, which group digits from the right, and jais-2) are not here.
 *
 * To add one: a row below, and its splits, made by another engine, in tests/unit/text/tokenizer. */

#include "text/tokenizer/pretokenizer_table.h"

#include <string.h>

#define BLANK "\\t-\\r\\x{85}\\p{Z}" /* inside brackets: White_Space */

/* Blanks: all but the one that the next word takes. */
#define BLANKS "[" BLANK "]+(?![^" BLANK "])|[" BLANK "]+"

#define LINES_THEN_BLANKS "[" BLANK "]*[\\r\\n]+|" BLANKS

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"

#define GPT2_WORDS "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^" BLANK "\\p{L}\\p{N}]+|" BLANKS

/* Those of Llama 3 and Qwen 2 differ in how many digits make a word. */
#define LLAMA3_WORDS(digits)                                                                                 \
    CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" digits "| ?[^" BLANK                                      \
                 "\\p{L}\\p{N}]+[\\r\\n]*|" LINES_THEN_BLANKS

/* Letters that a word may begin with, and those that it may go on with after a lower one. */
#define CAPITALS "\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}"
#define SMALLS   "\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}"
/* The same without Chinese characters, by what else there is: PCRE2 knows no intersection of classes. */
#define CAPITALS_NOT_HAN "^\\p{sc:Han}\\p{Ll}\\p{N}\\p{P}\\p{S}\\p{Z}\\p{C}"
#define SMALLS_NOT_HAN   "^\\p{sc:Han}\\p{Lu}\\p{Lt}\\p{N}\\p{P}\\p{S}\\p{Z}\\p{C}"

/* GPT-4o's words. A contraction may belong to the word before it. */
#define CASED_WORDS(capitals, smalls, contraction, digits, behind_marks)                                     \
    "[^\\r\\n\\p{L}\\p{N}]?[" capitals "]*[" smalls "]+" contraction "|[^\\r\\n\\p{L}\\p{N}]?[" capitals     \
    "]+[" smalls "]*" contraction "|" digits "| ?[^" BLANK "\\p{L}\\p{N}]+[" behind_marks                    \
    "]*|" LINES_THEN_BLANKS

#define HAN_AND_KANA "[\\x{4e00}-\\x{9fa5}\\x{3040}-\\x{309f}\\x{30a0}-\\x{30ff}]+"

#define DEEPSEEK3_WORDS                                                                                      \
    "[!-/:-@\\[-`{-~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| "                                \
    "?[\\p{P}\\p{S}]+[\\r\\n]*|" LINES_THEN_BLANKS

#define DEEPSEEK_ASIAN "[\\x{4e00}-\\x{9fa5}\\x{800}-\\x{4e00}\\x{ac00}-\\x{d7ff}]+"

/* Words between punctuation, of BLOOM and its kin. Brackets and bar are in the class, as they are there. */
#define BLOOM_WORDS " ?[^(" BLANK "|.,!?\\x{2026}\\x{3002}\\x{ff0c}\\x{3001}\\x{964}\\x{6d4}\\x{60c})]+"

/* Letters with an upper and a lower case, as DeepSeek lists them; by number, because several look alike. */
#define CASED_LETTERS                                                                                        \
    "A-Za-z\\x{b5}\\x{c0}-\\x{d6}\\x{d8}-\\x{f6}\\x{f8}-\\x{1ba}\\x{1bc}-\\x{1bf}\\x{1c4}-\\x{293}"          \
    "\\x{295}-\\x{2af}\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37b}-\\x{37d}\\x{37f}\\x{386}"                    \
    "\\x{388}-\\x{38a}\\x{38c}\\x{38e}-\\x{3a1}\\x{3a3}-\\x{3f5}\\x{3f7}-\\x{481}\\x{48a}-\\x{52f}"          \
    "\\x{531}-\\x{556}\\x{10a0}-\\x{10c5}\\x{13a0}-\\x{13f5}\\x{13f8}-\\x{13fd}\\x{1c90}-\\x{1cba}"          \
    "\\x{1cbd}-\\x{1cbf}\\x{1d00}-\\x{1d2b}\\x{1d6b}-\\x{1d77}\\x{1d79}-\\x{1d9a}\\x{1e00}-\\x{1f15}"        \
    "\\x{1f18}-\\x{1f1d}\\x{1f20}-\\x{1f45}\\x{1f48}-\\x{1f4d}\\x{1f50}-\\x{1f57}\\x{1f59}\\x{1f5b}"         \
    "\\x{1f5d}\\x{1f5f}-\\x{1f7d}\\x{1f80}-\\x{1fb4}\\x{1fb6}-\\x{1fbc}\\x{1fbe}\\x{1fc2}-\\x{1fc4}"         \
    "\\x{1fc6}-\\x{1fcc}\\x{1fd0}-\\x{1fd3}\\x{1fd6}-\\x{1fdb}\\x{1fe0}-\\x{1fec}\\x{1ff2}-\\x{1ff4}"        \
    "\\x{1ff6}-\\x{1ffc}\\x{2102}\\x{2107}\\x{210a}-\\x{2113}\\x{2115}\\x{2119}-\\x{211d}\\x{2124}"          \
    "\\x{2126}\\x{2128}\\x{212a}-\\x{212d}\\x{212f}-\\x{2134}\\x{2139}\\x{213c}-\\x{213f}"                   \
    "\\x{2145}-\\x{2149}\\x{214e}\\x{2183}\\x{2184}\\x{2c00}-\\x{2c7b}\\x{2c7e}-\\x{2ce4}"                   \
    "\\x{2ceb}-\\x{2cee}\\x{2cf2}\\x{2cf3}\\x{a640}-\\x{a66d}\\x{a680}-\\x{a69b}\\x{a722}-\\x{a76f}"         \
    "\\x{a771}-\\x{a787}\\x{a78b}-\\x{a78e}\\x{ab70}-\\x{abbf}\\x{fb00}-\\x{fb06}\\x{fb13}-\\x{fb17}"        \
    "\\x{ff21}-\\x{ff3a}\\x{ff41}-\\x{ff5a}\\x{10400}-\\x{1044f}\\x{104b0}-\\x{104d3}"                       \
    "\\x{104d8}-\\x{104fb}\\x{10c80}-\\x{10cb2}\\x{10cc0}-\\x{10cf2}\\x{118a0}-\\x{118df}"                   \
    "\\x{1e900}-\\x{1e943}"

static const struct pretokenizer_expressions table[] = {
    {{0},
     " default gpt-2 phi-2 mpt olmo jais trillion granite-docling exaone4 gigachat mellum modern-bert "
     "a.x-4.0 "
     "jina-es jina-de jina-v2-es jina-v2-de ",
     {GPT2_WORDS}},
    {{0}, " starcoder refact command-r smollm codeshell exaone minerva-7b mellum2 ", {"\\p{N}", GPT2_WORDS}},
    {{.whole_words = true, .adds_bos = true},
     " llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano ",
     {LLAMA3_WORDS("\\p{N}{1,3}")}},
    {{0}, " dbrx smaug-bpe chatglm-bpe glm4 ", {LLAMA3_WORDS("\\p{N}{1,3}")}},
    {{.whole_words = true}, " minicpm5 ", {"\\p{N}{1,3}", LLAMA3_WORDS("\\p{N}+")}},
    {{0},
     " qwen2 deepseek-r1-qwen stablelm2 hunyuan solar-open megrez grok-2 kormo f2llmv2 ",
     {LLAMA3_WORDS("\\p{N}")}},
    {{0}, " laguna ", {"[^\\n]+|\\n+", LLAMA3_WORDS("\\p{N}")}},
    {{0},
     " qwen35 ",
     {CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^" BLANK
                   "\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" LINES_THEN_BLANKS}},
    {{0},
     " seed-coder ",
     {CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^" BLANK
                   "\\p{L}\\p{N}\\r\\n]+|" LINES_THEN_BLANKS}},
    {{0},
     " bailingmoe bailingmoe2 llada-moe ",
     {"'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}| ?[^" BLANK
      "\\p{L}\\p{N}]++[\\r\\n]*|[" BLANK "]*[\\r\\n]|" BLANKS}},
    {{0},
     " exaone-moe ",
     {CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}\\p{M}*+(?: \\p{L}\\p{M}*+)*+)++|\\p{N}| ?[^" BLANK
                   "\\p{L}\\p{N}]+[\\r\\n/]?|[" BLANK "]*[\\r\\n]|" BLANKS}},
    {{0},
     " gpt-4o llama4 kanana2 talkie minimax-m2 ",
     {CASED_WORDS(CAPITALS, SMALLS, CONTRACTIONS "?", "\\p{N}{1,3}", "\\r\\n/")}},
    {{.whole_words = true, .adds_bos = true},
     " tekken ",
     {CASED_WORDS(CAPITALS, SMALLS, "", "\\p{N}", "\\r\\n/")}},
    {{0},
     " kimi-k2 ",
     {"\\p{sc:Han}+|" CASED_WORDS(CAPITALS_NOT_HAN, SMALLS_NOT_HAN, CONTRACTIONS "?", "\\p{N}{1,3}",
                                  "\\r\\n")}},
    {{.whole_words = true},
     " youtu ",
     {"[\\x{ac00}-\\x{d7a3}\\x{3131}-\\x{318e}]+|[\\x{ff01}\\x{2026}\\x{201c}\\x{201d}\\x{2018}\\x{2019}"
      "\\x{2014}\\x{ff1a}\\x{ff1b}\\x{ff0c}\\x{3001}-\\x{303f}\\x{fe30}-\\x{fe4f}]+|"
      "[\\x{3105}-\\x{312f}]+|" HAN_AND_KANA,
      CASED_WORDS(CAPITALS, SMALLS, CONTRACTIONS "?", "\\p{N}", "\\r\\n/")}},
    {{0}, " deepseek-v3 hunyuan-dense joyai-llm ", {"\\p{N}{1,3}", HAN_AND_KANA, DEEPSEEK3_WORDS}},
    {{0},
     " deepseek-llm ",
     {"[\\r\\n]", "[" BLANK "]?[" CASED_LETTERS "]+",
      "[" BLANK "]?[!-/:-~\\x{ff01}-\\x{ff0f}\\x{ff1a}-\\x{ff5e}\\x{2018}-\\x{201f}\\x{3000}-\\x{3002}]+",
      "(?<![" BLANK "])[" BLANK "]+$", DEEPSEEK_ASIAN, "\\p{N}+"}},
    {{0},
     " deepseek-coder ",
     {"[\\r\\n]", "[" BLANK "]?\\p{L}+", "[" BLANK "]?\\p{P}+", DEEPSEEK_ASIAN, "\\p{N}"}},
    {{0}, " falcon ", {"[\\p{P}$+<=>^~|`]+", GPT2_WORDS, "[0-9][0-9][0-9]"}},
    {{0}, " bloom gpt3-finnish poro-chat ", {BLOOM_WORDS}},
    {{0}, " viking ", {BLOOM_WORDS, "\\p{N}"}},
    {{.adds_bos = true},
     " chameleon ",
     {"<sentinel:[0-9]+>", "IMGIMG[A-I]{1,4}Z", "[\\t\\n]|    |  ", "\\p{N}", "[\\p{P}!-/:-@\\[-`{-~]",
      GPT2_WORDS}},
};

const struct pretokenizer_expressions *pretokenizer_find(struct bytes name)
{
    if (name.len == 0)
        name = BYTES_LITERAL("default");
    if (memchr(name.data, ' ', name.len))
        return NULL;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const char *at = table[i].names;
        while (at[1] != '\0') {
            const char *end = strchr(at + 1, ' ');
            if (bytes_equal(name, (struct bytes){at + 1, (size_t)(end - at - 1)}))
                return &table[i];
            at = end;
        }
    }
    return NULL;
}
