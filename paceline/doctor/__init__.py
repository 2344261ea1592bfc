"""What this machine is good for, measured: a probe a file. `diagnose/doctor` judges it."""
