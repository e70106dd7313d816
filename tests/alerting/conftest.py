"""Alerts on a private server."""

from collections.abc import Callable, Iterator

import pytest

from redmeter import Meter
from redmeter.alerting.evaluator import Evaluator
from redmeter.alerting.rules import Rules
from redmeter.alerting.rules_file import parse_rules
from redmeter.alerting.store import AlertStore
from redmeter.store import Store
from support.alerts import RULES, Receiver
from support.servers import Server
from support.stores import opened_store


@pytest.fixture
def store(server: Server) -> Iterator[Store]:
    """A store on a private server."""
    with opened_store(server.url) as opened:
        yield opened


@pytest.fixture
def meter(server: Server) -> Iterator[Meter]:
    """A meter that writes at once."""
    with Meter(server.url, sync=True) as opened:
        yield opened


@pytest.fixture
def receiver() -> Receiver:
    """A receiver of notices."""
    return Receiver()


@pytest.fixture
def rules() -> Rules:
    """One alert, about the newest value of a gauge, that notifies two notifiers."""
    return parse_rules(RULES)


@pytest.fixture
def alerts(store: Store) -> AlertStore:
    """What is stored about alerts."""
    return AlertStore(store)


@pytest.fixture
def evaluator(store: Store, receiver: Receiver) -> Callable[[Rules], Evaluator]:
    """Makes evaluators that send to the receiver."""
    return lambda rules: Evaluator(store, rules, deliver=receiver.deliver)
