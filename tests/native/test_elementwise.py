"""Logarithms and exponentials: the bits of the C library, whatever the processor."""

from __future__ import annotations

import math

import numpy as np

from caplens.native._kernels import exp_each, log_each


def test_every_bit_is_the_c_librarys() -> None:
    values = np.concatenate([np.arange(1.0, 50_000.0), np.random.default_rng(0).uniform(0, 700, 50_000)])
    assert log_each(values).tolist() == [math.log(value) for value in values.tolist()]
    assert exp_each(-values).tolist() == [math.exp(-value) for value in values.tolist()]


def test_no_values_give_none() -> None:
    assert log_each(np.empty(0)).shape == exp_each(np.empty(0)).shape == (0,)
