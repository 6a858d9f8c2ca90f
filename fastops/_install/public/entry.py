"""How data says what a public function comes down to."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Site:
    """One op, and what it is given.

    Attributes
    ----------
    op : str
        Its name in TensorFlow's registry.
    params : str
        The op's parameters that are the function's: ``"x"``, or ``"x=input_tensor"`` where they
        have two names.
    dtypes : str
        For which dtypes of the function's first tensor the op is right; not given, for all.
    constants : dict
        Parameters of the op that are always the same.
    """

    op: str
    params: str
    dtypes: str = ""
    constants: dict = field(default_factory=dict)

    def sources(self):
        """Return the op's parameters with those of the function that they are."""
        pairs = (item.partition("=") for item in self.params.split())
        return {to: source or to for to, _, source in pairs}


@dataclass(frozen=True)
class Function:
    """One public function.

    Attributes
    ----------
    name : str
        What users call it, such as ``"tf.reduce_sum"``.
    signature : str
        Its parameters, as `inspect.signature` shows them.
    sites : tuple of Site
        What it may come down to.
    needs : str
        What arguments must be for that, as in ``"x=tensor keepdims=bool"``.
    lowering : str, optional
        What chooses among the sites, by the name that it has registered.
    made : str
        What the lowering makes for the op beside the function's parameters.
    """

    name: str
    signature: str
    sites: tuple[Site, ...]
    needs: str = ""
    lowering: str | None = None
    made: str = ""
