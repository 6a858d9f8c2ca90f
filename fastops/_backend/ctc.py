"""Connectionist temporal classification: losses of sequences, and sequences from probabilities."""

import tensorflow as tf

from fastops._backend import below, facts, shapes
from fastops._backend.catalogue import unique
from fastops._backend.state import epsilon

_ctc_loss = below.primitive(
    "CTCLoss",
    lambda inputs, labels_indices, labels_values, sequence_length: tf.raw_ops.CTCLoss(
        inputs=inputs,
        labels_indices=labels_indices,
        labels_values=labels_values,
        sequence_length=sequence_length,
    ),
)
_greedy = below.primitive(
    "CTCGreedyDecoder",
    lambda inputs, sequence_length: tf.raw_ops.CTCGreedyDecoder(
        inputs=inputs, sequence_length=sequence_length, merge_repeated=True
    ),
    constants={"merge_repeated": True},
)
_sparse_to_dense = below.primitive(
    "SparseToDense",
    lambda sparse_indices, output_shape, sparse_values, default_value: tf.raw_ops.SparseToDense(
        sparse_indices=sparse_indices,
        output_shape=output_shape,
        sparse_values=sparse_values,
        default_value=default_value,
    ),
)
_nonzero = below.primitive("Where", lambda condition: tf.where(condition))


def _entries(labels, lengths):
    """Return the indices of the labels, sequence by sequence, and their values."""
    steps = below.range_(0, facts.int_shape(labels)[1])
    mask = below.less(below.expand_dims(steps, 0), below.expand_dims(lengths, 1))
    indices = _nonzero(mask)
    return indices, below.gather_nd(labels, indices)


@unique(
    "labels of several lengths as a sparse tensor",
    tensorflow="tf.RaggedTensor.from_tensor",
    differs="TensorFlow's is ragged; its `to_sparse` returns the same",
)
def ctc_label_dense_to_sparse(labels, label_lengths):
    """Return the labels of each sequence as a sparse tensor.

    Parameters
    ----------
    labels : tensor
        Of shape ``(batch, most labels)``.
    label_lengths : tensor
        Of dtype int32 and shape ``(batch,)``: the number of labels of each sequence.

    Returns
    -------
    tf.SparseTensor
        Of the dtype of `labels`.

    Raises
    ------
    ValueError, tf.errors.InvalidArgumentError
        For shapes that do not fit.

    Examples
    --------
    >>> import tensorflow as tf
    >>> from fastops import backend
    >>> labels = backend.constant([[1, 2], [3, 0]], dtype="int32")
    >>> sparse = backend.ctc_label_dense_to_sparse(labels, tf.constant([2, 1]))
    >>> sparse.indices.numpy().tolist(), sparse.values.numpy().tolist()
    ([[0, 0], [0, 1], [1, 0]], [1, 2, 3])
    """
    if (
        facts.are_plain(labels, label_lengths)
        and facts.base_dtype(label_lengths) is tf.int32
        and facts.ndim(labels) == 2
        and facts.int_shape(label_lengths) == facts.int_shape(labels)[:1]
    ):
        indices, values = _entries(labels, label_lengths)
        shape = below.constant(facts.int_shape(labels), tf.int64)
        return tf.SparseTensor(indices, values, shape)
    shape = tf.shape(labels)
    steps = tf.expand_dims(tf.range(shape[1]), 0)
    mask = tf.ensure_shape(steps < tf.expand_dims(label_lengths, 1), labels.shape)
    indices = tf.where(mask)
    return tf.SparseTensor(indices, tf.gather_nd(labels, indices), tf.cast(shape, tf.int64))


def _log_probabilities(y_pred):
    return below.log(below.add(below.transpose(y_pred, [1, 0, 2]), epsilon()))


