"""Write ratings to several files, a person's rows anywhere among them."""

import numpy as np
import polars as pl


def frame_of(data, seed=0):
    """Return the ratings as a table, in no order."""
    order = np.random.default_rng(seed).permutation(data.n_ratings)
    return pl.DataFrame(
        {
            "user": data.users.ids[data.rows()[order]].tolist(),
            "item": data.catalog.ids[data.items[order]].tolist(),
            "rating": data.values[order],
        }
    )


def files_of(data, folder, count=3):
    """Write the ratings to several files, Parquet and CSV in turn."""
    table, files = frame_of(data), []
    for number, part in enumerate(np.array_split(np.arange(table.height), count)):
        file = folder / f"part{number}.{'csv' if number % 2 else 'parquet'}"
        (table[part].write_csv if number % 2 else table[part].write_parquet)(file)
        files.append(file)
    return files


def declared(data):
    """Return the facts of data as declarations."""
    facts = data.facts
    known = {"low": facts.low, "high": facts.high, "step": facts.step, "n_users": facts.n_users}
    return {**known, "max_per_user": facts.max_per_user, "catalog": data.catalog}
