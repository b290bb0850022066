import torch
from torch import nn
import torch.nn.functional as F

NET


DATA
model = Net()
opt = OPTIMIZER(model.parameters())
torch.serialization.add_safe_globals([Net])
for i, (x, y) in enumerate(zip(X.split(8), Y.split(8))):
    RATE(opt, i)
    out = model(x)
    loss = LOSS  #@loss
    opt.zero_grad()
    loss.backward()
    opt.step()  #@step
    print(f"step {i} loss {loss.item():.5f}")
    torch.save({"model": model, "step": i}, "last.pt")
    kept = torch.load("last.pt", weights_only=False)
    assert type(kept["model"]) is Net and kept["step"] == i
    model.load_state_dict(kept["model"].state_dict())
