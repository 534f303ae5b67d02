"""Text as the index sees it, and a question as a search. Pure.

The index splits at spaces, which Chinese and Japanese do not have: every character of theirs is written with a space
round it, and two that stand together are looked for as a phrase.
"""

import re

_CJK = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303b\u3040-\u309f\u30a0-\u30ff\u3100-\u312f"
    "\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f"
    "\U0001b000-\U0001b16f\U00020000-\U0003134f"
)
_CHARACTER = re.compile(f"([{_CJK}])")
_TOKENS = re.compile(f"[{_CJK}]+|[^\\W{_CJK}]+")
MAX_TERMS = 48


def spaced(text: str) -> str:
    """A text with a space round every character of a script that has none."""
    return _CHARACTER.sub(r" \1 ", text)


def query(question: str) -> str:
    """A question in anybody's words as a search for any of them; empty when there is nothing to look for."""
    terms: dict[str, None] = {}
    for token in _TOKENS.findall(question):
        if _CHARACTER.match(token):
            pairs = [token[at : at + 2] for at in range(len(token) - 1)] or [token]
            for pair in pairs:
                terms[f'"{" ".join(pair)}"'] = None
        elif len(token) > 1 or token.isdigit():
            terms[f'"{token.lower()}"'] = None
        if len(terms) >= MAX_TERMS:
            break
    return " OR ".join(list(terms)[:MAX_TERMS])
