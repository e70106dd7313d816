"""Parts of dates, in UTC, of many timestamps at once."""

import numpy as np

from redmeter.promql.values import Floats

#: Years -9999 to 9999, in seconds from 1970: beyond, there is no date.
_EARLIEST, _LATEST = -377_705_116_800, 253_402_300_800


def date_part(part: str, timestamps: Floats) -> Floats:
    """Return a part of the dates of Unix timestamps; NaN where there is no date."""
    valid = (timestamps >= _EARLIEST) & (timestamps < _LATEST)
    seconds = np.floor(np.where(valid, timestamps, 0)).astype(np.int64)
    days = seconds // 86_400
    months = days.astype("datetime64[D]").astype("datetime64[M]")
    years = months.astype("datetime64[Y]")
    first_of_month = months.astype("datetime64[D]").astype(np.int64)
    match part:
        case "minute":
            result = seconds // 60 % 60
        case "hour":
            result = seconds // 3600 % 24
        case "day_of_week":
            result = (days + 4) % 7
        case "day_of_month":
            result = days - first_of_month + 1
        case "day_of_year":
            result = days - years.astype("datetime64[D]").astype(np.int64) + 1
        case "days_in_month":
            result = (months + 1).astype("datetime64[D]").astype(np.int64) - first_of_month
        case "month":
            result = months.astype(np.int64) % 12 + 1
        case _:
            result = years.astype(np.int64) + 1970
    return np.where(valid, result.astype(float), np.nan)
