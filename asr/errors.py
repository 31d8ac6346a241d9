"""The one exception that users are meant to see.

Anything wrong with what a user handed over - a file, a key, a folder - is raised as
:class:`InputError`; commands print its one line and carry on with the other inputs.
"""

from __future__ import annotations


class InputError(ValueError):
    """Bad input: the message is one line, names the file or key, and says what would be right."""
