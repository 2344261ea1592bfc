"""Exit codes: 0 done · 1 the run failed · 2 the request was wrong · 130 interrupted"""

from __future__ import annotations

FAILED, WRONG, INTERRUPTED = 1, 2, 130
