"""Run a step: ``python -m tools.gpu.steps REQUEST``, with a request made by `tools.gpu.proving`."""

import importlib
import json
import sys
import traceback

from .request import Findings, Request, SkippedError


def main():
    request = Request(**json.loads(sys.argv[1]))
    sys.path.insert(0, str(request.tree / "tests"))
    module = importlib.import_module(f"tools.gpu.steps.{request.step}")
    try:
        if request.step != "doctor" and not request.has_device():
            raise RuntimeError(f"TensorFlow has no {request.device}: see the step `doctor`")
        findings = module.run(request)
    except SkippedError as skipped:
        findings = Findings(outcome="skipped", notes=[str(skipped)])
    except Exception as error:
        traceback.print_exc()
        last = f"{type(error).__name__}: {error}"[:500]
        findings = Findings(outcome="failed", notes=[f"it raised {last}"])
    request.give(findings)


if __name__ == "__main__":
    main()
