"""The command line as a person uses it, and the programs that the documentation prints."""
