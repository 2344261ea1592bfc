"""What a study is: a question, the cells whose runs answer it, and the order they are run in."""
