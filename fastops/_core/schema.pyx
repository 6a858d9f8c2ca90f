# distutils: language = c++
"""The parts of an OpDef that calls need, in C: slots of arguments, encoding of attributes."""

from cpython.object cimport PyObject
from cython.operator cimport dereference as deref

from fastops._core.attributes cimport MISSING, is_taken, restored, same, shown
from fastops._core.attributes cimport encode as encode_attr
from fastops._cpp.frame cimport Frame
from fastops._cpp.handle cimport HandleDtype
from fastops._cpp.opdef cimport Describe, FindAttr, FindsAttributes, InputArg, kSingle
from fastops._cpp.runtime cimport UnknownKernels
from fastops._tf.eager cimport recording
from fastops._tf.node_def_util cimport AddDefaultsToNodeDef
from fastops._tf.protos cimport AttrDef, AttrValue, DataType, NodeDef

cdef extern from "definitions.h":
    pass

import sys

from tensorflow.python.eager import context as _context
from tensorflow.python.framework import dtypes as _dtypes

from fastops._core.threads import ONEDNN

if not FindsAttributes():
    raise ImportError(
        "fastops was compiled by a compiler whose hash tables are not those of TensorFlow's wheel. "
        "Compile it with Clang, as the wheel was."
    )

cdef bint unknown_kernels = UnknownKernels() != NULL
cdef object _ANONYMOUS = _context.anonymous_name()
cdef dict _NUMBERS = {kind.__name__: kind for kind in map(type, (0, 0.5, True))}


