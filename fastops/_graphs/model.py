"""Saved models as functions of named tensors."""

import inspect
import keyword

from fastops._graphs.contract import Contract
from fastops._plans.caller import Caller
from fastops._plans.case import Bound
from fastops._specialize.policy import MAX_FUNCTION_SIGNATURES


class Model(Caller):
    """A function of named tensors, made by `fastops.graph.load`.

    A call takes the inputs by name, and returns the outputs by name. If there is only one input, it
    may be positional. A call raises `TypeError` if an input is missing, unknown, or of another
    dtype or shape; the message names the input. It raises a `tf.errors.OpError` if an operation
    fails.

    Parameters
    ----------
    signature : ModelSignature
        The signature to call.

    Attributes
    ----------
    inputs, outputs : dict of str to tf.TensorSpec
        The dtypes and shapes by name.
    name : str
        The name of the signature.
    """

    def __init__(self, signature):
        self._contract = Contract(signature)
        super().__init__(self._contract, True, MAX_FUNCTION_SIGNATURES)
        self.inputs = dict(signature.inputs)
        self.outputs = dict(signature.outputs)
        self.name = signature.name
        self.__name__ = signature.name
        self.__doc__ = _document(signature)
        self.__signature__ = _python_signature(self.inputs)

    @property
    def title(self):
        """The name of the signature, and the path of the model."""
        return self._contract.title

    @property
    def reason(self):
        """Why TensorFlow runs the model and not a plan, or `None`."""
        return self._contract.planned.reason

    def describe(self):
        """Say which executor runs the model, and why.

        Returns
        -------
        dict
            With ``"executor"``, ``"reason"`` (why there is no plan), and ``"nodes"`` (the number of
            steps of the plan).
        """
        return self._contract.planned.describe()

    def prepare(self, args, kwargs, called, result):
        """Make the first call with inputs of these dtypes and shapes, and bind later ones.

        `Caller` calls this method.
        """
        contract = self._contract
        inputs = contract.named(args, kwargs)
        result = contract.signature.pack(contract.planned.run(contract.tensors(inputs)))
        if not contract.are_as_taken(inputs):
            return None, True, result  # other values may fail to convert: check each call
        positions = {name: i for i, name in enumerate(inputs)}
        takes = [positions[name] for name in self.inputs]
        return Bound(contract.planned, takes, contract.signature.pack), True, result

    def __repr__(self):
        return f"<fastops.graph.Model: ({', '.join(self.inputs)}) -> {', '.join(self.outputs)}>"


def _document(signature):
    def rows(specs, indent):
        return "".join(
            f"{indent}{name} : {spec.dtype.name}, shape {spec.shape}\n"
            for name, spec in specs.items()
        )

    takes = f"Parameters\n----------\n{rows(signature.inputs, '')}\n" if signature.inputs else ""
    return (
        f"Run {signature.name} of {signature.source}.\n\n{takes}"
        f"Returns\n-------\ndict\n{rows(signature.outputs, '    ')}"
    )


def _python_signature(inputs):
    if any(not name.isidentifier() or keyword.iskeyword(name) for name in inputs):
        return inspect.Signature([inspect.Parameter("inputs", inspect.Parameter.VAR_KEYWORD)])
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    if len(inputs) != 1:
        kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Signature([inspect.Parameter(name, kind) for name in inputs])
