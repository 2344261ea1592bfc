"""A report of runs and sweeps: one document, as a page, as Markdown, as a sheet, as pictures."""
