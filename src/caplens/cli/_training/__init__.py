"""What `caplens train` can train: a file `some_name.py` with a function `command` is `caplens train some-name`."""
