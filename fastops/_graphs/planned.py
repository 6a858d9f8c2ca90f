"""Plans of sessions."""

from tensorflow.python.framework import errors_impl

from fastops._plans.planned import Planned, located


class LeftError(Exception):
    """A plan leaves a run to its session; the plan has not changed anything."""


class FailedError(Exception):
    """A run of a plan has failed after it may have changed something. Its argument is the error."""


class SessionPlan(Planned):
    """The plan of a step. If the plan cannot run, it raises `LeftError`: the session runs."""

    def run_original(self, *inputs):
        raise LeftError

    def failure(self, plan, code, message, node):
        if not plan.schedule.has_effects:
            return LeftError(message)
        kind = errors_impl.exception_type_from_error_code(code)
        return FailedError(kind(None, None, located(message, node, code)))

    def follow(self, given, handles):
        """Renew the plan if TensorFlow's context has changed. It takes `given`, then `handles`."""
        if not self.is_ready():
            self.renew([None] * len(given) + list(handles))

    @property
    def times_the_session(self):
        """Whether the session makes the next run, so that its time is compared with the plan's."""
        return self.plan is not None and not self.settled and not self.is_plans_turn()
