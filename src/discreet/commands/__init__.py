"""The verbs of the command line, by what they are for; `discreet.cli` puts them together."""
