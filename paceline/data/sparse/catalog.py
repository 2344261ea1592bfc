"""Formats of text that can be converted, by name. No torch, no numba here."""

FORMATS = {
    "libsvm": "label index:value …, as of LIBSVM and SVMlight",
    "criteo": "label, 13 counts and 26 categories between tabs",
    "csv": "named columns, of which --label is one",
    "json": "a JSON object a line, with a text and a number",
}
