import torch
from torch import nn
import torch.nn.functional as F
from trainer import Trainer

NET


DATA
model = Net()
opt = OPTIMIZER(model.parameters())
Trainer(model, opt, list(zip(X.split(8), Y.split(8)))).fit()
