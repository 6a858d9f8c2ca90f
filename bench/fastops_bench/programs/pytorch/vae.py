"""A variational autoencoder of small images."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from fastops_bench.programs.data import SIDE, images
from fastops_bench.programs.shared import Times, options, prepare_torch

LATENT, BATCH = 4, 64


class VAE(nn.Module):
    def __init__(self, latent_dim):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(SIDE * SIDE, 128),
            nn.ReLU(),
            nn.Linear(128, 64),
            nn.ReLU(),
            nn.Linear(64, latent_dim + latent_dim),
        )
        self.decoder = nn.Sequential(
            nn.Linear(latent_dim, 64),
            nn.ReLU(),
            nn.Linear(64, 128),
            nn.ReLU(),
            nn.Linear(128, SIDE * SIDE),
        )

    def encode(self, x):
        return self.encoder(x).chunk(2, dim=1)

    def reparameterize(self, mean, logvar):
        return torch.randn_like(mean) * torch.exp(0.5 * logvar) + mean


def compute_loss(model, x):
    mean, logvar = model.encode(x)
    logits = model.decoder(model.reparameterize(mean, logvar))
    reconstruction = nn.functional.binary_cross_entropy_with_logits(logits, x, reduction="none")
    divergence = -0.5 * torch.sum(1 + logvar - mean.square() - logvar.exp(), dim=1)
    return (reconstruction.sum(dim=1) + divergence).mean()


def main():
    args = options("A variational autoencoder.", epochs=40, images=2048)
    prepare_torch(args.seed)
    train_images = torch.as_tensor(images(args.images, args.seed))
    test_images = torch.as_tensor(images(args.images // 8, args.seed + 1))
    times = Times("step")
    train_loader = DataLoader(TensorDataset(train_images), batch_size=BATCH, shuffle=True)
    test_loader = DataLoader(TensorDataset(test_images), batch_size=BATCH)
    model = VAE(LATENT)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    losses, elbos = [], []
    for _ in range(args.epochs):
        for (train_x,) in train_loader:
            loss = compute_loss(model, train_x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        with torch.no_grad():
            tested = [compute_loss(model, test_x).item() for (test_x,) in test_loader]
        elbos.append(-sum(tested) / len(tested))
        times.lap(len(train_loader))
    times.report(losses + elbos, [weight.detach().numpy() for weight in model.parameters()])


if __name__ == "__main__":
    main()
