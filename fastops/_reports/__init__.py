"""What tells of calls: counters, profiles, explanations. Nothing here takes part in a call."""
