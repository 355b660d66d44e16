"""The commands of the group `Look inside`, which show how a model works."""
