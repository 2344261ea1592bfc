"""What is trained: model, loss, data and metrics, one file a task."""
