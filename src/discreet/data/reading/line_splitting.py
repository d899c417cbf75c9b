"""Split lines into fields and read numbers: the compiled loops behind the reader of text tables.

One loop both decides whether a line is a row of the table and splits it. What it returns for a line depends
on the bytes of that line and on the declared grammar: no state crosses a line break (proofs/reading.md).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.core.kernels import strict, strict_inner
from discreet.data.reading.tally import FIELDS, FITS, LENGTH, LETTERS, LONGEST_LINE, QUOTES

Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]
Positions = npt.NDArray[np.int32]
Marks = npt.NDArray[np.uint8]

_LINE_FEED, _RETURN, _MINUS, _ZERO, _NINE = 10, 13, 45, 48, 57
# So many digits fit in 64 bits with a sign, and in the 24 bits of a single.
_DIGITS, _DIGITS_OF_SINGLES = 18, 7
_POWERS = np.array([10.0**power for power in range(11)], dtype=np.float32)
_PRIME = np.uint64(0x9E3779B97F4A7C15)
# What a byte is to the loop that splits lines.
_ORDINARY, _QUOTE, _NO_ASCII, _DELIMITER, _FEED = 0, 1, 2, 4, 8


@strict_inner
def _is_blank(byte: int) -> bool:
    return byte == 32 or 9 <= byte <= 13


@strict_inner
def _ends_field(data: Bytes, at: int, last: int, delimiter: Bytes) -> bool:
    if data[at] != delimiter[0] or at + delimiter.size > last:
        return False
    for offset in range(1, delimiter.size):  # noqa: SIM110
        if data[at + offset] != delimiter[offset]:
            return False
    return True


@strict_inner
def _is_text(data: Bytes, at: int, last: int) -> bool:
    """Return whether bytes are UTF-8: no zero, overlong form or surrogate, nothing above U+10FFFF."""
    while at < last:
        lead = data[at]
        if 0 < lead < 0x80:
            at += 1
            continue
        more = 1 if 0xC2 <= lead < 0xE0 else 2 if 0xE0 <= lead < 0xF0 else 3 if 0xF0 <= lead < 0xF5 else 0
        if more == 0 or at + more >= last:
            return False
        second = data[at + 1]
        low = 0xA0 if lead == 0xE0 else 0x90 if lead == 0xF0 else 0x80
        high = 0x9F if lead == 0xED else 0x8F if lead == 0xF4 else 0xBF
        if second < low or second > high:
            return False
        for offset in range(2, more + 1):
            if data[at + offset] < 0x80 or data[at + offset] > 0xBF:
                return False
        at += more + 1
    return True


@strict_inner
def _split_quoted(
    data: Bytes,
    begin: int,
    last: int,
    row: int,
    delimiter: Bytes,
    quote: int,
    escape: int,
    slots: Places,
    starts: Places,
    ends: Places,
) -> tuple[int, int]:
    """Write where the needed fields of a line with quotes are; return a mark and how many fields it has.

    Quotes inside quotes are unescaped in place.
    """
    found, at = 0, begin
    while True:
        start = at
        while start < last and _is_blank(data[start]) and not _ends_field(data, start, last, delimiter):
            start += 1
        if start < last and data[start] == quote:
            start += 1
            end, at, is_closed = start, start, False
            while at < last and not is_closed:
                byte = data[at]
                escaped = at + 1 < last and (
                    (byte == quote and data[at + 1] == quote)
                    or (byte == escape and (data[at + 1] == quote or data[at + 1] == escape))
                )
                if byte == quote and not escaped:
                    is_closed = True
                else:
                    at += escaped
                    data[end] = data[at]
                    end += 1
                at += 1
            if not is_closed:
                return QUOTES, found
            while at < last and _is_blank(data[at]) and not _ends_field(data, at, last, delimiter):
                at += 1
            if at < last and not _ends_field(data, at, last, delimiter):
                return QUOTES, found
        else:
            while at < last and not _ends_field(data, at, last, delimiter):
                at += 1
            end = at
        while start < end and _is_blank(data[start]):
            start += 1
        while start < end and _is_blank(data[end - 1]):
            end -= 1
        if found < slots.size and slots[found] >= 0:
            starts[slots[found], row], ends[slots[found], row] = start, end
        found += 1
        if at >= last:
            return FITS if found == slots.size else FIELDS, found
        at += delimiter.size


@strict_inner
def _is_blank_line(data: Bytes, at: int, last: int) -> bool:
    while at < last and _is_blank(data[at]):
        at += 1
    return at == last


@strict_inner
def _begins_with(data: Bytes, at: int, last: int, letters: Bytes) -> bool:
    if at + letters.size > last:
        return False
    for offset in range(letters.size):  # noqa: SIM110
        if data[at + offset] != letters[offset]:
            return False
    return True


@strict_inner
def _find_special(data: Bytes, kinds: Bytes, special: Positions) -> int:
    """Write where bytes with a meaning are. Branches would cost most of the time, so there are none."""
    found = 0
    for at in range(data.size):
        special[found] = at
        found += kinds[data[at]] != _ORDINARY
    special[found] = data.size
    return found


@strict
def split_rows(
    data: Bytes,
    delimiter: Bytes,
    quote: int,
    escape: int,
    comment: Bytes,
    slots: Places,
    starts: Places,
    ends: Places,
    marks: Marks,
    places: Places,
    special: Positions,
) -> int:
    """Split each line that is neither blank nor a comment; return how many there are.

    `slots` has the row of `starts` and `ends` for each field of a line, -1 for fields that are not needed.
    `places` gets the number of each line and how many fields it has. A line with a quote is split once more,
    by rules of its own. `special` is room for one more than there are bytes.
    """
    kinds = np.zeros(256, np.uint8)
    for byte in range(0x80, 256):
        kinds[byte] = _NO_ASCII
    kinds[0] = _NO_ASCII
    if quote >= 0:
        kinds[quote] = _QUOTE
    kinds[delimiter[0]] = _DELIMITER
    kinds[_LINE_FEED] = _FEED
    _find_special(data, kinds, special)
    line, at, ahead = 0, 0, 0
    # With a declared type: for a plain 0, numba would compile the called function a second time.
    row = int(np.int64(0))
    while at < data.size:
        # A byte order mark is not part of a field, in any line: files are joined.
        if at + 2 < data.size and data[at] == 0xEF and data[at + 1] == 0xBB and data[at + 2] == 0xBF:
            at, ahead = at + 3, ahead + 3
        begin, start, line = at, at, line + 1
        seen, found = 0, 0
        # Calls with arrays would take most of the time here.
        while True:
            last = int(special[ahead])
            ahead += 1
            kind = _FEED if last >= data.size else kinds[data[last]]
            if last < start:
                continue
            if (
                kind == _DELIMITER
                and delimiter.size > 1
                and not _ends_field(data, last, data.size, delimiter)
            ):
                kind = _NO_ASCII if data[last] >= 0x80 else _ORDINARY
            if kind < _DELIMITER:
                seen |= kind
                continue
            end = last
            while start < end and _is_blank(data[start]):
                start += 1
            while start < end and _is_blank(data[end - 1]):
                end -= 1
            if found < slots.size and slots[found] >= 0:
                starts[slots[found], row], ends[slots[found], row] = start, end
            found += 1
            if kind == _FEED:
                break
            start = last + delimiter.size
        at = last + 1
        if (begin == last or _is_blank(data[begin])) and _is_blank_line(data, begin, last):
            continue
        if comment.size and _begins_with(data, begin, last, comment):
            continue
        mark = FITS if found == slots.size else FIELDS
        if last - begin > LONGEST_LINE:
            mark, found = LENGTH, 0
        elif seen & _NO_ASCII and not _is_text(data, begin, last):
            mark, found = LETTERS, 0
        elif seen & _QUOTE:
            mark, found = _split_quoted(data, begin, last, row, delimiter, quote, escape, slots, starts, ends)
        for slot in range(starts.shape[0] if mark != FITS else 0):
            starts[slot, row] = ends[slot, row] = 0
        marks[row], places[0, row], places[1, row] = mark, line, found
        row += 1
    return row


@strict
def join_lines(data: Bytes, delimiter: Bytes, quote: int, escape: int, letter: int) -> None:
    """Turn line breaks inside quotes into another letter, in place."""
    at, begins_field = 0, True
    while at < data.size:
        if begins_field and data[at] == quote:
            at += 1
            while at < data.size:
                doubled = at + 1 < data.size and data[at + 1] == quote
                if (data[at] == quote or data[at] == escape) and doubled:
                    at += 1
                elif data[at] == quote:
                    break
                elif data[at] == _LINE_FEED or data[at] == _RETURN:
                    data[at] = letter
                at += 1
            begins_field = False
            at += 1
        elif _ends_field(data, at, data.size, delimiter):
            begins_field = True
            at += delimiter.size
        else:
            begins_field = data[at] == _LINE_FEED or (begins_field and _is_blank(data[at]))
            at += 1


@strict_inner
def _whole_number(data: Bytes, at: int, end: int) -> tuple[bool, np.int64]:
    """Return whether a field is a whole number of at most 18 digits, and the number."""
    is_negative = data[at] == _MINUS
    at += is_negative
    is_whole, number = 0 < end - at <= _DIGITS, np.int64(0)
    for place in range(at, end if is_whole else at):
        is_whole &= _ZERO <= data[place] <= _NINE
        number = number * 10 + (np.int64(data[place]) - _ZERO)
    return is_whole, -number if is_negative else number


@strict
def read_whole_numbers(
    data: Bytes, starts: Places, ends: Places, marks: Marks, found: Places, rest: Marks
) -> None:
    """Read whole numbers of at most 18 digits without zeros in front; `rest` marks the other fields."""
    for row in range(marks.size):
        if marks[row] != FITS:
            continue
        at, end = starts[row], ends[row]
        is_whole, found[row] = (False, np.int64(0)) if at == end else _whole_number(data, at, end)
        first = data[at + (data[at] == _MINUS)] if is_whole else _ZERO
        rest[row] = not is_whole or (first == _ZERO and end - at > 1)


@strict
def read_singles(
    data: Bytes,
    starts: Places,
    ends: Places,
    marks: Marks,
    point: int,
    found: npt.NDArray[np.float32],
    rest: Marks,
) -> None:
    """Read ratings of a few digits with this decimal mark; `rest` marks the other fields.

    A quotient of two singles is rounded once, so the result is the single nearest to what is written.
    """
    for row in range(marks.size):
        if marks[row] != FITS:
            continue
        at, end = starts[row], ends[row]
        is_negative = at < end and data[at] == _MINUS
        at += is_negative
        digits, behind, is_plain, number = 0, 0, end - at <= _DIGITS_OF_SINGLES + 1, 0
        for place in range(at, end if is_plain else at):
            byte = data[place]
            if byte == point and behind == 0 and place + 1 < end:
                behind = end - place - 1
            elif _ZERO <= byte <= _NINE:
                digits += 1
                number = number * 10 + (byte - _ZERO)
            else:
                is_plain = False
        if is_plain and 0 < digits <= _DIGITS_OF_SINGLES and digits > behind:
            quotient = np.float32(number) / _POWERS[behind]
            found[row] = -quotient if is_negative else quotient
        else:
            rest[row] = 1


@strict
def gather(data: Bytes, starts: Places, ends: Places, chosen: Places, joined: Bytes) -> int:
    """Write the fields of the chosen rows one after the other, a line feed after each; return the length."""
    end = 0
    for row in chosen:
        for place in range(starts[row], ends[row]):
            joined[end] = data[place]
            end += 1
        joined[end] = _LINE_FEED
        end += 1
    return end


@strict
def number_texts(
    data: Bytes,
    starts: Places,
    ends: Places,
    marks: Marks,
    rest: Marks,
    table: npt.NDArray[np.int32],
    hashes: npt.NDArray[np.uint64],
    edges: Places,
    letters: Bytes,
    count: int,
    codes: npt.NDArray[np.int32],
) -> int:
    """Number the texts in the order in which they first occur; return how many there are now.

    `rest` marks empty fields.
    `table` finds a number by the hash of its text, which is in `letters` from `edges` on, a line feed behind.
    """
    mask = np.uint64(table.size - 1)
    for row in range(marks.size):
        codes[row] = 0
        if marks[row] != FITS:
            continue
        start, end = starts[row], ends[row]
        if start == end:
            rest[row] = 1
            continue
        hashed = hashes[0]
        for place in range(start, end):
            hashed = (hashed ^ np.uint64(data[place])) * _PRIME
            hashed ^= hashed >> np.uint64(29)
        at = hashed & mask
        while True:
            code = table[at]
            if code == 0:
                table[at] = count + 1
                hashes[count + 1] = hashed
                for offset in range(end - start):
                    letters[edges[count] + offset] = data[start + offset]
                letters[edges[count] + end - start] = _LINE_FEED
                edges[count + 1] = edges[count] + end - start + 1
                codes[row] = count
                count += 1
                break
            code -= 1
            is_same = hashes[code + 1] == hashed and edges[code + 1] - edges[code] == end - start + 1
            offset = 0
            while is_same and offset < end - start:
                is_same = letters[edges[code] + offset] == data[start + offset]
                offset += 1
            if is_same:
                codes[row] = code
                break
            at = (at + np.uint64(1)) & mask
    return count


@strict
def fill_table(table: npt.NDArray[np.int32], hashes: npt.NDArray[np.uint64], count: int) -> None:
    """Enter the numbers of all texts into a larger table."""
    mask = np.uint64(table.size - 1)
    for code in range(count):
        at = hashes[code + 1] & mask
        while table[at] != 0:
            at = (at + np.uint64(1)) & mask
        table[at] = code + 1
