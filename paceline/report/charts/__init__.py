"""Charts: pure functions from records to plotly figures, one file a chart."""