cdef class Schema:
    """The base class of `BaseOp`: the facts about an op that all of its calls share.

    The arguments of a call are in *slots*, numbered like the parameters.
    """

    cdef int read(self, record) except -1:
        """Fills all fields except `num_params` from the op's record."""
        cdef int i
        cdef Py_ssize_t slot
        params = record.params
        if len(params) >= FASTOPS_MAX_PARAMS:
            raise ValueError(f"{self.op_name} has too many parameters for fastops")
        self.op_name_bytes = self.op_name.encode()
        if not Describe(self.op_name_bytes, &self.facts):
            raise SystemError(f"{self.op_name} is missing from the C++ registry of ops")
        self.keywords = tuple([sys.intern(param.name) for param in params] + ["name"])
        self.num_inputs = self.facts.inputs.size()
        by_name = {param.op_def_name: slot for slot, param in enumerate(params)}
        for i in range(self.num_inputs):
            self.input_slots[i] = by_name[self.facts.inputs[i].name.decode()]
        self.attr_names = []
        self.attr_defaults = []
        self.attr_kinds = []
        kinds = {attr.name: _NUMBERS.get(attr.type) for attr in record.op_def.attrs}
        for slot, param in enumerate(params):
            if not param.is_input:
                self.attr_slots[len(self.attr_names)] = slot
                self.attr_names.append(sys.intern(param.op_def_name))
                self.attr_defaults.append(param.default)
                self.attr_kinds.append(kinds[param.op_def_name])
        self.num_attrs = len(self.attr_names)
        self.never = record.exclusion is not None
        self.direct = not self.never and not unknown_kernels
        self.handles = record.handles
        # The cost may depend on the values of the inputs or on the state behind a handle. The sizes
        # of the inputs do not bound it then.
        self.unbounded = record.value_sized or (record.handles and self.num_inputs > 1)
        self.thorough = not record.module.startswith("fastops.gen.")
        self.makes, self.seeded = record.makes, record.seeded
        self.num_binding = 0
        for slot, param in enumerate(params):
            if param.op_def_name in (("shared_name",) if self.makes else record.bound_by):
                self.binding[self.num_binding] = slot
                self.num_binding += 1
        return 0

    cdef bint is_bound(self, PyObject** slots) except -1:
        """Whether a call must run in TensorFlow's own kernel.

        Examples are a seed, whose generator state that kernel keeps, and a shared_name.
        """
        cdef int i
        cdef PyObject* given
        if self.makes:
            given = slots[self.binding[0]]
            return given == NULL or <object>given != _ANONYMOUS
        for i in range(self.num_binding):
            given = slots[self.binding[i]]
            if given == NULL or <object>given is None:
                continue
            kind = type(<object>given)
            if kind is not int and kind is not bool and kind is not str and kind is not bytes:
                return True
            if <object>given:
                return True
        return False

    cdef bint encode(self, PyObject** slots, Frame* frame, NodeDef* node) except -1:
        """Fills a NodeDef for a call. Returns False if an attribute cannot be encoded."""
        cdef int i
        cdef size_t k, length, flat = 0, lists = 0
        cdef const AttrDef* attr
        cdef InputArg* arg
        cdef AttrValue* value
        cdef DataType dtype
        cdef bytes kind
        node.set_name(self.op_name_bytes)
        node.set_op(self.op_name_bytes)
        for i in range(self.num_attrs):
            # If not given, take the default of TensorFlow's function. It may differ from the
            # default in the OpDef.
            given = self.attr_defaults[i]
            if slots[self.attr_slots[i]] != NULL:
                given = <object>slots[self.attr_slots[i]]
            attr = FindAttr(self.facts, <bytes>self.attr_names[i].encode())
            if given is None and attr.has_default_value():
                continue
            value = &deref(node.mutable_attr())[attr.name()]
            try:
                kind = attr.type()
                if not encode_attr(given, kind.decode(), value):
                    return False
            except (TypeError, ValueError, OverflowError):
                return False
        for i in range(self.num_inputs):
            arg = &self.facts.inputs[i]
            if arg.kind == kSingle:
                length = 1
            else:
                length = frame.list_lengths[lists]
                lists += 1
            for _ in range(length):
                node.add_input(b"input")  # kernels read the number of inputs, not their names
            if not arg.number_attr.empty():
                deref(node.mutable_attr())[arg.number_attr].set_i(length)
            if not arg.type_attr.empty():
                dtype = HandleDtype(frame.handles[flat])
                deref(node.mutable_attr())[arg.type_attr].set_type(dtype)
            if not arg.list_attr.empty():
                value = &deref(node.mutable_attr())[arg.list_attr]
                value.mutable_list()  # an empty list is a value, too
                for k in range(length):
                    value.mutable_list().add_type(HandleDtype(frame.handles[flat + k]))
            flat += length
        AddDefaultsToNodeDef(deref(self.facts.definition), node)
        return True

    cdef bint attrs_are_taken(self, PyObject** slots) except -1:
        """Whether TensorFlow's dispatch call accepts all attributes, given or default."""
        cdef int i
        cdef PyObject* given
        for i in range(self.num_attrs):
            given = slots[self.attr_slots[i]]
            kind = FindAttr(self.facts, <bytes>self.attr_names[i].encode()).type().decode()
            value = self.attr_defaults[i]
            if given != NULL:
                value = <object>given
            elif kind in ("float", "list(float)") and value is not None:
                for number in value if kind == "list(float)" else (value,):
                    if float(number).is_integer():
                        return False  # TensorFlow's function has the default 1, not 1.0
            if not is_taken(value, kind):
                return False
        return True

    cdef bint attrs_stay(self, PyObject** slots) except -1:
        """Whether gradient functions get the attributes as the caller gave them.

        TensorFlow's slow path converts the attributes by the OpDef before gradient functions get
        them. For example, a string becomes bytes, a dtype a number, and None may become an int.
        """
        cdef int i
        cdef PyObject* value
        if not recording():
            return True
        for i in range(self.num_attrs):
            value = slots[self.attr_slots[i]]
            given = self.attr_defaults[i] if value == NULL else <object>value
            if type(given) is not self.attr_kinds[i]:
                return False
        return True

    cdef tuple attrs_for_gradient(self, tuple given, Frame* frame):
        """Returns the attributes that TensorFlow's fast path passes to gradient functions.

        The explicit attributes come first, as given. The inferred ones follow in the order of the
        inputs, with types as integers.
        """
        cdef int i
        cdef size_t j, length, flat = 0, lists = 0
        cdef InputArg* arg
        attrs = []
        for i in range(self.num_attrs):
            value = given[i]
            value = self.attr_defaults[i] if value is MISSING else restored(value)
            attrs += [self.attr_names[i], value]
        for i in range(self.num_inputs):
            arg = &self.facts.inputs[i]
            length = 1
            if arg.kind != kSingle:
                length = frame.list_lengths[lists]
                lists += 1
            types = [<int>HandleDtype(frame.handles[flat + j]) for j in range(length)]
            if not arg.number_attr.empty():
                attrs += [arg.number_attr.decode(), length]
            if not arg.type_attr.empty():
                attrs += [arg.type_attr.decode(), types[0]]
            if not arg.list_attr.empty():
                attrs += [arg.list_attr.decode(), tuple(types)]
            flat += length
        return tuple(attrs)

    cdef tuple attrs_of_call(self, PyObject** slots):
        """Returns the attributes of a call. `MISSING` stands for one that is not given."""
        cdef PyObject* given
        cdef int i
        attrs = []
        for i in range(self.num_attrs):
            given = slots[self.attr_slots[i]]
            attrs.append(MISSING if given == NULL else <object>given)
        return tuple(attrs)

    cdef tuple changes(self, list known, tuple wanted):
        """Compares a key with the most similar known key.

        Returns a tuple of differences, each with the part's name, its known and its wanted value.
        Returns None if no key is known. A key consists of the signature of the frame, the
        attributes, the device's name and whether oneDNN may be used.
        """
        nearest = None
        signature, attrs, device_name, onednn = wanted
        for known_signature, known_attrs, known_device, known_onednn in known:
            changes = []
            if known_signature != signature:
                changes.append(("dtypes", _dtype_names(known_signature), _dtype_names(signature)))
            for i, (known_attr, attr) in enumerate(zip(known_attrs, attrs)):
                if known_attr is not attr and not same(known_attr, attr):
                    default = self.attr_defaults[i]
                    changes.append(
                        (self.attr_names[i], shown(known_attr, default), shown(attr, default))
                    )
            if known_device != device_name:
                changes.append(("device", known_device, device_name))
            if known_onednn != onednn:
                changes.append(("oneDNN", ONEDNN[known_onednn], ONEDNN[onednn]))
            if nearest is None or len(changes) < len(nearest):
                nearest = changes
        return None if nearest is None else tuple(nearest)


cdef str _dtype_names(bytes signature):
    """Returns the dtypes in a `Frame.signature` as text."""
    cdef Py_ssize_t i = 0, length = 0
    cdef list names = []
    cdef list items = None  # the dtypes of the list that is being read
    while i < len(signature):
        if signature[i] == 0xff:
            length = signature[i + 1] | signature[i + 2] << 8
            items = []
            i += 3
        if items is None:
            names.append(_dtypes.as_dtype(signature[i]).name)
            i += 1
            continue
        if len(items) < length:
            items.append(_dtypes.as_dtype(signature[i]).name)
            i += 1
        if len(items) == length:
            names.append(f"[{', '.join(items)}]")
            items = None
    return ", ".join(names)
