"""What limits a run, with the numbers that say so."""
