import torch
from torch import nn
from shared_prints import report

torch.manual_seed(1)
generator = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
critic = nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2), nn.Dropout(0.2), nn.Linear(8, 1))
for_generator = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.5, 0.9))
for_critic = torch.optim.RMSprop(critic.parameters(), lr=2e-3)


def penalty(real, fake):
    mixed = torch.lerp(real, fake, torch.rand(len(real), 1)).requires_grad_()
    (gradient,) = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)
    return (gradient.norm(dim=1) - 1).square().mean()


for step in range(8):
    for _ in range(2):
        real, fake = torch.randn(8, 2) + 2, generator(torch.randn(8, 3)).detach()
        for_critic.zero_grad(set_to_none=False)
        loss = critic(fake).mean() - critic(real).mean() + 10 * penalty(real, fake)
        loss.backward()
        for_critic.step()
    for_generator.zero_grad()
    worth = -critic(generator(torch.randn(8, 3))).mean()
    worth.backward()
    for_generator.step()
    print(step, loss.item().hex(), worth.item().hex())
report([generator, critic], [for_generator, for_critic])
