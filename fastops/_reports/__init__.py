"""Reports about calls: counters, profiles, explanations. No code here is on the path of a call."""
