"""The conversation loop for hosts that bring their own model call and their own tools: the options, the adapters and
the result. Its address for programs is `wakeful.hosts`."""
