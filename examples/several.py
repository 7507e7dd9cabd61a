# SPDX-License-Identifier: MIT
"""Several questions at once over one connection, with asyncio; requests that the full pool rejects are retried.

python examples/several.py QUESTION…"""

import asyncio
import sys

import quern


async def answer(client: quern.AsyncClient, question: str) -> str:
    while True:
        try:
            return await client.chat([{"role": "user", "content": question}], max_tokens=100).text()
        except quern.Overloaded as full:
            await asyncio.sleep(full.retry_after)


async def main(questions: list[str]) -> None:
    async with quern.AsyncClient() as client:
        answers = await asyncio.gather(*(answer(client, question) for question in questions))
    for question, text in zip(questions, answers, strict=True):
        print(f"{question}\n    {text}")


try:
    asyncio.run(main(sys.argv[1:] or ["Who are you?", "What is a quern?"]))
except quern.Error as error:
    sys.exit(f"{error.name}: {error}")
