"""`tf.debugging`."""


def beside(world):
    return {"high": world.x + 9.0, "low": -world.x}


TEXT = """
tf.debugging.Assert(True, [x])
tf.debugging.assert_all_finite(x, "finite")
tf.debugging.assert_equal(i, i)
tf.debugging.assert_greater(high, x)
tf.debugging.assert_greater_equal(x, x)
tf.debugging.assert_integer(i)
tf.debugging.assert_less(x, high)
tf.debugging.assert_less_equal(x, x)
tf.debugging.assert_near(x, x)
tf.debugging.assert_negative(low)
tf.debugging.assert_non_negative(x)
tf.debugging.assert_non_positive(low)
tf.debugging.assert_none_equal(x, low)
tf.debugging.assert_positive(x)
tf.debugging.assert_proper_iterable([x])
tf.debugging.assert_rank(m, 2)
tf.debugging.assert_rank_at_least(m, 1)
tf.debugging.assert_rank_in(m, [1, 2])
tf.debugging.assert_same_float_dtype([x, y])
tf.debugging.assert_scalar(a)
tf.debugging.assert_shapes([(m, ("n", "n")), (spd, ("n", "n"))])
tf.debugging.assert_type(x, tf.float32)
tf.debugging.check_numerics(x, "finite")
tf.debugging.is_numeric_tensor(x)
"""
