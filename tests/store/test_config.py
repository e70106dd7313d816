"""The configuration of a store, as it is read."""

from redmeter.store.config import read_meta
from redmeter.stored.keys import DEFAULT_HISTOGRAMS


def test_an_existing_store_keeps_the_retention_of_histograms_it_does_not_name() -> None:
    """It was created when hours were kept 120 times, whatever the default is today."""
    fields = {b"format": b"1", b"partitions": b"1", b"retention": b"60=120", b"version": b"2"}
    config = read_meta(dict(fields), 1)
    assert config is not None
    assert dict(config.histograms) == {5: 24, 60: 120, 3600: 120} != DEFAULT_HISTOGRAMS
