"""Set the proofs' plain formulas: as MathML where one stands alone, with signs and heights within a line.

The notes in `proofs/` are read in an editor and in a terminal as often as in a browser, so they are written
in letters: `e^(epsilon + 2 kappa)`. Browsers draw MathML themselves: no script, no font, no request.
"""

from __future__ import annotations

import html
import re

# In the order of the alphabet; the second form of sigma has no name.
_NAMES = """alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho -
sigma tau upsilon phi chi psi omega"""
_GREEK = {name: chr(code) for code, name in enumerate(_NAMES.split(), start=0x3B1) if name != "-"}
_GREEK |= {name.capitalize(): sign.upper() for name, sign in _GREEK.items()}
_SIGNS = {"<=": "≤", ">=": "≥", "!=": "≠", "->": "→", "*": "·", "-": "−"}
_TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<number>\d+(?:\.\d+)?(?:e-?\d+)?)|(?P<word>[A-Za-z]+\d?)|(?P<sign><=|>=|!=|->|\.\.\.|.)"
)
_SUM = re.compile(r"\b(sum|max) over (.+?) of\b")
# In prose: code, links and web addresses stay as they are.
_LEFT_ALONE = re.compile(r"(`[^`]*`|\]\([^)]*\)|https?://\S+)")
_HEIGHT = r"(\((?:[^()]|\([^()]*\))*\)|-?\d+(?:\.\d+)?|-?[A-Za-z]+'*|\|[^|]+\|)"
_RAISED = re.compile(r"(?<=[\w)|'])\^" + _HEIGHT)
_BASE = r"(?:(?<![A-Za-z0-9_])(?:[A-Za-z]|sum|max|" + "|".join(_GREEK) + r")'?|\|)"
_LOWERED = re.compile(f"({_BASE})_([A-Za-z0-9]+|\\([^()]*\\))(?![A-Za-z0-9_])")
_GREEK_WORD = re.compile(r"\b(" + "|".join(_GREEK) + r")\b")


def set_page(markdown: str) -> str:
    """Return a note with its formulas set; blocks behind fences stay as they are."""
    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.M | re.S)
    return "".join(part if part.startswith("```") else _set_part(part) for part in parts)


def _set_part(text: str) -> str:
    # Code may go on in the next line, but not in the next paragraph.
    paragraphs = re.split(r"(\n\s*\n)", text)
    return "".join(part if place % 2 else _set_paragraph(part) for place, part in enumerate(paragraphs))


def _set_paragraph(text: str) -> str:
    """Return a paragraph set; one that is indented throughout is made of formulas that stand alone."""
    lines = [line for line in text.split("\n") if line.strip()]
    if not lines or not all(line.startswith("    ") for line in lines):
        # A list's next paragraph is indented by as much as its number is wide; the site wants four.
        return re.sub(r"\A\n? {2,3}(?=\S)", "    ", in_a_line(text))
    depth = len(lines[0]) - len(lines[0].lstrip())
    # What is indented further goes on with the line above; what stands in a list stays in it.
    formulas = re.sub(rf"\n {{{depth + 1},}}", "  ", "\n".join(lines)).split("\n")
    inside = "    " if depth > 4 else ""
    return "\n".join(inside + displayed(formula.strip()) for formula in formulas)


def in_a_line(text: str) -> str:
    """Return prose with Greek letters, signs, and heights where they are written as such."""
    parts = _LEFT_ALONE.split(text)
    return "".join(part if place % 2 else _signs(part) for place, part in enumerate(parts))


def _signs(text: str) -> str:
    for _ in range(2):  # Heights have heights of their own.
        text = _RAISED.sub(lambda match: f"<sup>{_bare(match[1])}</sup>", text)
        text = _LOWERED.sub(lambda match: f"{match[1]}<sub>{_bare(match[2])}</sub>", text)
    text = _GREEK_WORD.sub(lambda match: _GREEK[match[1]], text)
    text = re.sub(r"(?<=\s)(<=|>=|!=|->)(?=\s|$)", lambda match: _SIGNS[match[1]], text)
    return re.sub(r"\bsum<sub>", "∑<sub>", re.sub(r"\bsqrt\(", "√(", text))


