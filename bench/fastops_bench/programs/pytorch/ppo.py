"""Proximal policy optimization on CartPole."""

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

from fastops_bench.programs.shared import CartPole, Times, options, prepare_torch

GAMMA, LAMBDA, CLIP, ENTROPY = 0.99, 0.95, 0.2, 0.01
EPOCHS, BATCH = 4, 64
LEARNING_RATE = 2.5e-3


class ActorCritic(nn.Module):
    def __init__(self, actions):
        super().__init__()
        self.actor = nn.Sequential(
            nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, actions)
        )
        self.critic = nn.Sequential(
            nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1)
        )

    def forward(self, observations):
        return self.actor(observations), self.critic(observations).squeeze(-1)


def advantages_of(rewards, values, dones, last_value):
    advantages = np.zeros(len(rewards), np.float32)
    running, following = 0.0, last_value
    for t in reversed(range(len(rewards))):
        alive = 1.0 - dones[t]
        delta = rewards[t] + GAMMA * following * alive - values[t]
        running = delta + GAMMA * LAMBDA * alive * running
        advantages[t] = running
        following = values[t]
    return advantages


def update(model, optimizer, observations, actions, old_log_probs, advantages, returns):
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    logits, values = model(observations)
    distribution = Categorical(logits=logits)
    ratio = (distribution.log_prob(actions) - old_log_probs).exp()
    clipped = ratio.clamp(1 - CLIP, 1 + CLIP)
    policy_loss = -torch.min(ratio * advantages, clipped * advantages).mean()
    value_loss = 0.5 * (returns - values).square().mean()
    loss = policy_loss + 0.5 * value_loss - ENTROPY * distribution.entropy().mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    return loss


def main():
    args = options("PPO on CartPole.", iterations=20, steps=512)
    prepare_torch(args.seed)
    np.random.seed(args.seed)
    times = Times("step")
    env = CartPole()
    model = ActorCritic(2)
    optimizer = torch.optim.Adam(model.parameters(), LEARNING_RATE, eps=1e-5)
    observation, _ = env.reset(seed=args.seed)
    length, lengths, losses = 0, [], []
    for iteration in range(args.iterations):
        optimizer.param_groups[0]["lr"] = LEARNING_RATE * (1.0 - iteration / args.iterations)
        observations, actions, log_probs, rewards, values, dones = [], [], [], [], [], []
        for _ in range(args.steps):
            with torch.no_grad():
                logits, value = model(torch.as_tensor(observation).unsqueeze(0))
                distribution = Categorical(logits=logits)
                action = distribution.sample()
                log_prob = distribution.log_prob(action)
            observations.append(observation)
            actions.append(action.item())
            log_probs.append(log_prob.item())
            values.append(value.item())
            observation, reward, terminated, truncated, _ = env.step(actions[-1])
            rewards.append(reward)
            dones.append(terminated or truncated)
            length += 1
            if dones[-1]:
                lengths.append(length)
                length = 0
                observation, _ = env.reset()
        with torch.no_grad():
            _, last_value = model(torch.as_tensor(observation).unsqueeze(0))
        advantages = advantages_of(rewards, values, dones, last_value.item())
        data = [
            torch.as_tensor(np.array(observations)),
            torch.as_tensor(actions),
            torch.as_tensor(log_probs),
            torch.as_tensor(advantages),
            torch.as_tensor(advantages + np.array(values, np.float32)),
        ]
        for _ in range(EPOCHS):
            order = torch.randperm(args.steps)
            for rows in order.split(BATCH):
                losses.append(update(model, optimizer, *(array[rows] for array in data)).item())
        times.lap(args.steps)
    times.report(lengths + losses, [weight.detach().numpy() for weight in model.parameters()])


if __name__ == "__main__":
    main()
