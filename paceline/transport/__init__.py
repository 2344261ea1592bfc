"""How bytes move: frames, connections, shared memory, authentication."""
