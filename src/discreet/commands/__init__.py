"""The verbs of the command line, by what they are for; `application` puts them together."""
