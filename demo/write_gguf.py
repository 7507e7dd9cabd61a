#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes a checkpoint as a GGUF file:  write_gguf.py CHECKPOINT... OUT.gguf [--type Q8_0|F16|F32]

Of several checkpoints of one model the file gets the mean of their weights, which is often better than each.
Matrices get the type asked for, norms stay F32. The output head is the embedding (tied), so there is no
output.weight. There is no default system message: the template renders just the messages and tools that are given.
"""
import argparse
import pathlib

import torch

import gguf
from model import Shape
from vocabulary import CONTROL, MARKS, Vocabulary

CHAT_TEMPLATE = pathlib.Path(__file__).with_name("chat_template.jinja")
FILE_TYPES = {"F32": 0, "F16": 1, "Q8_0": 7}
NORMAL_PIECE, CONTROL_PIECE, MARK_PIECE = 1, 3, 4  # a mark is "user-defined": one token, and text of the answer


def pairs(shape, vocabulary, type_name):
    u32, text = gguf.UINT32, gguf.STRING
    kinds_of = {**dict.fromkeys(CONTROL, CONTROL_PIECE), **dict.fromkeys(MARKS, MARK_PIECE)}
    kinds = [kinds_of.get(piece, NORMAL_PIECE) for piece in vocabulary.pieces]
    return [
        ("general.architecture", text, "llama"),
        ("general.type", text, "model"),
        ("general.name", text, "Quern demo"),
        ("general.license", text, "mit"),
        ("general.description", text, "A tiny chat model about Quern, trained by demo on generated text"),
        ("general.file_type", u32, FILE_TYPES[type_name]),
        ("general.quantization_version", u32, 2),
        ("general.alignment", u32, gguf.ALIGNMENT),
        ("llama.vocab_size", u32, shape.vocabulary),
        ("llama.context_length", u32, shape.context),
        ("llama.embedding_length", u32, shape.width),
        ("llama.block_count", u32, shape.layers),
        ("llama.feed_forward_length", u32, shape.feed_forward),
        ("llama.attention.head_count", u32, shape.heads),
        ("llama.attention.head_count_kv", u32, shape.kv_heads),
        ("llama.attention.layer_norm_rms_epsilon", gguf.FLOAT32, shape.norm_epsilon),
        ("llama.rope.dimension_count", u32, shape.head_width),
        ("llama.rope.freq_base", gguf.FLOAT32, shape.rope_base),
        ("tokenizer.ggml.model", text, "gpt2"),
        ("tokenizer.ggml.pre", text, "qwen2"),
        ("tokenizer.ggml.tokens", (gguf.ARRAY, text), vocabulary.pieces),
        ("tokenizer.ggml.token_type", (gguf.ARRAY, gguf.INT32), kinds),
        ("tokenizer.ggml.merges", (gguf.ARRAY, text), [" ".join(pair) for pair in vocabulary.merges]),
        ("tokenizer.ggml.eos_token_id", u32, vocabulary.end),
        ("tokenizer.ggml.eot_token_id", u32, vocabulary.end),
        ("tokenizer.ggml.padding_token_id", u32, vocabulary.end_of_text),
        ("tokenizer.ggml.add_bos_token", gguf.BOOL, False),
        ("tokenizer.chat_template", text, CHAT_TEMPLATE.read_text()),
    ]


def mean_weights(states):
    return {name: sum(state["model"][name].float() for state in states) / len(states) for name in states[0]["model"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=pathlib.Path, nargs="+")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--type", choices=sorted(FILE_TYPES), default="Q8_0")
    args = parser.parse_args()
    states = [torch.load(checkpoint, map_location="cpu") for checkpoint in args.checkpoint]
    shape = Shape(**states[0]["shape"])
    matrix_kind = gguf.TYPE_NAMES[args.type]
    tensors = [(name, value.float().numpy(), matrix_kind if value.dim() == 2 else gguf.F32)
               for name, value in mean_weights(states).items()]
    args.out.parent.mkdir(parents=True, exist_ok=True)
    gguf.write(args.out, pairs(shape, Vocabulary.load(), args.type), tensors)
    print(f"{args.out}: {args.out.stat().st_size / 1e6:.2f} MB, {args.type}")
    for state in states:
        print(f"  step {state['step']}, {state['tokens'] / 1e6:.1f} M tokens in {state['seconds'] / 60:.1f} min")


if __name__ == "__main__":
    main()
