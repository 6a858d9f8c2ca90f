"""Attributes of Keras's and tf_keras's objects that no recorded call reads."""

OF_TENSORFLOW = {
    "tensorflow.python.ops.resource_variable_ops.BaseResourceVariable": {
        "_variable_read",  # used in graphs only
    },
}
"""By class of TensorFlow, attributes that no recorded call reads."""

UNASKED = {
    **OF_TENSORFLOW,
    "keras.src.ops.operation.Operation": {
        "_inbound_nodes",  # written by symbolic calls
        "_outbound_nodes",
        "_tracker",  # used when attributes are set
    },
    "keras.src.metrics.metric.Metric": {"_tracker"},
    "keras.src.optimizers.base_optimizer.BaseOptimizer": {"_tracker"},
    "keras.src.backend.common.keras_tensor.KerasTensor": {"_keras_history"},
    "keras.src.utils.tracking.Tracker": {"stored_ids"},  # identities of the tracked objects
    "keras.src.trainers.trainer.Trainer": {
        *("train_function", "test_function", "predict_function"),  # they call steps
        *("history", "stop_training", "_history", "_epoch_iterator", "_initial_epoch"),
        *("_compile_config", "_compiled_trainable_state", "_distribute_strategy"),
        "_eval_epoch_iterator",
    },
}
"""By class, attributes that no recorded call reads."""

NAMES = {
    "tensorflow.python.ops.resource_variable_ops.BaseResourceVariable": {
        *("_handle_name", "_unique_id"),
    },
    "keras.src.backend.Variable": {"_name", "_path"},
    "keras.src.metrics.metric.Metric": {"_name", "name"},
    "keras.src.losses.loss.Loss": {"name"},
    "keras.src.ops.operation.Operation": {"name"},
}
"""By class, attributes that are names: nothing that Keras's own code computes depends on them."""

OF_TRAINING = {
    "keras.src.trainers.trainer.Trainer": {
        *("_compile_loss", "_compile_metrics", "_jit_compile", "_loss_tracker", "_optimizer"),
        *("_run_eagerly", "compiled", "loss", "optimizer", "steps_per_execution"),
    },
}
"""By class, attributes that only training steps read."""

UNASKED_STATE = frozenset(
    {
        *("custom_objects_scope_dict", "global_random_seed", "global_seed_generator"),
        *("name_scope_stack", "object_name_uids", "safe_mode_saving", "use_legacy_config"),
    }
)
"""Keras settings of a thread that recorded calls do not read: they are for making, naming and
saving objects."""
