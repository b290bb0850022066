import torch
from torch import nn
import torch.nn.functional as F


def criterion(out, y):
    return LOSS  #@loss
