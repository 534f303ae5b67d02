"""OpenTelemetry: the only place that knows its packages, which are an extra (`pip install 'wakeful[telemetry]'`).

They are loaded when the owner's file switches telemetry on. Nothing here reads the log or waits for it.
"""
