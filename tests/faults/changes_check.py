"""The pops and revisions of a branch, held against those that clients asked for.

Every acknowledged one is recorded exactly once, a refused one is not, and nothing is that nobody asked for. A pop takes
the newest message. What is recorded of a message is what it was: the batch's own words first, then those of each
revision in the order of their positions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tests.faults.batches import revised
from tests.faults.positions import Positions
from tests.faults.recording import Change
from tests.faults.stored import Fault


def check_changes(positions: Positions, asked: Sequence[Change]) -> list[Fault]:
    pops = [change for change in asked if change.kind == "popped"]
    revisions = [change for change in asked if change.kind == "revised"]
    return [*_check_pops(positions, pops), *_check_newest(positions), *_check_revisions(positions, revisions)]


def _check_pops(positions: Positions, pops: Sequence[Change]) -> list[Fault]:
    place = positions.stored.place
    recorded = [change.message for change in positions.stored.changes if change.kind == "popped"]
    left = Counter(message.message_id for message in recorded if message is not None)
    told = Counter(pop.message_id for pop in pops if pop.outcome == "acknowledged" and pop.message_id is not None)
    faults = [Fault("twice", place, f"{id_} was popped {count} times") for id_, count in told.items() if count > 1]
    faults += [Fault("twice", place, f"{id_} left {count} times") for id_, count in left.items() if count > 1]
    faults += [Fault("lost", place, f"{id_}: its pop was acknowledged") for id_ in told if not left[id_]]
    untold = sum(pop.outcome in ("open", "unknown") for pop in pops)
    if len(strangers := [id_ for id_ in left if id_ not in told]) > untold:
        faults.append(Fault("stranger", place, f"nobody popped one of {strangers}"))
    return faults


def _check_newest(positions: Positions) -> list[Fault]:
    """The message that a pop takes is the last that stood before the position of the pop."""
    faults: list[Fault] = []
    standing: list[int] = []
    for version in range(1, positions.stored.version + 1):
        if version in positions.removed:
            seq = positions.removed[version]
            if standing[-1:] != [seq]:
                newest = f"seq {standing[-1]}" if standing else "none"
                faults.append(Fault("change", positions.stored.place, f"seq {version} popped seq {seq}, not {newest}"))
            if seq in standing:
                standing.remove(seq)
        elif version in positions.messages:
            standing.append(version)
    return faults


def _check_revisions(positions: Positions, revisions: Sequence[Change]) -> list[Fault]:
    place = positions.stored.place
    asked = {change.name: change for change in revisions}
    texts = {f"revised by {name}": name for name in asked}
    faults: list[Fault] = []
    done = Counter[str]()
    for id_, forms in positions.forms.items():
        before = forms[0]
        for form in forms[1:]:
            name = texts.get(form.text)
            if name is None or asked[name].message_id != id_:
                faults.append(Fault("stranger", place, f"{id_}: nobody asked for {form.text!r}"))
            elif form != revised(before, name):
                faults.append(Fault("change", place, f"{id_}: not what {name} left of the form before it"))
            else:
                done[name] += 1
            before = form
    for name, change in asked.items():
        if change.outcome == "acknowledged" and not done[name]:
            faults.append(Fault("lost", place, f"{name} of {change.message_id}"))
        if change.outcome == "refused" and done[name]:
            faults.append(Fault("ghost", place, f"{name} of {change.message_id}"))
        if done[name] > 1:
            faults.append(Fault("twice", place, f"{name} of {change.message_id}"))
    return faults
