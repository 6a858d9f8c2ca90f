"""What a session runs as a plan, and hands back where that is not right."""

from tensorflow.python.framework import errors_impl

from fastops._plans.planned import Planned, located


class LeftError(Exception):
    """A run that a plan leaves to its session, before it has changed anything."""


class FailedError(Exception):
    """A run of a plan that has failed after it may have changed something, and how."""


class SessionPlan(Planned):
    """What a session runs. Where a plan is not right, that is the session's to run."""

    def run_original(self, *inputs):
        raise LeftError

    def failure(self, plan, code, message, node):
        if not plan.schedule.has_effects:
            return LeftError(message)
        kind = errors_impl.exception_type_from_error_code(code)
        return FailedError(kind(None, None, located(message, node)))

    def follow(self, given, handles):
        """Make up for what changed in TensorFlow; of what it takes, handles come last."""
        if not self.is_ready():
            self.renew([None] * len(given) + list(handles))

    @property
    def times_the_session(self):
        """Whether the next run is the session's, to see who is faster."""
        return self.plan is not None and not self.settled and not self.is_plans_turn()
