"""Twin delayed deep deterministic policy gradients on a pendulum."""

import copy

import numpy as np
import torch
from torch import nn

from fastops_bench.programs.data import ReplayBuffer
from fastops_bench.programs.shared import Pendulum, Times, options, prepare_torch

BATCH = 64


class Actor(nn.Module):
    def __init__(self, state_dim, action_dim, max_action):
        super().__init__()
        self.l1 = nn.Linear(state_dim, 64)
        self.l2 = nn.Linear(64, 64)
        self.l3 = nn.Linear(64, action_dim)
        self.max_action = max_action

    def forward(self, state):
        a = torch.relu(self.l1(state))
        a = torch.relu(self.l2(a))
        return self.max_action * torch.tanh(self.l3(a))


class Critic(nn.Module):
    def __init__(self, state_dim, action_dim):
        super().__init__()
        self.l1 = nn.Linear(state_dim + action_dim, 64)
        self.l2 = nn.Linear(64, 64)
        self.l3 = nn.Linear(64, 1)
        self.l4 = nn.Linear(state_dim + action_dim, 64)
        self.l5 = nn.Linear(64, 64)
        self.l6 = nn.Linear(64, 1)

    def forward(self, state, action):
        both = torch.cat([state, action], 1)
        q1 = self.l3(torch.relu(self.l2(torch.relu(self.l1(both)))))
        q2 = self.l6(torch.relu(self.l5(torch.relu(self.l4(both)))))
        return q1, q2


class TD3:
    def __init__(
        self,
        state_dim,
        action_dim,
        max_action,
        discount=0.99,
        tau=0.005,
        policy_noise=0.2,
        noise_clip=0.5,
        policy_freq=2,
    ):
        self.actor = Actor(state_dim, action_dim, max_action)
        self.actor_target = copy.deepcopy(self.actor)
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), 1e-3)
        self.critic = Critic(state_dim, action_dim)
        self.critic_target = copy.deepcopy(self.critic)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), 1e-3)
        self.max_action = max_action
        self.discount = discount
        self.tau = tau
        self.policy_noise = policy_noise * max_action
        self.noise_clip = noise_clip * max_action
        self.policy_freq = policy_freq
        self.total_it = 0

    @torch.no_grad()
    def select_action(self, state):
        return self.actor(torch.as_tensor(state).unsqueeze(0))[0].numpy()

    def train(self, replay_buffer, batch_size=BATCH):
        self.total_it += 1
        batch = map(torch.as_tensor, replay_buffer.sample(batch_size))
        state, action, next_state, reward, not_done = batch
        with torch.no_grad():
            noise = torch.randn_like(action) * self.policy_noise
            noise = noise.clamp(-self.noise_clip, self.noise_clip)
            next_action = self.actor_target(next_state) + noise
            next_action = next_action.clamp(-self.max_action, self.max_action)
            target_q1, target_q2 = self.critic_target(next_state, next_action)
            target_q = reward + not_done * self.discount * torch.min(target_q1, target_q2)
        q1, q2 = self.critic(state, action)
        loss = nn.functional.mse_loss(q1, target_q) + nn.functional.mse_loss(q2, target_q)
        self.critic_optimizer.zero_grad()
        loss.backward()
        self.critic_optimizer.step()

        if self.total_it % self.policy_freq == 0:
            actor_loss = -self.critic(state, self.actor(state))[0].mean()
            self.actor_optimizer.zero_grad()
            actor_loss.backward()
            self.actor_optimizer.step()
            with torch.no_grad():
                for model, target in (
                    (self.critic, self.critic_target),
                    (self.actor, self.actor_target),
                ):
                    for param, target_param in zip(model.parameters(), target.parameters()):
                        target_param.copy_(self.tau * param + (1 - self.tau) * target_param)
        return loss


def main():
    args = options("TD3 on a pendulum.", steps=6000, start=500, lap=100)
    prepare_torch(args.seed)
    np.random.seed(args.seed)
    times = Times("step")
    env = Pendulum()
    policy = TD3(3, 1, env.TORQUE)
    replay_buffer = ReplayBuffer(3, 1)
    state, _ = env.reset(seed=args.seed)
    episode_reward, returns, losses = 0.0, [], []
    for t in range(1, args.steps + 1):
        if t < args.start:
            action = np.random.uniform(-env.TORQUE, env.TORQUE, 1).astype(np.float32)
        else:
            action = policy.select_action(state)
            action = action + np.random.normal(0, 0.1 * env.TORQUE, size=1).astype(np.float32)
            action = action.clip(-env.TORQUE, env.TORQUE)
        next_state, reward, terminated, truncated, _ = env.step(action)
        replay_buffer.add(state, action, next_state, reward, float(terminated))
        state = next_state
        episode_reward += reward
        if t >= args.start:
            losses.append(policy.train(replay_buffer).item())
        if terminated or truncated:
            returns.append(episode_reward)
            episode_reward = 0.0
            state, _ = env.reset()
        if t % args.lap == 0:
            times.lap(args.lap)
    weights = [weight.detach().numpy() for weight in policy.actor.parameters()]
    times.report(returns + losses, weights)


if __name__ == "__main__":
    main()
