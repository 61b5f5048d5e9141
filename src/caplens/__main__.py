"""`python -m caplens` is `caplens`."""

from caplens.cli import main

main()
