"""What a run looks like to a person: tables, live lines, plain sentences. No torch here."""
