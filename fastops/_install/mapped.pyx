# distutils: language = c++
"""Functions that pipelines map over elements, run in the calling thread.

TensorFlow instantiates the functions for each iterator, which takes milliseconds, and runs them in
threads. Here they run in one of two ways for all iterators of a dataset:

- One iterator of TensorFlow's runs the functions. Its pipeline repeats the same tensors without
  end, and maps the functions over them. An element is copied into the memory of these tensors
  before they are mapped.
- Plans run the functions, as soon as these runs have cost enough to make plans (see
  `fastops._specialize.policy`). They are `Learned` from the functions: their first results are
  compared with those of the iterator.

`fastops.stats().kinds` counts the calls of functions, as those of "Dataset.map".
"""

cimport cython
from cpython.object cimport PyObject
from cython.operator cimport dereference as deref
from libc.stdint cimport int64_t
from libc.string cimport memcpy
from libcpp.utility cimport move

from fastops._core.preparing cimport generation
from fastops._cpp.handle cimport HostTensor
from fastops._cpp.plan cimport Made
from fastops._cpp.python cimport call_object
from fastops._cpp.rows cimport RowBatch, RowReader, RunMapped
from fastops._cpp.tensors cimport CopyOf, SameBytes
from fastops._dispatch cimport Op, runtime
from fastops._plans.plan cimport Plan
from fastops._specialize.learned cimport CallCounts, Learned
from fastops._specialize.policy cimport (
    Account, Estimate, LONG_RUN_NS, MAX_MAPPED_NS, MAX_MAPPED_ROW_NS, MAX_MAPPED_TRIALS, now,
)
from fastops._specialize.states cimport ACTIVE
from fastops._tf.tensor cimport Tensor

cdef extern from "definitions.h":
    pass

import sys
import threading


cdef tuple _KEYWORDS = tuple(
    [sys.intern(name) for name in ("iterator", "output_types", "output_shapes")]
)
cdef Op _get_next = Op("IteratorGetNext")
cdef CallCounts _counts = CallCounts("Dataset.map")
cdef Estimate _making = Estimate("plan of a function that a dataset maps", 10e6)


@cython.final
cdef class MappedStage:
    """Functions that are mapped one after the other, over the rows or over the batches.

    Parameters
    ----------
    make_plans : callable
        Returns a list of plans, one for each function; None if there are none.
    make_iterator : callable
        Given the tensors of an element, returns the resource of an iterator that maps the functions
        over these tensors without end. It must not change the tensors.
    dtypes, shapes : list
        The dtypes and shapes of the results.
    of_rows : bool
        Whether the functions are mapped over single rows, which are batched afterwards. Only plans
        are fast enough for that.
    """

    def __init__(self, make_plans, make_iterator, list dtypes, list shapes, bint of_rows):
        self.make_plans, self.make_iterator = make_plans, make_iterator
        self.dtypes, self.shapes, self.of_rows = dtypes, shapes, of_rows
        self.sources = {}
        self.forget()

    cdef list plans(self):
        cdef Plan plan
        cdef list plans
        if self.known.state_now() != ACTIVE:
            return None
        runtime()
        plans = self.known.content
        for plan in plans:
            if plan.made_for != generation:
                self.forget()
                return None
        return plans

    cdef int decline(self) except -1:
        self.declined = True
        _counts.count(self.known)
        return 0

    cdef int forget(self) except -1:
        self.known = Learned("rows" if self.of_rows else "elements")
        self.account = Account()
        return 0


@cython.final
cdef class MappedFunctions:
    """All functions that a pipeline maps.

    Parameters
    ----------
    of_rows, of_elements : MappedStage or None
        The functions that are mapped over single rows before these are batched, and the functions
        that are mapped over whole elements.
    """

    def __init__(self, MappedStage of_rows, MappedStage of_elements):
        self.of_rows, self.of_elements = of_rows, of_elements
        self.lock = threading.RLock()

    @property
    def is_declined(self):
        """Whether TensorFlow has to run the functions."""
        return self.declined

    @property
    def is_planned(self):
        """Whether plans run the functions."""
        cdef MappedStage stage
        for stage in (self.of_rows, self.of_elements):
            if stage is not None and stage.known.state_now() != ACTIVE:
                return False
        return True

    cdef list results(self, RowReader* reader):
        cdef list found = None
        cdef bint planned = self.is_planned
        try:
            found = _make(self, reader)
        except Exception:
            pass  # TensorFlow's iterator, which takes over, raises the exception, too
        if planned and found is not None:
            # Count the element here: plans do not call IteratorGetNext.
            _get_next.calls_direct += 1
        self.declined |= (
            found is None
            or (self.of_rows is not None and self.of_rows.declined)
            or (self.of_elements is not None and self.of_elements.declined)
        )
        return found


