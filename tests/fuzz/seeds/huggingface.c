/* SPDX-License-Identifier: MIT */
/* Seeds of fuzz_huggingface: a byte that picks the file, then its text. */

#include "tests/fuzz/driver.h"

#include <string.h>

/* Texts of '1' are config.json, of '2' and '5' tokenizer.json: the characters' numbers are 1 and 2 modulo 3.
 */
static const char *const texts[] = {
    "1{\"model_type\":\"llama\",\"vocab_size\":8,\"hidden_size\":32,\"intermediate_size\":32,"
    "\"num_hidden_layers\":1,\"num_attention_heads\":4,\"max_position_embeddings\":64,\"rope_scaling\":{"
    "\"rope_type\":\"llama3\",\"factor\":8.0,\"low_freq_factor\":1.0,\"high_freq_factor\":4.0,"
    "\"original_max_position_embeddings\":32}}",
    "1{\"model_type\":\"qwen3\",\"vocab_size\":8,\"hidden_size\":32,\"intermediate_size\":32,\"head_dim\":16,"
    "\"num_hidden_layers\":2,\"num_attention_heads\":4,\"num_key_value_heads\":2,\"rms_norm_eps\":1e-6,"
    "\"max_position_embeddings\":64,\"tie_word_embeddings\":true,\"rope_parameters\":{\"rope_theta\":1e6,"
    "\"rope_type\":\"yarn\",\"factor\":4.0,\"attention_factor\":1.1}}",
    "1{\"model_type\":\"gemma3\",\"text_config\":{\"model_type\":\"gemma3_text\",\"hidden_size\":32,"
    "\"num_hidden_layers\":2,\"intermediate_size\":32,\"vocab_size\":8,\"layer_types\":[\"sliding_"
    "attention\","
    "\"sliding_attention\"],\"rope_parameters\":{\"full_attention\":{\"rope_type\":\"linear\",\"factor\":8},"
    "\"sliding_attention\":{\"rope_type\":\"default\",\"rope_theta\":10000}}}}",
    "1{\"model_type\":\"gpt_oss\",\"vocab_size\":8,\"hidden_size\":32,\"intermediate_size\":32,"
    "\"num_hidden_layers\":2,\"num_attention_heads\":2,\"num_local_experts\":3,\"experts_per_token\":2,"
    "\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":32,\"truncate\":false,\"beta_fast\":32},"
    "\"quantization_config\":{\"quant_method\":\"mxfp4\"}}",
    "1{\"model_type\":\"qwen3_5_moe\",\"text_config\":{\"model_type\":\"qwen3_5_moe_text\",\"vocab_size\":8,"
    "\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":2,\"max_position_embeddings\":64,"
    "\"num_experts\":3,\"num_experts_per_tok\":2,\"full_attention_interval\":2,\"rope_parameters\":{"
    "\"rope_type\":\"default\",\"mrope_section\":[11,11,10]}},\"quantization_config\":{\"quant_method\":"
    "\"compressed-tensors\",\"format\":\"float-quantized\"}}",
    "1{\"model_type\":\"gemma4\",\"text_config\":{\"vocab_size\":8,\"hidden_size\":32,\"intermediate_size\":"
    "32,"
    "\"num_hidden_layers\":3,\"num_attention_heads\":4,\"num_key_value_heads\":2,\"head_dim\":8,\"global_"
    "head_"
    "dim\":16,\"attention_k_eq_v\":true,\"num_global_key_value_heads\":1,\"num_kv_shared_layers\":1,\"use_"
    "double_"
    "wide_mlp\":true,\"hidden_size_per_layer_input\":4,\"vocab_size_per_layer_input\":8,\"enable_moe_block\":"
    "true,\"num_experts\":2,\"top_k_experts\":1,\"moe_intermediate_size\":20,\"layer_types\":[\"sliding_"
    "attention\",\"full_attention\",\"sliding_attention\"]}}",
    "1{\"model_type\":\"gemma4_text\",\"vocab_size\":8,\"num_hidden_layers\":2,\"hidden_size_per_layer_"
    "input\":0,"
    "\"layer_types\":[\"sliding_attention\",\"full_attention\"],\"per_layer_config\":{\"1\":{\"head_dim\":16,"
    "\"num_key_value_heads\":1}},\"rope_parameters\":{\"full_attention\":{\"rope_type\":\"proportional\","
    "\"partial_rotary_factor\":0.25,\"factor\":2},\"sliding_attention\":{\"rope_type\":\"default\"}}}",
    "1{\"model_type\":\"phi3\",\"vocab_size\":8,\"hidden_size\":16,\"intermediate_size\":32,"
    "\"num_hidden_layers\":1,\"num_attention_heads\":4,\"max_position_embeddings\":64,"
    "\"original_max_position_embeddings\":16,\"rope_scaling\":{\"type\":\"longrope\",\"short_factor\":[1,2],"
    "\"long_factor\":[1.5,3]}}",
    "1{\"word_embedding_dimension\":32,\"pooling_mode_cls_token\":false,\"pooling_mode_lasttoken\":true}",
    "1{\"pooling_mode\":\"mean\"}",
    "2{\"added_tokens\":[{\"id\":6,\"content\":\"<|end|>\",\"special\":true}],\"normalizer\":null,"
    "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":true},"
    "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"<|end|>\"}},"
    "{\"Sequence\":{}}]},\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"c\":3},"
    "\"merges\":[\"a b\",[\"ab\",\"c\"]]}}",
    "2{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":"
    "\"\xe2\x96\x81\"},"
    "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\xe2\x96\x81\"}]},\"model\":{"
    "\"type\":\"BPE\",\"unk_token\":\"<unk>\",\"byte_fallback\":true,\"vocab\":{\"<unk>\":0,\"<0x21>\":1,"
    "\"\xe2\x96\x81\":2,\"a\":3,\"\xe2\x96\x81"
    "a\":4},\"merges\":[\"\xe2\x96\x81 a\"]}}",
    "5{\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\" "
    "\"},\"content\":\"\xe2\x96\x81\"},\"model\":{"
    "\"type\":\"BPE\",\"byte_fallback\":true,\"vocab\":{\"a\":0,\"<0x21>\":1,\"aa\":2},\"merges\":[\"a a\"]},"
    "\"added_tokens\":[{\"id\":3,\"content\":\"<|channel>\",\"special\":true}]}",
};

/* '0' is a SafeTensors file: the length of its header, the header, the data. */
static const char header[] = "{\"__metadata__\":{\"format\":\"pt\"},\"a\":{\"dtype\":\"F16\",\"shape\":[2,4],"
                             "\"data_offsets\":[0,16]},\"b\":{\"dtype\":\"BF16\",\"shape\":[3],"
                             "\"data_offsets\":[16,22]}}  ";

void fuzz_seeds(void)
{
    char file[1 + 8 + sizeof header + 22] = {'0', (char)(sizeof header - 1)};
    memcpy(file + 9, header, sizeof header - 1);
    fuzz_add_seed(file, sizeof file - 1);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        fuzz_add_seed(texts[i], strlen(texts[i]));
}
