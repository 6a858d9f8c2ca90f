"""Attributes of Keras's and tf_keras's objects that no recorded call reads."""

OF_TENSORFLOW = {
    "tensorflow.python.ops.resource_variable_ops.BaseResourceVariable": {
        "_variable_read",  # for graphs
    },
}
"""By class, attributes that no call asks."""

UNASKED = {
    **OF_TENSORFLOW,
    "keras.src.ops.operation.Operation": {
        "_inbound_nodes",  # what symbolic calls have made of it
        "_outbound_nodes",
        "_tracker",  # where attributes go that are set
    },
    "keras.src.metrics.metric.Metric": {"_tracker"},
    "keras.src.optimizers.base_optimizer.BaseOptimizer": {"_tracker"},
    "keras.src.backend.common.keras_tensor.KerasTensor": {"_keras_history"},
    "keras.src.utils.tracking.Tracker": {"stored_ids"},  # of what its lists hold
    "keras.src.trainers.trainer.Trainer": {
        *("train_function", "test_function", "predict_function"),  # for steps, not in them
        *("history", "stop_training", "_history", "_epoch_iterator", "_initial_epoch"),
        *("_compile_config", "_compiled_trainable_state", "_distribute_strategy"),
        "_eval_epoch_iterator",
    },
}
"""Likewise, with those of Keras's classes."""

OF_TRAINING = {
    "keras.src.trainers.trainer.Trainer": {
        *("_compile_loss", "_compile_metrics", "_jit_compile", "_loss_tracker", "_optimizer"),
        *("_run_eagerly", "compiled", "loss", "optimizer", "steps_per_execution"),
    },
}
"""Likewise, attributes that only training steps ask."""

UNASKED_STATE = frozenset(
    {
        *("custom_objects_scope_dict", "global_random_seed", "global_seed_generator"),
        *("name_scope_stack", "object_name_uids", "safe_mode_saving", "use_legacy_config"),
    }
)
"""Names of what Keras keeps for a thread, for making, naming and saving objects."""
