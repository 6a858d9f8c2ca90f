"""A training loop over a dataset, with metrics for each epoch."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from fastops_bench.programs.data import CLASSES, FEATURES, labeled_rows
from fastops_bench.programs.shared import Times, options, prepare_torch

BATCH = 32


class Mean:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def update(self, values):
        self.total += values.sum().item()
        self.count += values.numel()

    def result(self):
        return self.total / self.count


def main():
    args = options("A training loop.", epochs=100, rows=600, traced=0)
    prepare_torch(args.seed)
    train, test = labeled_rows(args.rows, args.seed), labeled_rows(args.rows // 4, args.seed + 1)
    times = Times("step")
    train_loader = DataLoader(
        TensorDataset(*map(torch.as_tensor, train)), batch_size=BATCH, shuffle=True
    )
    test_loader = DataLoader(TensorDataset(*map(torch.as_tensor, test)), batch_size=BATCH)
    model = nn.Sequential(
        nn.Linear(FEATURES, 32),
        nn.ReLU(),
        nn.Linear(32, 32),
        nn.ReLU(),
        nn.Dropout(0.1),
        nn.Linear(32, CLASSES),
    )
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    results = []
    for _ in range(args.epochs):
        epoch_loss, epoch_accuracy = Mean(), Mean()
        for x, y in train_loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            epoch_loss.update(loss.detach())
            with torch.no_grad():
                epoch_accuracy.update((model(x).argmax(1) == y).float())
        results += [epoch_loss.result(), epoch_accuracy.result()]

        test_accuracy = Mean()
        model.eval()
        with torch.no_grad():
            for x, y in test_loader:
                test_accuracy.update((model(x).argmax(1) == y).float())
        model.train()
        results.append(test_accuracy.result())
        times.lap(len(train_loader))
    times.report(results, [weight.detach().numpy() for weight in model.parameters()])


if __name__ == "__main__":
    main()
