import asyncio

from fake import Loss


async def numbers(n):
    for k in range(n):
        await asyncio.sleep(0)
        yield k


async def train():
    async for k in numbers(2):
        Loss(k).backward()
        for j in range(2):
            Loss((k, j)).backward()
            if j:
                continue
    for k in range(2):
        await asyncio.sleep(0)
        Loss(("awaited", k)).backward()
    async with asyncio.Lock():
        while k:
            Loss(k).backward()
            k -= 1
    found = [j async for j in numbers(2)]
    return found


async def main():
    return await asyncio.gather(train(), train())


print(asyncio.run(main()))