@unique(
    "losses of padded batches, by lengths",
    tensorflow="tf.nn.ctc_loss",
    keras="keras.ops.ctc_loss",
    differs="the others take logits, and the blank is class 0 by default",
)
def ctc_batch_cost(y_true, y_pred, input_length, label_length):
    """Loss of sequences by connectionist temporal classification.

    Parameters
    ----------
    y_true : tensor
        Of shape ``(batch, most labels)``: the labels.
    y_pred : tensor
        Of a float dtype and shape ``(batch, steps, classes)``: probabilities. The last class stands
        for no label.
    input_length, label_length : tensor
        Of shape ``(batch, 1)``: the number of steps of `y_pred`, and of labels of `y_true`, of each
        sequence.

    Returns
    -------
    tensor
        Of shape ``(batch, 1)``.

    Raises
    ------
    ValueError, tf.errors.InvalidArgumentError
        For shapes that do not fit, and sequences with too few labels.

    Source
    ------
    Graves et al., Connectionist Temporal Classification, ICML 2006.

    Examples
    --------
    >>> import numpy as np
    >>> import tensorflow as tf
    >>> from fastops import backend
    >>> loss = backend.ctc_batch_cost(
    ...     tf.constant([[0]]), tf.fill([1, 1, 2], 0.5), tf.constant([[1]]), tf.constant([[1]]))
    >>> bool(np.allclose(loss, np.log(2.0)))
    True
    """
    label_length = below.cast(below.squeeze(label_length, axis=-1), tf.int32)
    input_length = below.cast(below.squeeze(input_length, axis=-1), tf.int32)
    labels = ctc_label_dense_to_sparse(y_true, label_length)
    logs = _log_probabilities(y_pred)
    if facts.are_plain(labels.values, logs, input_length) and facts.base_dtype(logs) in (
        tf.float32,
        tf.float64,
    ):
        values = below.cast(labels.values, tf.int32)
        losses = _ctc_loss(logs, labels.indices, values, input_length)[0]
    else:
        losses = tf.compat.v1.nn.ctc_loss(
            inputs=logs, labels=tf.cast(labels, tf.int32), sequence_length=input_length
        )
    return below.expand_dims(losses, 1)


@unique(
    "dense results, padded with -1",
    tensorflow="tf.nn.ctc_greedy_decoder",
    keras="keras.ops.ctc_decode",
    differs="TensorFlow and Keras take logits; TensorFlow's results are sparse",
)
def ctc_decode(y_pred, input_length, greedy=True, beam_width=100, top_paths=1):
    """Find the most probable labels of sequences.

    Parameters
    ----------
    y_pred : tensor
        Of a float dtype and shape ``(batch, steps, classes)``: probabilities. The last class stands
        for no label.
    input_length : tensor
        Of shape ``(batch,)``: the number of steps of each sequence.
    greedy : bool, default True
        Whether to take the most probable class of each step, instead of a beam search.
    beam_width : int, default 100
        The number of prefixes that the search keeps.
    top_paths : int, default 1
        The number of results that the search returns.

    Returns
    -------
    tuple
        A list of tensors of shape ``(batch, steps)``, whose labels are followed by -1, the best
        first; and the logarithms of their probabilities, of shape ``(batch, top_paths)``.

    Raises
    ------
    ValueError, tf.errors.InvalidArgumentError
        For shapes that do not fit.

    Examples
    --------
    >>> import tensorflow as tf
    >>> from fastops import backend
    >>> decoded, _ = backend.ctc_decode(tf.constant([[[0.9, 0.1], [0.2, 0.8]]]), [2])
    >>> decoded[0].numpy().tolist()
    [[0, -1]]
    """
    plain = facts.is_plain(y_pred)
    sizes = facts.int_shape(y_pred)[:2] if plain else shapes.shape(y_pred)
    logs = _log_probabilities(y_pred)
    input_length = below.cast(input_length, tf.int32)
    if plain and greedy:
        indices, values, _, log_probabilities = _greedy(logs, input_length)
        dense = _sparse_to_dense(indices, below.constant(sizes, tf.int64), values, -1)
        return [dense], log_probabilities
    if greedy:
        decoded, log_probabilities = tf.nn.ctc_greedy_decoder(
            inputs=logs, sequence_length=input_length
        )
    else:
        decoded, log_probabilities = tf.compat.v1.nn.ctc_beam_search_decoder(
            inputs=logs,
            sequence_length=input_length,
            beam_width=beam_width,
            top_paths=top_paths,
        )
    shape = (sizes[0], sizes[1])
    dense = [
        tf.sparse.to_dense(tf.SparseTensor(sparse.indices, sparse.values, shape), default_value=-1)
        for sparse in decoded
    ]
    return dense, log_probabilities
