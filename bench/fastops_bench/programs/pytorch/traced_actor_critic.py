"""An actor-critic on CartPole, which plays an episode and learns from it."""

import numpy as np
import torch
from torch import nn

from fastops_bench.programs.shared import CartPole, Times, options, prepare_torch

GAMMA = 0.99

env = CartPole()
eps = np.finfo(np.float32).eps.item()


class ActorCritic(nn.Module):
    """A network with a common layer, and heads for actions and for values."""

    def __init__(self, num_actions, num_hidden_units):
        super().__init__()
        self.common = nn.Linear(4, num_hidden_units)
        self.actor = nn.Linear(num_hidden_units, num_actions)
        self.critic = nn.Linear(num_hidden_units, 1)

    def forward(self, inputs):
        x = torch.relu(self.common(inputs))
        return self.actor(x), self.critic(x)


def run_episode(state, model):
    action_probs, values, rewards = [], [], []
    done = False
    while not done:
        action_logits_t, value = model(torch.as_tensor(state).unsqueeze(0))
        action_probs_t = torch.softmax(action_logits_t, -1)
        action = torch.multinomial(action_probs_t.detach(), 1)[0, 0].item()
        values.append(value.squeeze())
        action_probs.append(action_probs_t[0, action])
        state, reward, terminated, truncated, _ = env.step(action)
        done = terminated or truncated
        rewards.append(reward)
    return torch.stack(action_probs), torch.stack(values), rewards


def get_expected_return(rewards):
    returns, discounted_sum = [], 0.0
    for reward in reversed(rewards):
        discounted_sum = reward + GAMMA * discounted_sum
        returns.append(discounted_sum)
    returns = torch.tensor(returns[::-1])
    return (returns - returns.mean()) / (returns.std(correction=0) + eps)


def main():
    args = options("An actor-critic.", episodes=400)
    prepare_torch(args.seed)
    times = Times("step")
    model = ActorCritic(2, 64)
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    lengths, losses = [], []
    for episode in range(args.episodes):
        initial_state, _ = env.reset(seed=args.seed + episode)
        action_probs, values, rewards = run_episode(initial_state, model)
        returns = get_expected_return(rewards)
        advantage = (returns - values).detach()
        loss = -(action_probs.log() * advantage).sum()
        loss = loss + nn.functional.huber_loss(values, returns, reduction="sum")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        lengths.append(len(rewards))
        losses.append(loss.item())
        times.lap(len(rewards))
    times.report(lengths + losses, [weight.detach().numpy() for weight in model.parameters()])


if __name__ == "__main__":
    main()
