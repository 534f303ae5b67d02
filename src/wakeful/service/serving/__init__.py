"""The process that serves a home: how it is started, found, asked and stopped. `surfaces/http` is what runs in it.

options      what it is started with, checked before anything is started
run_files    what it leaves in `run/` of the home: where it listens, its log, the newest failure
control      asking it, through the socket of the home
lifecycle    start, stop, restart, status, logs
"""
