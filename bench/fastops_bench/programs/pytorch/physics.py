"""A physics-informed neural network for Burgers' equation."""

from itertools import pairwise

import numpy as np
import torch
from torch import nn

from fastops_bench.programs.data import collocation
from fastops_bench.programs.shared import Times, options, prepare_torch

VISCOSITY = 0.01 / np.pi


class PINN(nn.Module):
    def __init__(self, hidden_layers=4, neurons=20):
        super().__init__()
        sizes = [2, *[neurons] * hidden_layers]
        self.hidden = nn.ModuleList(nn.Linear(*pair) for pair in pairwise(sizes))
        self.out = nn.Linear(neurons, 1)
        for layer in self.hidden:
            nn.init.xavier_normal_(layer.weight)

    def forward(self, inputs):
        t, x = inputs[:, 0:1], inputs[:, 1:2]
        z = torch.cat([2.0 * t - 1.0, x], dim=1)
        for layer in self.hidden:
            z = torch.tanh(layer(z))
        return self.out(z)


def derivative(y, x):
    return torch.autograd.grad(y, x, grad_outputs=torch.ones_like(y), create_graph=True)[0]


def residual(model, t, x):
    u = model(torch.cat([t, x], dim=1))
    u_x, u_t = derivative(u, x), derivative(u, t)
    u_xx = derivative(u_x, x)
    return u_t + u * u_x - VISCOSITY * u_xx


def compute_loss(model, t, x, data):
    loss = residual(model, t, x).square().mean()
    for points, u in data:
        loss = loss + (u - model(points)).square().mean()
    return loss


def main():
    args = options("A physics-informed neural network.", steps=700)
    prepare_torch(args.seed)
    t, x, data = collocation(args.seed)
    times = Times("step")
    t, x = torch.as_tensor(t).requires_grad_(True), torch.as_tensor(x).requires_grad_(True)
    data = [(torch.as_tensor(points), torch.as_tensor(u)) for points, u in data]
    model = PINN()
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    losses = []
    for step in range(args.steps):
        optimizer.param_groups[0]["lr"] = 1e-2 if step <= 100 else 1e-3 if step <= 500 else 5e-4
        loss = compute_loss(model, t, x, data)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        times.lap()
    times.report(losses, [weight.detach().numpy() for weight in model.parameters()])


if __name__ == "__main__":
    main()
