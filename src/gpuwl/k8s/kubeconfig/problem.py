"""Why a kubeconfig cannot be used."""


class Problem(Exception):  # noqa: N818 - a kubeconfig has a problem
    """A kubeconfig that kubectl would not use either, said without any of its values.

    `hint` says what helps, where that is not another kubeconfig.
    """

    def __init__(self, words: str, *, hint: str | None = None) -> None:
        super().__init__(words)
        self.words = words
        self.hint = hint
