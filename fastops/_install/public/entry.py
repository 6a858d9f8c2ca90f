"""The classes of the tables that describe how public functions are lowered."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class SiteSpec:
    """One op, and the sources of its arguments.

    Attributes
    ----------
    op : str
        The name of the op in TensorFlow's registry.
    params : str
        The parameters of the op that get the value of a parameter of the function: ``"x"``, or
        ``"x=input_tensor"`` if the function has another name for it.
    dtypes : str
        The dtypes of the function's first tensor for which to choose the op; empty for all.
    constants : dict
        By parameter of the op, a constant value.
    """

    op: str
    params: str
    dtypes: str = ""
    constants: dict = field(default_factory=dict)

    def sources(self):
        """Return by parameter of the op the parameter of the function."""
        pairs = (item.partition("=") for item in self.params.split())
        return {to: source or to for to, _, source in pairs}


@dataclass(frozen=True)
class LoweringSpec:
    """One public function.

    Attributes
    ----------
    name : str
        The public name, such as ``"tf.reduce_sum"``.
    signature : str
        Its parameters, as `inspect.signature` shows them.
    sites : tuple of SiteSpec
        The ops that it may run.
    needs : str
        The required kinds of arguments, as in ``"x=tensor keepdims=bool"``.
    lowering : str, optional
        The registered name of the lowering that chooses among the sites.
    made : str
        The names of values that the lowering makes for the op, beside the function's parameters.
    arrays : str
        The names of arguments that may be NumPy arrays in calls that are recorded, because they are
        not lowered. See `fastops._install.replay.functions.ARRAYS`.
    """

    name: str
    signature: str
    sites: tuple[SiteSpec, ...]
    needs: str = ""
    lowering: str | None = None
    made: str = ""
    arrays: str = ""
