"""The class that runs calls of traced functions in unchanged programs."""

from fastops._plans.plans import PlansBeside

__all__ = ["PlansBeside"]
