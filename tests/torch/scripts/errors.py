"""Errors that pass through what is watched look as they ever did, but for the frames of ours that the script sees where it catches them."""
import traceback

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from shared_prints import report



def show(error):
    print(type(error).__name__, error)
    for frame in traceback.extract_tb(error.__traceback__):
        if "/whynan/" not in frame.filename:
            print("   ", frame.filename.rpartition("/")[2], frame.lineno, frame.name, frame.line)


w = torch.ones(2, requires_grad=True)
sgd = torch.optim.SGD([w], lr=0.1)
scaler = torch.amp.GradScaler("cpu")


class Broken(Dataset):
    def __len__(self):
        return 9

    def __getitem__(self, index):
        return torch.ones(1) / (5 - index) if index != 5 else {}["five"]


class Fails(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        raise ValueError("mine")


def twice():
    loss = (w * w).sum()
    loss.backward()
    loss.backward()


def without_graph():
    torch.ones(2).sum().backward()


def not_in_the_graph():
    torch.autograd.grad((w * w).sum(), torch.ones(1, requires_grad=True))


def in_a_backward():
    Fails.apply(w).sum().backward()


def in_a_hook():
    v = w * 1
    v.register_hook(lambda gradient: 1 / 0)
    v.sum().backward()


def in_a_loader():
    for x in DataLoader(Broken(), 2):
        (w * x.sum()).sum().backward()


def in_a_closure():
    def closure():
        raise ZeroDivisionError

    w.sum().backward()
    sgd.step(closure)


def without_a_closure():
    torch.optim.LBFGS([w]).step()


def unscaled_twice():
    scaler.scale(w.sum()).backward()
    scaler.unscale_(sgd)
    scaler.unscale_(sgd)


def nothing_scaled():
    torch.amp.GradScaler("cpu").step(sgd)


def the_same_parameter():
    sgd.add_param_group({"params": [w]})


def no_parameters():
    torch.optim.Adam([], lr=1)


def bad_names():
    for register in (nn.Module().register_buffer, nn.Module().register_parameter):
        try:
            register("a.b", None)
        except KeyError as error:
            show(error)
    nn.Module.register_buffer(nn.Module(), "a", 3)


def bad_init():
    nn.init.xavier_uniform_(torch.zeros(1))


def bad_compile():
    torch.compile(5)


w.sum().backward()
sgd.step()
for attempt in (twice, without_graph, not_in_the_graph, in_a_backward, in_a_hook, in_a_loader, in_a_closure, without_a_closure,
                unscaled_twice, nothing_scaled, the_same_parameter, no_parameters, bad_names, bad_init, bad_compile):
    try:
        attempt()
        print(attempt.__name__, "did not fail")
    except Exception as error:
        show(error)
report(optimizers=[sgd], others=[w, w.grad])
