"""What `serving.py` measures with: a bare server beside the daemon, agents, and clients."""
