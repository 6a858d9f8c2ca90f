"""Word vectors by skip-grams, with a sampled softmax."""

import math

import numpy as np
import torch
from torch import nn

from fastops_bench.programs import data
from fastops_bench.programs.shared import Times, options, prepare_torch

EMBEDDING_SIZE, NUM_SAMPLED, BATCH = 64, 32, 128


class SampledSoftmax(nn.Module):
    """A softmax over the true class and classes sampled by a log-uniform distribution."""

    def __init__(self, classes, features, sampled):
        super().__init__()
        self.weights = nn.Embedding(classes, features, sparse=True)
        self.biases = nn.Embedding(classes, 1, sparse=True)
        nn.init.trunc_normal_(self.weights.weight)
        nn.init.zeros_(self.biases.weight)
        self.sampled = sampled
        ranks = torch.arange(classes, dtype=torch.float32)
        self.chances = torch.log((ranks + 2) / (ranks + 1)) / math.log(classes + 1)

    def forward(self, inputs, labels):
        drawn = torch.multinomial(self.chances, self.sampled)
        expected = torch.log(self.sampled * self.chances)
        true = (inputs * self.weights(labels)).sum(1, keepdim=True) + self.biases(labels)
        true = true - expected[labels].unsqueeze(1)
        others = inputs @ self.weights(drawn).t() + self.biases(drawn).t() - expected[drawn]
        others = others.masked_fill(labels.unsqueeze(1) == drawn, -1e9)  # accidental hits
        logits = torch.cat([true, others], 1)
        return nn.functional.cross_entropy(logits, torch.zeros(len(labels), dtype=torch.long))


def main():
    args = options("Word vectors.", steps=4000, lap=50)
    prepare_torch(args.seed)
    corpus, rng = data.corpus(50_000, args.seed), np.random.default_rng(args.seed)
    times = Times("step")
    embedding = nn.Embedding(data.VOCABULARY, EMBEDDING_SIZE, sparse=True)
    sampled_loss = SampledSoftmax(data.VOCABULARY, EMBEDDING_SIZE, NUM_SAMPLED)
    parameters = [*embedding.parameters(), *sampled_loss.parameters()]
    optimizer = torch.optim.SGD(parameters, 0.5)
    x_test = torch.tensor([0, 1, 100, 200, 500, 900])
    losses, nearest = [], []
    for step in range(1, args.steps + 1):
        batch_x, batch_y = map(torch.as_tensor, data.neighbors(corpus, BATCH, rng))
        loss = sampled_loss(embedding(batch_x), batch_y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if step % args.lap == 0:
            with torch.no_grad():
                normed = nn.functional.normalize(embedding.weight, dim=1)
                similarity = nn.functional.normalize(embedding(x_test), dim=1) @ normed.t()
                nearest.append(similarity.topk(6).indices.numpy())
            times.lap(args.lap)
    weights = [weight.detach().numpy() for weight in parameters]
    times.report(losses, [*weights, *nearest])


if __name__ == "__main__":
    main()
