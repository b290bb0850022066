import asyncio
import torch
from torch import nn
import torch.nn.functional as F

NET


async def main():
    DATA
    model = Net()
    opt = OPTIMIZER(model.parameters())
    for i, (x, y) in enumerate(zip(X.split(8), Y.split(8))):
        RATE(opt, i)
        out = model(x)
        loss = LOSS  #@loss
        opt.zero_grad()
        loss.backward()
        opt.step()  #@step
        await asyncio.sleep(0)
        print(f"step {i} loss {loss.item():.5f}")
    await asyncio.sleep(0)


asyncio.run(main())
