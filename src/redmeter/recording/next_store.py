"""The store that a recorder goes on with once `redmeter migrate` has moved its own.

Its URL is a setting: a URL that is read from Redis would be no safe redirect. It is used only if
its `meta:` names the same move, so that a mistyped URL leads nowhere.
"""

import logging
from collections.abc import Callable

from redmeter.errors import InvalidSetting, RedmeterError
from redmeter.store import Store
from redmeter.store.config import is_target_of

logger = logging.getLogger("redmeter")


class NextStore:
    """The next store, opened when it is needed.

    Args:
        open: opens it; connects to nothing.
        followed: called with the store once it is used.
    """

    def __init__(self, open: Callable[[], Store], followed: Callable[[Store], None]) -> None:  # noqa: A002
        self._open = open
        self._followed = followed
        self._store: Store | None = None

    def follow(
        self,
        before: Store,
        switch: Callable[[Store], None],
        record_error: Callable[[str, str], None],
    ) -> Store | None:
        """Go on with the next store; return it, or None if it cannot be used.

        Args:
            before: the store that was moved.
            switch: called with the next store, to which all later events go.
            record_error: called with the reason if it cannot be used.
        """
        try:
            store = self._checked(before)
        except RedmeterError as error:
            record_error("next-url", str(error))
            return None
        switch(store)
        logger.warning(
            "redmeter follows the store that was moved: events are now stored in %s", store.location
        )
        self._followed(store)
        before.close()
        return store

    def _checked(self, before: Store) -> Store:
        """Return the next store if the one before was moved there.

        Raises:
            InvalidSetting: it was moved elsewhere.
            StoreError: one of the two cannot be reached or refuses.
        """
        if self._store is None:
            self._store = self._open()
        if not is_target_of(self._store, before):
            reason = f"{before.location} was moved to another store than {self._store.location}"
            raise InvalidSetting("next_url", reason)
        self._store.config()
        return self._store
