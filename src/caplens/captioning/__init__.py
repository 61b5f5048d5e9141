"""A small captioner to train on a metric and to caption pictures with; needs torch."""
