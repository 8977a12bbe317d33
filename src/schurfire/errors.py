"""The exceptions that schurfire raises, and the one shape its messages have."""


class InvalidInputError(ValueError):
    """An argument is not what the function can work with; the message says what is."""


class NotConvergedError(RuntimeError):
    """An iteration stopped before it reached its tolerance."""


def invalid(name: str, condition: str, received: object, fix: str = "") -> InvalidInputError:
    """Builds the error ``Expected <name> to be <condition>, received <received>. <fix>``."""
    message = f"Expected {name} to be {condition}, received {received}."
    return InvalidInputError(f"{message} {fix}".strip())
