"""The one kind of error that this package raises of its own."""


class TrainscopeError(Exception):
    """Something is wrong with what a caller gave: the message says what, where and what to do.

    The commands of this package print it as one line and exit with `code`: 2 for wrong arguments,
    3 for files and models that cannot be read or used, 6 for what cannot be written, 9 for a
    comparison outside its tolerance (as docs/exit-codes.md has them).
    """

    def __init__(self, message, code=3):
        super().__init__(message)
        self.code = code
