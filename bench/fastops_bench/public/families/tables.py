"""The methods of `tf.lookup`'s tables and of `tf.queue.FIFOQueue`."""

import tensorflow as tf


def beside(world):
    pairs = tf.lookup.KeyValueTensorInitializer(["alpha", "d"], tf.constant([1, 2], tf.int64))
    return {
        "static": tf.lookup.StaticHashTable(pairs, -1),
        "vocabulary": tf.lookup.StaticVocabularyTable(pairs, 3),
        "dense": tf.lookup.experimental.DenseHashTable(
            tf.int64, tf.int64, -1, -1, -2, initial_num_buckets=16
        ),
        "mutable": tf.lookup.experimental.MutableHashTable(tf.string, tf.float32, 0.0),
        "pair": world.u[:2],
        "queue": tf.queue.FIFOQueue(8, tf.float32, [[]]),
    }


TEXT = """
tf.lookup.StaticHashTable:
    __getitem__: static[s]
    export: static.export()  # varies: the order of keys is the table's own
    lookup: static.lookup(s)
    size: static.size()
tf.lookup.StaticVocabularyTable:
    __getitem__: vocabulary[s]
    lookup: vocabulary.lookup(s)
    size: vocabulary.size()
tf.lookup.experimental.DenseHashTable:
    insert: dense.insert(long, long)
    insert_or_assign: dense.insert_or_assign(long, long)
    __getitem__: dense[long]
    lookup: dense.lookup(long)
    export: dense.export()
    size: dense.size()
    erase: dense.erase(long)
    remove: dense.remove(long)
tf.lookup.experimental.MutableHashTable:
    insert: mutable.insert(s, x)
    __getitem__: mutable[s]
    lookup: mutable.lookup(s)
    export: mutable.export()  # varies: the order of keys is the table's own
    size: mutable.size()
    remove: mutable.remove(s)
tf.queue.FIFOQueue:
    dequeue: queue.enqueue(a) or queue.dequeue()
    dequeue_many: queue.enqueue_many([pair]) or queue.dequeue_many(2)
    dequeue_up_to: queue.enqueue_many([pair]) or queue.dequeue_up_to(2)
    enqueue: (queue.enqueue(a), queue.dequeue())
    enqueue_many: (queue.enqueue_many([pair]), queue.dequeue_many(2))
    is_closed: queue.is_closed()
    size: queue.size()
"""
