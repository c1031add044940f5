"""The commands of `discreet`, one file each; they parse, call the library and print.

They import nothing heavy when loaded: `discreet --help` must be quick. To add one: a file, and a row in
`discreet/cli.py`.
"""
