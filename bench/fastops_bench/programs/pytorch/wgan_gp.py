"""A Wasserstein GAN with gradient penalty on points of eight Gaussians."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from fastops_bench.programs import data
from fastops_bench.programs.shared import Times, options, prepare_torch

NOISE, BATCH = 8, 64
CRITIC_STEPS, PENALTY = 5, 10.0


def make_generator():
    return nn.Sequential(
        nn.Linear(NOISE, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2)
    )


def make_critic():
    return nn.Sequential(
        nn.Linear(2, 64),
        nn.LeakyReLU(0.2),
        nn.Dropout(0.1),
        nn.Linear(64, 64),
        nn.LeakyReLU(0.2),
        nn.Dropout(0.1),
        nn.Linear(64, 1),
    )


def gradient_penalty(critic, real, fake):
    alpha = torch.rand(len(real), 1)
    interpolated = (real + alpha * (fake - real)).requires_grad_(True)
    scores = critic(interpolated)
    (grads,) = torch.autograd.grad(scores.sum(), interpolated, create_graph=True)
    norm = torch.sqrt(grads.square().sum(1) + 1e-12)
    return ((norm - 1.0) ** 2).mean()


def endless(loader):
    while True:
        for (points,) in loader:
            yield points


def main():
    args = options("A WGAN with gradient penalty.", steps=200)
    prepare_torch(args.seed)
    points = torch.as_tensor(data.points(2048, args.seed))
    times = Times("step")
    loader = DataLoader(TensorDataset(points), batch_size=BATCH, shuffle=True, drop_last=True)
    critic, generator = make_critic(), make_generator()
    c_optimizer = torch.optim.Adam(critic.parameters(), 1e-4, betas=(0.5, 0.9))
    g_optimizer = torch.optim.Adam(generator.parameters(), 1e-4, betas=(0.5, 0.9))
    batches = endless(loader)
    losses = []
    for _ in range(args.steps):
        for _ in range(CRITIC_STEPS):
            real = next(batches)
            fake = generator(torch.randn(BATCH, NOISE)).detach()
            c_loss = critic(fake).mean() - critic(real).mean()
            c_loss = c_loss + PENALTY * gradient_penalty(critic, real, fake)
            c_optimizer.zero_grad()
            c_loss.backward()
            c_optimizer.step()
        g_loss = -critic(generator(torch.randn(BATCH, NOISE))).mean()
        g_optimizer.zero_grad()
        g_loss.backward()
        g_optimizer.step()
        losses += [c_loss.item(), g_loss.item()]
        times.lap()
    parameters = [*critic.parameters(), *generator.parameters()]
    times.report(losses, [weight.detach().numpy() for weight in parameters])


if __name__ == "__main__":
    main()
