"""What a machine is good for, judged from facts alone: no measuring here, and no torch."""
