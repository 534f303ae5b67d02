"""A home as one file, and back.

archive      the file: what may stand in it, and how it is checked
backup       taking one while the home is in use
restore      a home from one
"""
