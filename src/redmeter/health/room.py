"""Findings about limits that are reached: what new things count under."""

from collections.abc import Iterator

from redmeter.health.check import Finding
from redmeter.stored.exception import MAX_COARSE, MAX_GROUPS


def exception_findings(groups: int) -> Iterator[Finding]:
    """Report that there is no room for new groups of exceptions.

    Args:
        groups: how many there are, coarse ones included.
    """
    if groups < MAX_GROUPS:
        return
    text = (
        f"there are {MAX_GROUPS:,} groups: exceptions of new ones count by type and innermost "
        f"function of the application, in {MAX_COARSE} more"
    )
    if groups >= MAX_GROUPS + MAX_COARSE:
        text += ', which are full too: new ones may be hidden in "(other)"'
    fix = (
        "find what makes so many: redmeter exceptions --since 90d; name its group with "
        "record_exception(group=…) or redmeter_group, and remove its groups with redmeter clean "
        "--forget-exception ID; a group expires 90 days after its last exception"
    )
    yield Finding("warn", "exceptions", text, fix)
