"""Parameter tables, update rules and the loop that serves them."""
