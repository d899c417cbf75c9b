"""Choose which cases of a test the default run tries; `make test-thorough` tries the others.

A test with many cases of one code path has the mark `few`: how many cases stay, spread over all of them, and
the names of further ones. A case that is asked for by its own name is always run.
"""

from collections import defaultdict


def others(items):
    """Return the items of tests marked `few` that the default run leaves out."""
    cases = defaultdict(list)
    for item in items:
        is_elsewhere = any(map(item.get_closest_marker, ("slow", "systems", "scripts")))
        if item.get_closest_marker("few") and hasattr(item, "callspec") and not is_elsewhere:
            cases[item.nodeid.partition("[")[0]].append(item)
    return [item for group in cases.values() for item in _left(group)]


def _left(group):
    # In the order of their definition: items may come shuffled, and the default run never changes.
    group = sorted(group, key=lambda item: tuple(item.callspec.indices.values()))
    count, *names = group[0].get_closest_marker("few").args
    kept = spread(count, len(group))
    return [item for place, item in enumerate(group) if place not in kept and item.callspec.id not in names]


def spread(count, of):
    """Return this many places, spread evenly and with the first one."""
    return {place * of // count for place in range(count)} if count else set()
