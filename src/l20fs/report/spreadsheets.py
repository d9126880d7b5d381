"""Texts that a spreadsheet shows as they are: no formula, no date and no number that was a name."""

from __future__ import annotations

#: Columns whose texts are names, also if they look like numbers.
NAMES = ("feature", "members")

#: Months of Excel in English, German, French, Spanish, Italian, Portuguese and Dutch, as far as all letters are plain.
#: Three letters of them are enough: SEPT2, MARCH1, DEC1, OCT4, and elsewhere AGO2 (agosto), SET1 (settembre), MEI1.
MONTHS = (
    "january february march april may june july august september october november december "
    "januar februar maerz mrz mai juni juli oktober dezember "
    "janvier fevrier mars avril juin juillet aout septembre octobre novembre decembre "
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre "
    "gennaio febbraio aprile maggio giugno luglio settembre ottobre dicembre "
    "janeiro fevereiro marco maio junho julho setembro outubro novembro dezembro "
    "januari februari maart mrt mei augustus"
)


def _prefixes(word: str) -> str:
    """Return a pattern of the words of three letters or more that a word begins with: ``mar(?:c(?:h)?)?``."""
    pattern = ""
    for letter in reversed(word[3:]):
        pattern = f"(?:{letter}{pattern})?"
    return word[:3] + pattern


_MONTH = f"(?:{'|'.join(dict.fromkeys(map(_prefixes, MONTHS.split())))})"
#: What a spreadsheet computes or converts, for the script of the page: formulas; numbers,
#: amounts and dates without letters; numbers with an exponent; dates, times and truth values.
PATTERN = "|".join(
    (
        r"^\s*[=+@\uFF1D\uFF0B\uFF0D\uFF20-]",
        r"^(?=[^0-9]*[0-9])[\s0-9.,:/%$()'-]+$",
        r"^\s*[0-9.,]+e[+-]?[0-9]+\s*$",
        rf"^(?=[^0-9]*[0-9])[\s0-9./,-]*{_MONTH}[\s0-9./,-]*$",
        r"^\s*[0-9]+(:[0-9]+)*\s*[ap]m?\s*$",
        r"^\s*(true|false|wahr|falsch|vrai|faux|verdadero|falso|vero|verdadeiro|waar|onwaar)\s*$",
        r"^\s*#",
    )
)
