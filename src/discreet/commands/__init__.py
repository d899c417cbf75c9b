"""The verbs of the command line, one file each; `application` puts them together.

A verb imports what it runs when it is run: `discreet --help` and `discreet recommend` answer at once.
"""
