"""Every promise of the project as a command that prints the figure beside its target."""
