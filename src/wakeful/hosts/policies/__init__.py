"""What a host says about its tools: which are there, what may become of an action, and what a mediator decides."""
