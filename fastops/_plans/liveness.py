"""The lifetime of values: steps that can be left out, and buffers that steps may take over."""


def without_unasked(steps, asked):
    """Return the steps without those that only pass on deadness which no other step reads."""
    asked = asked | {slot for step in _with_inner(steps) for slot in step.needs}
    asked |= {slot for step in _with_inner(steps) if step.kind == "merge" for slot in step.inputs}

    def keep(steps):
        for step in steps:
            if step.loop is not None:
                step.loop.body = list(keep(step.loop.body))
            if step.kind in ("nothing", "copy") and not _tells(step, asked):
                continue
            yield step

    return list(keep(steps))


def _tells(step, asked):
    """Whether a step copies a value, or fills a slot whose deadness another step reads."""
    if step.kind == "copy" and any(slot >= 0 for slot in step.outputs):
        return True
    return not asked.isdisjoint({*step.outputs, step.control})


def _with_inner(steps):
    for step in steps:
        yield step
        if step.loop is not None:
            yield from _with_inner(step.loop.enters + step.loop.body + step.loop.exits)


def release(steps, kept, persistent):
    """Set for each step which inputs later steps still need, and which slots it releases.

    Parameters
    ----------
    steps : list of PlanStep
        The steps in execution order.
    kept : set of int
        Slots whose values are needed after the steps.
    persistent : set of int
        Slots that keep their values: no step may release them.
    """
    later = kept | persistent
    for step in reversed(steps):
        if step.loop is None:
            step.shared = [
                i
                for i, slot in enumerate(step.inputs)
                if slot in later or step.inputs.count(slot) > 1
            ]
            step.releases = [slot for slot in dict.fromkeys(step.inputs) if slot not in later]
        else:
            loop = step.loop
            release(loop.exits, later, persistent)
            inside = set().union(*map(_used, loop.body))
            mine = {*loop.current}.union(*map(_made, loop.body))
            left = {slot for leave in loop.exits for slot in leave.inputs}
            asked = {*(inside - mine), loop.condition, *loop.next, *left}
            release(loop.body, asked, persistent)
            release(loop.enters, later | inside | {*loop.entered}, persistent)
        later |= _used(step)


def _made(step):
    """Return the slots that a step fills, including the steps inside it."""
    made = {slot for slot in step.outputs if slot >= 0}
    if step.loop is not None:
        for part in (step.loop.enters, step.loop.body, step.loop.exits):
            made = made.union(*map(_made, part))
        made |= {*step.loop.current}
    return made


def _used(step):
    """Return the slots that a step reads, including the steps inside it."""
    used = set(step.inputs)
    if step.loop is not None:
        for part in (step.loop.enters, step.loop.body, step.loop.exits):
            for inner in part:
                used |= _used(inner)
        used |= {*step.loop.entered, *step.loop.current, *step.loop.next, step.loop.condition}
    return used
