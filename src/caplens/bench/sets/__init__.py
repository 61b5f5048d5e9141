"""One file per rating set."""
