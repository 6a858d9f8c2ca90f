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
    "keras.src.models.model.Trainer": {
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
    "keras.src.layers.layer.Layer": set(),  # its properties read some of the following
    "keras.src.models.model.Trainer": {
        *("_compile_loss", "_compile_metrics", "_jit_compile", "_loss_tracker", "_optimizer"),
        *("_run_eagerly", "compiled", "loss", "optimizer", "steps_per_execution"),
    },
}
"""By class, attributes that only training steps read."""

OF_TF_KERAS_LAYERS = {
    **OF_TENSORFLOW,
    "tf_keras.src.engine.base_layer.Layer": {
        "_called",  # true after the first call; only the registration of arguments reads it
        "_thread_local",  # the losses that calls add: `Scopes.stores_of`
        "_obj_reference_counts_dict",  # used when attributes are set
        "_inbound_nodes_value",  # written by symbolic calls
        "_outbound_nodes_value",
    },
    "tf_keras.src.engine.functional.Functional": {
        "_layer_call_argspecs",  # the parameters of the layers' methods `call`
    },
    "tf_keras.src.engine.training.Model": {
        *("train_function", "test_function", "predict_function", "train_tf_function"),
        *("history", "stop_training", "_training_state", "_eval_data_handler", "_checkpoint"),
        *("compiled_loss", "compiled_metrics", "loss", "optimizer", "_compile_config"),
        *("_compiled_trainable_state", "_is_compiled", "_jit_compile", "_run_eagerly"),
        *("_steps_per_execution", "_steps_per_execution_tuner", "_autotune_steps_per_execution"),
        *("_train_counter", "_test_counter", "_predict_counter", "_pss_evaluation_shards"),
        *("_cluster_coordinator", "_distribution_strategy", "_distribute_reduction_method"),
    },
}
"""By class of tf_keras and TensorFlow, attributes that no recorded call reads."""

OF_LOSSES = frozenset({"_losses", "_loss_ids"})
"""Attributes of Keras's layers with the losses that calls have added."""

UNASKED_STATE = frozenset(
    {
        *("custom_objects_scope_dict", "global_random_seed", "global_seed_generator"),
        *("name_scope_stack", "object_name_uids", "safe_mode_saving", "use_legacy_config"),
    }
)
"""Keras settings of a thread that recorded calls do not read: they are for making, naming and
saving objects."""
