"""A deep Q network on CartPole, with replay and a target network."""

import copy

import numpy as np
import torch
from torch import nn

from fastops_bench.programs.shared import CartPole, Times, options, prepare_torch

GAMMA = 0.99
BATCH = 32
EPSILON_MIN, EPSILON_MAX, EPSILON_FRAMES = 0.1, 1.0, 1000
UPDATE_AFTER_ACTIONS = 4
UPDATE_TARGET_NETWORK = 200
MEMORY = 10000


def create_q_model(actions=2):
    return nn.Sequential(
        nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, actions)
    )


def main():
    args = options("DQN on CartPole.", frames=2000, lap=100)
    prepare_torch(args.seed)
    np.random.seed(args.seed)
    times = Times("frame")
    env = CartPole()
    model = create_q_model()
    model_target = copy.deepcopy(model)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    loss_function = nn.HuberLoss()

    memory = []
    episode_rewards, losses = [], []
    epsilon, episode_reward = EPSILON_MAX, 0.0
    state, _ = env.reset(seed=args.seed)

    for frame_count in range(1, args.frames + 1):
        if epsilon > np.random.rand():
            action = np.random.choice(2)
        else:
            with torch.no_grad():
                action = model(torch.as_tensor(state).unsqueeze(0)).argmax(1).item()
        epsilon = max(EPSILON_MIN, epsilon - (EPSILON_MAX - EPSILON_MIN) / EPSILON_FRAMES)

        state_next, reward, terminated, truncated, _ = env.step(action)
        done = terminated or truncated
        episode_reward += reward
        memory.append((state, action, reward, state_next, float(terminated)))
        state = state_next

        if frame_count % UPDATE_AFTER_ACTIONS == 0 and len(memory) > BATCH:
            indices = np.random.choice(range(len(memory)), size=BATCH)
            states, actions, rewards, states_next, terminal = zip(*(memory[i] for i in indices))
            with torch.no_grad():
                future_rewards = model_target(torch.as_tensor(np.array(states_next)))
            updated_q_values = torch.tensor(rewards) + GAMMA * future_rewards.amax(1) * (
                1 - torch.tensor(terminal)
            )
            q_values = model(torch.as_tensor(np.array(states)))
            q_action = q_values.gather(1, torch.as_tensor(np.array(actions)).unsqueeze(1))
            loss = loss_function(q_action.squeeze(1), updated_q_values)
            optimizer.zero_grad()
            loss.backward()
            for parameter in model.parameters():
                nn.utils.clip_grad_norm_(parameter, 1.0)
            optimizer.step()
            losses.append(loss.item())

        if frame_count % UPDATE_TARGET_NETWORK == 0:
            model_target.load_state_dict(model.state_dict())

        if len(memory) > MEMORY:
            del memory[:1]
        if done:
            episode_rewards.append(episode_reward)
            episode_reward = 0.0
            state, _ = env.reset()
        if frame_count % args.lap == 0:
            times.lap(args.lap)
    weights = [weight.detach().numpy() for weight in model.parameters()]
    times.report(episode_rewards + losses, weights)


if __name__ == "__main__":
    main()