def _bare(text: str) -> str:
    inner = text[1:-1] if text.startswith("(") and text.endswith(")") else text
    return inner.replace("-", "−")


def displayed(formula: str) -> str:
    """Return a formula that stands alone as MathML, on one line of its own."""
    rows = _Parser(_SUM.sub(r"\1_(\2)", formula)).sequence()
    return f'<span class="formula"><math display="block"><mrow>{rows}</mrow></math></span>'


def _sign(text: str) -> str:
    return f'<mo stretchy="false">{html.escape(_SIGNS.get(text, text))}</mo>'


class _Parser:
    """Read a formula from left to right; what it does not know is shown as it is written."""

    def __init__(self, formula: str) -> None:
        self._tokens = [(match.lastgroup, match[0]) for match in _TOKEN.finditer(formula)]
        self._place = 0

    def sequence(self, end: str = "") -> str:
        """Return everything up to a closing sign, which is consumed."""
        out = []
        while self._place < len(self._tokens):
            if end and self._tokens[self._place][1] == end:
                self._place += 1
                break
            out.append(self._scripted())
        return "".join(out)

    def _scripted(self) -> str:
        below = above = ""
        base, large = self._atom()
        while self._peek() in ("_", "^"):
            sign = self._next()[1]
            height = self._height()
            below, above = (height, above) if sign == "_" else (below, height)
        if below and large:
            return f"<munder>{base}{below}</munder>"
        if below and above:
            return f"<msubsup>{base}{below}{above}</msubsup>"
        if below or above:
            return f"<m{'sub' if below else 'sup'}>{base}{below or above}</m{'sub' if below else 'sup'}>"
        return base

    def _height(self) -> str:
        """Return what stands high or low: a sign and one thing, or everything in brackets."""
        minus = self._peek() == "-"
        if minus:
            self._next()
        if self._peek() in ("(", "{"):
            inner = self.sequence({"(": ")", "{": "}"}[self._next()[1]])
        elif self._peek() == "|":
            self._next()
            inner = f"<mo>|</mo>{self.sequence('|')}<mo>|</mo>"
        else:
            inner = self._atom()[0]
        return f"<mrow>{'<mo>−</mo>' if minus else ''}{inner}</mrow>"

    def _atom(self) -> tuple[str, bool]:
        """Return one thing, and whether what is written low belongs under it."""
        kind, text = self._next()
        if kind == "space":
            return ('<mspace width="2em"/>' if len(text) > 1 else '<mspace width="0.15em"/>'), False
        if kind == "number":
            return f"<mn>{text}</mn>", False
        if kind == "word":
            return self._word(text)
        if text == "(":
            return (
                f'<mrow><mo stretchy="false">(</mo>{self.sequence(")")}<mo stretchy="false">)</mo></mrow>',
                False,
            )
        return _sign(text), False

    def _word(self, text: str) -> tuple[str, bool]:
        if text == "sqrt" and self._peek() == "(":
            self._next()
            return f"<msqrt><mrow>{self.sequence(')')}</mrow></msqrt>", False
        if text == "sum":
            return "<mo>∑</mo>", True
        if text in ("max", "sup", "min"):
            return f"<mo>{text}</mo>", True
        sign = _GREEK.get(text, text)
        if len(sign) == 1 or text[1:].isdigit():
            return f"<mi>{sign}</mi>", False
        return f"<mtext>{text}</mtext>", False

    def _peek(self) -> str:
        return self._tokens[self._place][1] if self._place < len(self._tokens) else ""

    def _next(self) -> tuple[str | None, str]:
        self._place += 1
        return self._tokens[self._place - 1] if self._place <= len(self._tokens) else (None, "")
