"""What a run looks like to a person: terminal tables, live lines, plain sentences. No torch here."""
