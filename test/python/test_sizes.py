"""Sizes in bytes: Python takes the texts that the program takes, with the same values."""

from __future__ import annotations

import random
import subprocess
from fractions import Fraction

import graphwire
import pytest
from conftest import PROGRAM
from graphwire._base import checks

FACTORS = {"k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12,
           "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


@pytest.mark.parametrize("unit", FACTORS)
def test_values(unit):
    rng = random.Random(unit)
    for _ in range(300):
        value = Fraction(rng.randrange(10**rng.randrange(1, 7)), 10**rng.randrange(5))
        text = f"{float(value):.4f}" if rng.random() < 0.5 and value < 10**9 else str(int(value))
        exact = Fraction(text) * FACTORS[unit]
        if exact.denominator == 1:
            assert checks.size("n", text + unit) == exact
        else:
            with pytest.raises(graphwire.InvalidError, match="n is a number of bytes"):
                checks.size("n", text + unit)


TEXTS = ["64", "2Mi", "1.5Mi", "1100k", "1.1M", "0.5Gi", "1024K", "2mi", "2ki", "1.0", "1.k", ".5M", "1.00001k",
         "0.3Ki", "", " 2Mi", "2Mi ", "2 Mi", "2MiB", "1e6", "-1", "+2Mi", "0x10", "2P", "1.5.5M",
         "\N{ARABIC-INDIC DIGIT TWO}Mi"]


@pytest.mark.parametrize("text", TEXTS)
def test_the_program_takes_the_same_texts(text):
    done = subprocess.run([PROGRAM, "serve", "--part-config", "none", "--part", "0", "--disk-cache", text],
                          capture_output=True, text=True)
    assert done.returncode in (1, 2), done.stderr
    try:
        checks.size("disk_cache", text)
        took = True
    except graphwire.InvalidError:
        took = False
    assert took == ("is not a whole number" not in done.stderr), done.stderr