cdef list _make(MappedFunctions mapped, RowReader* reader):
    """Return the results. None if a function fails, or if the rows' results cannot be batched."""
    cdef Made tensors
    cdef RowBatch* batch
    cdef int64_t i
    if mapped.of_rows is None:
        tensors = reader.Element()
    else:
        batch = new RowBatch(reader.num_rows())
        try:
            for i in range(reader.num_rows()):
                tensors = reader.Row(i)
                if not _replace(mapped.of_rows, &tensors) or not batch.Append(tensors):
                    return None
            tensors = move(batch.tensors())
        finally:
            del batch
    if mapped.of_elements is not None and not _replace(mapped.of_elements, &tensors):
        return None
    return RowReader.ListOf(move(tensors))


cdef bint _replace(MappedStage stage, Made* tensors) except -1:
    """Replace the tensors of an element by the results. False: TensorFlow has to make them."""
    cdef Made given
    cdef int64_t begin = now()
    cdef list plans = stage.plans()
    _counts.count(stage.known)
    if plans is not None:
        if not _run_plans(plans, tensors):
            return False
    else:
        given = tensors[0]
        if not _run_kernel(stage, tensors):
            return False
    _note_time(stage, now() - begin, plans is not None)
    if not stage.known.is_decided and stage.account.is_due(_making.of(1)):
        _learn(stage, move(given), tensors[0])
    return True


cdef int _note_time(MappedStage stage, int64_t ns, bint planned) except -1:
    """Note the time of a run. Leave the functions to TensorFlow's threads if they take long."""
    if not planned:
        stage.account.charge(ns)
        if stage.of_rows:
            return 0
    if stage.num_runs >= MAX_MAPPED_TRIALS:
        return 0
    stage.num_runs += 1
    stage.in_time |= ns <= (MAX_MAPPED_ROW_NS if stage.of_rows else MAX_MAPPED_NS)
    if stage.num_runs == MAX_MAPPED_TRIALS and not stage.in_time:
        stage.forget()
        stage.known.refuse("mapped_slow")
        stage.decline()
    return 0


cdef int _learn(MappedStage stage, Made tensors, const Made& results) except -1:
    """Make plans, and compare their results for an element with those of TensorFlow."""
    cdef int64_t begin = now()
    cdef list plans = stage.make_plans()
    _making.learn(1, now() - begin)
    if plans is None or not _are_on_host(plans):
        stage.known.refuse("mapped_unplanned")
    elif not _run_plans(plans, &tensors) or not _are_same(tensors, results):
        stage.known.refuse("mapped_differs")
    else:
        stage.known.learn(plans)
    if stage.of_rows and not stage.known.is_active:  # TensorFlow's kernel is too slow for rows
        stage.decline()
    return 0


cdef bint _are_on_host(list plans):
    cdef Plan plan
    for plan in plans:
        if plan.device != NULL:
            return False
    return True


cdef bint _are_same(const Made& tensors, const Made& others):
    cdef size_t i
    if tensors.size() != others.size():
        return False
    for i in range(tensors.size()):
        if not SameBytes(tensors[i], others[i]):
            return False
    return True


cdef bint _run_plans(list plans, Made* tensors) except -1:
    cdef Plan plan
    cdef int64_t begin
    for plan in plans:
        begin = now()
        if not RunMapped(&plan.native, plan.last_ns > LONG_RUN_NS, tensors).ok():
            return False
        plan.last_ns = now() - begin
    return True


cdef bint _run_kernel(MappedStage stage, Made* tensors) except -1:
    cdef PyObject* args[3]
    cdef size_t i
    key = tensors[0][0].dim_size(0) if tensors[0][0].dims() else -1
    source = stage.sources.get(key)
    if source is None:
        inputs = [CopyOf(tensors[0][i]) for i in range(tensors.size())]
        source = stage.sources[key] = (stage.make_iterator(inputs), inputs)
    resource, inputs = source
    if not _copy_into(inputs, tensors[0]):
        return False
    args[0] = <PyObject*>resource
    args[1] = <PyObject*>stage.dtypes
    args[2] = <PyObject*>stage.shapes
    results = call_object(<PyObject*>_get_next, args, 0, <PyObject*>_KEYWORDS)
    tensors.clear()
    for result in results:
        result = _apart(result, inputs)
        tensors.push_back(deref(HostTensor(<PyObject*>result)))
    return True


cdef bint _copy_into(list inputs, const Made& tensors) except -1:
    """Copy an element into the tensors that are mapped. Return False if their shapes differ."""
    cdef size_t i
    cdef const Tensor* target
    for i in range(tensors.size()):
        target = HostTensor(<PyObject*>inputs[i])
        if not tensors[i].IsSameSize(deref(target)):
            return False
        memcpy(target.data(), tensors[i].data(), tensors[i].TotalBytes())
    return True


cdef object _apart(object result, list inputs):
    """Return a result, or a copy of it if it shares the memory of one of the inputs."""
    cdef const Tensor* tensor = HostTensor(<PyObject*>result)
    cdef const Tensor* other
    cdef const char* data = <const char*>tensor.data()
    for given in inputs:
        other = HostTensor(<PyObject*>given)
        if <const char*>other.data() <= data < <const char*>other.data() + other.TotalBytes():
            return CopyOf(deref(tensor))
    return result
