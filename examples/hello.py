# SPDX-License-Identifier: MIT
"""The smallest program: a prompt in, text out as it is made.

python examples/hello.py [PROMPT]"""

import sys

import quern

prompt = sys.argv[1] if len(sys.argv) > 1 else "Once upon a time"
try:
    with quern.Client() as client:
        for piece in client.generate(prompt, max_tokens=64):
            print(piece.text, end="", flush=True)
            if piece.end:
                print(f"\n({piece.end.output_tokens} tokens, {piece.end.reason})", file=sys.stderr)
except quern.Error as error:
    sys.exit(f"{error.name}: {error}")
