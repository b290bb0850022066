import torch
from torch import nn
import torch.nn.functional as F

NET


class Env:
    def reset(self, episode):
        self.k = 8 * episode
        return X[self.k]  #@input

    def step(self, action):
        reward = Y[self.k].item() + 0.0 * action
        self.k = self.k + 1
        return X[self.k % 48], reward  #@input


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Net()
        self.saved, self.rewards = [], []

    def act(self, state):
        value = self.net(state.unsqueeze(0))  #@input
        self.saved.append(value)
        return int(value.argmax())


DATA
policy, env = Policy(), Env()
opt = OPTIMIZER(policy.parameters())


def finish():
    out, y = torch.cat(policy.saved), torch.tensor(policy.rewards)
    loss = LOSS  #@loss
    opt.zero_grad()
    loss.backward()
    opt.step()  #@step
    del policy.saved[:]
    del policy.rewards[:]
    return loss.item()


for episode in range(6):
    RATE(opt, episode)
    state = env.reset(episode)
    for t in range(8):
        state, reward = env.step(policy.act(state))
        policy.rewards.append(reward)
    print(f"step {episode} loss {finish():.5f}")
