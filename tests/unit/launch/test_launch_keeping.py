"""When there is a checkpoint: all parts of it are here, and of the same round where that counts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paceline.launch.crew import Crew, Member
from paceline.launch.keeping import Keeping
from paceline.launch.leases import LeaseBook
from paceline.launch.placement import Place
from paceline.measure.clock import Clock
from paceline.spec import RunSpec
from paceline.store.checkpoints import Checkpoints
from paceline.store.parts import write_part
from paceline.transport.control import Control, pair

LOCAL = RunSpec(strategy="independent", workers=2, checkpoint_every=1e-6, keep_checkpoints=1)
IN_STEP = LOCAL.with_(strategy="allreduce")


def uncut() -> None:
    """There are no servers."""


class Scene:
    """Two workers that answer when they are told to."""

    def __init__(self, folder: Path) -> None:
        self.kept = Checkpoints(folder, "id")
        self.told: list[tuple[str, str]] = []
        self.crew = Crew()
        self.ends: list[Control] = []
        for index in range(2):
            ours, theirs = map(Control, pair())
            member = Member(f"worker-{index}", "worker", index, Place(1, None), ours)
            member.state = "ready"
            self.crew.add(member)
            self.ends += [ours, theirs]
        self.keeping = Keeping(
            self.kept, "id", self.crew, Clock(0.0), lambda *event: self.told.append(event[:2])
        )

    def asked(self, index: int) -> list[dict[str, Any]]:
        return self.ends[2 * index + 1].poll()

    def answer(self, index: int, wish: dict[str, Any], step: int) -> None:
        seal = write_part(Path(wish["path"]), {}, {})
        message = {"number": wish["number"], "step": step, "epoch": 0, "round": step}
        message |= {"bytes": seal.bytes, "digest": seal.digest}
        self.keeping.hear(self.crew.workers()[index], message)

    def last(self) -> int | None:
        found, wrongs = self.kept.last()
        assert not wrongs
        return found.number if found else None


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    for end in made.ends:
        end.close()


def wishes(scene: Scene) -> list[dict[str, Any]]:
    scene.keeping.turn()
    return [wish for index in range(2) for wish in scene.asked(index)]


def test_it_is_one_when_all_parts_are_here(scene: Scene) -> None:
    scene.keeping.start(LOCAL, None, False, uncut)
    one, two = wishes(scene)
    assert not wishes(scene), "one is still being made"
    scene.answer(0, one, step=5)
    assert scene.last() is None
    scene.answer(1, two, step=9)
    assert scene.last() == 1
    one, two = wishes(scene)
    scene.answer(0, one, step=15)
    scene.answer(1, two, step=19)
    assert scene.last() == 2
    assert not scene.told


def test_parts_of_different_rounds_are_none_where_workers_are_in_step(scene: Scene) -> None:
    scene.keeping.start(IN_STEP, None, False, uncut)
    one, two = wishes(scene)
    scene.answer(0, one, step=5)
    scene.answer(1, two, step=6)
    assert scene.last() is None
    assert scene.told == [("supervisor", "unkept")]


def test_a_part_of_one_that_was_given_up_counts_for_no_other(scene: Scene) -> None:
    scene.keeping.start(LOCAL, None, False, uncut)
    one, _ = wishes(scene)
    scene.keeping.lost(scene.crew["worker-1"])
    assert all(not wish["path"] for wish in wishes(scene)), "they are told, and heard first"
    for member in scene.crew.workers():
        scene.keeping.forgot(member)
    again = wishes(scene)
    assert {wish["number"] for wish in again} == {2}
    late = {"number": one["number"], "step": 1, "epoch": 0, "round": 1, "bytes": 1, "digest": ""}
    scene.keeping.hear(scene.crew["worker-0"], late)
    scene.answer(1, again[1], step=3)
    assert scene.last() is None
    scene.answer(0, again[0], step=3)
    assert scene.last() == 2


def test_at_the_end_one_more_is_kept_and_said(scene: Scene) -> None:
    scene.keeping.start(LOCAL.with_(checkpoint_every=1000.0), None, False, uncut)
    assert not wishes(scene)
    scene.keeping.at_stop()
    for index in range(2):
        (wish,) = scene.asked(index)
        assert wish["last"]
        scene.answer(index, wish, step=4)
    assert scene.told == [("supervisor", "kept")]


@pytest.mark.parametrize(
    ("spec", "own_loop"),
    [
        (LOCAL.with_(checkpoint_every=0.0, keep_checkpoints=2), False),
        (LOCAL, True),
    ],
)
def test_where_there_are_none_nobody_is_asked(scene: Scene, spec: RunSpec, own_loop: bool) -> None:
    scene.keeping.start(spec, None, own_loop, uncut)
    assert not wishes(scene)
    scene.keeping.at_stop()
    assert not scene.asked(0)


def test_a_worker_that_cannot_write_is_told_of_and_the_next_is_tried(scene: Scene) -> None:
    scene.keeping.start(LOCAL, None, False, uncut)
    one, _ = wishes(scene)
    scene.keeping.hear(scene.crew["worker-0"], {"number": one["number"], "why": "disk full"})
    assert scene.told == [("worker-0", "unkept")]
    assert [wish["path"] for wish in wishes(scene)] == [""], "the other does not want it any more"
    scene.keeping.forgot(scene.crew["worker-1"])
    assert len(wishes(scene)) == 2


def serve(scene: Scene) -> Member:
    ours, theirs = map(Control, pair())
    server = Member("server-0", "server", 0, Place(1, None), ours)
    server.state = "ready"
    scene.crew.add(server)
    scene.ends += [ours, theirs]
    return server


def part_of(scene: Scene, member: Member, wish: dict[str, Any], step: int) -> None:
    seal = write_part(Path(wish["path"]), {}, {})
    message = {"number": wish["number"], "step": step, "epoch": 0, "round": step}
    scene.keeping.hear(member, message | {"bytes": seal.bytes, "digest": seal.digest})


def test_servers_are_ready_before_workers_are_asked(scene: Scene) -> None:
    server = serve(scene)
    scene.keeping.start(IN_STEP.with_(strategy="ps-sync"), None, False, uncut)
    assert not wishes(scene)
    (wish,) = scene.asked(2)
    assert not wish["last"]
    scene.keeping.hear(server, {"number": wish["number"]})
    one, two = wishes(scene)
    scene.answer(0, one, step=5)
    scene.answer(1, two, step=5)
    assert scene.last() is None
    part_of(scene, server, wish, 5)
    assert scene.last() == 1
    assert not scene.told


def test_the_last_is_kept_by_servers_when_all_steps_are_taken(scene: Scene) -> None:
    server = serve(scene)
    scene.keeping.start(IN_STEP.with_(checkpoint_every=1000.0), None, False, uncut)
    scene.keeping.at_stop()
    one, two = wishes(scene)
    assert not scene.asked(2)
    scene.answer(0, one, step=5)
    for member in scene.crew.workers():
        member.state = "trained"
    scene.keeping.turn()
    (wish,) = scene.asked(2)
    assert wish["last"]
    part_of(scene, server, wish, 5)
    scene.answer(1, two, step=5)
    assert scene.last() == 1


def test_a_server_that_is_lost_takes_what_is_being_made_along(scene: Scene) -> None:
    server = serve(scene)
    scene.keeping.start(IN_STEP, None, False, uncut)
    scene.keeping.turn()
    assert scene.asked(2)
    scene.keeping.lost(server)
    scene.keeping.turn()
    (again,) = scene.asked(2)
    assert again["number"] == 2


def test_the_book_of_leases_is_of_when_all_parts_are_here(scene: Scene) -> None:
    book = LeaseBook(1000, 10, 2, 1, None)
    scene.keeping.start(LOCAL.with_(strategy="ps-async"), book, False, uncut)
    first = book.take(0)
    one, two = wishes(scene)
    second = book.take(0)
    book.confirm(0, 1000)  # while parts are written, of before it had finished
    scene.answer(0, one, step=1)
    scene.answer(1, two, step=0)
    found, _ = scene.kept.last()
    assert found is not None
    assert found.leases is not None
    assert found.leases["workers"]["0"]["held"] == [list(first or ()), list(second or ())]
    book.confirm(0, 1000)
    assert not book.kept()["workers"]["0"]["held"]


@pytest.mark.parametrize("how", ["leaving", "absent"])
def test_while_one_goes_or_is_not_heard_none_is_made(scene: Scene, how: str) -> None:
    scene.keeping.start(IN_STEP, None, False, uncut)
    assert len(wishes(scene)) == 2
    worker = scene.crew["worker-1"]
    setattr(worker, how, True)
    assert [wish["path"] for wish in wishes(scene)] == ["", ""], "they do not want it any more"
    for member in scene.crew.workers():
        scene.keeping.forgot(member)
    assert not wishes(scene)
    setattr(worker, how, False)
    assert {wish["number"] for wish in wishes(scene)} == {2}


def test_one_that_comes_keeps_its_part_once_it_is_at_it(scene: Scene) -> None:
    scene.keeping.start(IN_STEP, None, False, uncut)
    scene.crew["worker-1"].life = 1
    assert not wishes(scene)
    scene.crew["worker-1"].at_it = True
    assert [(wish["place"], wish["of"]) for wish in wishes(scene)] == [(0, 2), (1, 2)]


def test_of_the_last_the_others_keep_the_part_of_one_that_left(scene: Scene) -> None:
    scene.keeping.start(IN_STEP.with_(checkpoint_every=1000.0), None, False, uncut)
    scene.keeping.at_stop()
    (wish,) = scene.asked(1)
    scene.answer(1, wish, step=4)
    gone = scene.crew["worker-0"]
    gone.state = "left"
    scene.keeping.lost(gone)
    (wish,) = scene.asked(1)
    assert (wish["place"], wish["of"]) == (0, 1)
    part_of(scene, scene.crew["worker-1"], wish, 4)
    found, _ = scene.kept.last()
    assert found is not None
    assert found.crew == (1,)
