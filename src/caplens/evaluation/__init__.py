"""What a set of scores means: evaluate, compare, explain."""
