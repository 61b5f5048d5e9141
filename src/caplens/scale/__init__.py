"""Past one file and one machine: shards, the engines that go through them, and filtering."""
