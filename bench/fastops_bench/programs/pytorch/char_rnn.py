"""A character-level recurrent network, and text that it generates."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from fastops_bench.programs import data
from fastops_bench.programs.shared import Times, options, prepare_torch

SEQ_LENGTH, BATCH = 32, 32
EMBEDDING_DIM, RNN_UNITS = 32, 64


class MyModel(nn.Module):
    def __init__(self, vocab_size, embedding_dim, rnn_units):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embedding_dim)
        self.gru = nn.GRU(embedding_dim, rnn_units, batch_first=True)
        self.dense = nn.Linear(rnn_units, vocab_size)

    def forward(self, inputs, states=None):
        x, states = self.gru(self.embedding(inputs), states)
        return self.dense(x), states


def main():
    args = options("A character-level recurrent network.", epochs=40, sentences=500, chars=60)
    prepare_torch(args.seed)
    text = data.text(args.sentences, args.seed)
    times = Times("step")
    vocab = ["[UNK]", *sorted(set(text))]
    ids = {char: place for place, char in enumerate(vocab)}
    all_ids = torch.tensor([ids[char] for char in text])
    sequences = all_ids[: len(all_ids) // (SEQ_LENGTH + 1) * (SEQ_LENGTH + 1)]
    sequences = sequences.view(-1, SEQ_LENGTH + 1)
    dataset = TensorDataset(sequences[:, :-1], sequences[:, 1:])
    loader = DataLoader(dataset, batch_size=BATCH, shuffle=True, drop_last=True)
    model = MyModel(len(vocab), EMBEDDING_DIM, RNN_UNITS)
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    mask = torch.zeros(len(vocab))
    mask[0] = -1e9  # never generate "[UNK]"
    losses, texts = [], []
    for _ in range(args.epochs):
        total = 0.0
        for inputs, labels in loader:
            logits, _ = model(inputs)
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        losses.append(total / len(loader))

        states, result = None, ["t"]
        with torch.no_grad():
            for _ in range(args.chars):
                logits, states = model(torch.tensor([[ids[result[-1]]]]), states)
                chances = torch.softmax(logits[:, -1] + mask, -1)
                result.append(vocab[torch.multinomial(chances, 1).item()])
        texts.append("".join(result))
        times.lap(len(loader))
    times.report(losses, [weight.detach().numpy() for weight in model.parameters()])


if __name__ == "__main__":
    main()
