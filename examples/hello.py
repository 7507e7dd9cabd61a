# SPDX-License-Identifier: MIT
"""The smallest program: sends a question and prints the answer as it is generated.

python examples/hello.py [QUESTION]

For a model without chat training use client.generate(TEXT), which continues the text."""

import sys

import quern

question = sys.argv[1] if len(sys.argv) > 1 else "What is Quern?"
try:
    with quern.Client() as client:
        for piece in client.chat([{"role": "user", "content": question}], max_tokens=64):
            print(piece.text, end="", flush=True)
            if piece.end:
                print(f"\n({piece.end.output_tokens} tokens, {piece.end.reason})", file=sys.stderr)
except quern.Error as error:
    sys.exit(f"{error.name}: {error}")
