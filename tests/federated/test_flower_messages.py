"""Messages over Flower: nothing changes on the way, and nothing that a client sends stops a round."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import pytest

pytest.importorskip("flwr", reason="needs Flower: pip install 'discreet[flower]'")

from flwr.app import ArrayRecord, ConfigRecord, Error, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.common.constant import ErrorCode

from discreet.federated.flower.client_app import FAILED, OTHER_PLAN, make_client_app
from discreet.federated.flower.in_process import InProcessGrid, task_identity
from discreet.federated.flower.records import (
    UNREADABLE,
    answer_from_record,
    answer_to_record,
    request_from_record,
    request_to_record,
)
from discreet.federated.flower.server_app import GridSender
from discreet.federated.rounds import Refusal, Reply, Request

PLAN = b"digest of a plan"
# Numbers that a careless encoding would change: a signed zero, the smallest, the largest, no short decimal form.
AWKWARD = np.array([-0.0, 5e-324, 1.7976931348623157e308, 1 / 3, np.nextafter(1.0, 2.0)])


class StubClient:
    """Answers with what it is told to, or fails."""

    class plan:  # noqa: N801 - stands for an attribute
        digest = PLAN

    def __init__(self, name, answer=None):
        self.name, self._answer = name, answer

    def answer(self, request):
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer or Reply(self.name, request.round, request.accepted + 1, 2 * request.weights)


def app_of(clients):
    return make_client_app(lambda context: clients[context.node_config["client"]])


def ask(grid, names, plan=PLAN, timeout=5.0):
    with task_identity():
        return GridSender(grid, plan, timeout=timeout, poll=0.01)({name: Request(3, AWKWARD / 2, 7) for name in names})


def sent_by(record):
    """A ClientApp that sends this record, whatever it is asked."""
    app = ClientApp()
    app.train()(lambda message, context: Message(record, reply_to=message))
    return app


def test_messages_are_the_same_after_the_way():
    request, plan = request_from_record(request_to_record(Request(2, AWKWARD, 1), PLAN))
    assert (request.round, request.accepted, plan) == (2, 1, PLAN)
    assert request.weights.tobytes() == AWKWARD.tobytes()
    reply = answer_from_record(answer_to_record(Reply("a", 2, 5, AWKWARD)))
    assert (reply.client, reply.round, reply.number) == ("a", 2, 5)
    assert reply.gradient.tobytes() == AWKWARD.tobytes()
    refusal = Refusal("a", 2, "no participations left")
    assert answer_from_record(answer_to_record(refusal)) == refusal


def test_answers_come_in_the_order_of_the_questions():
    clients = {name: StubClient(name) for name in "abc"}
    answers = ask(InProcessGrid(app_of(clients), list("abc")), list("cab"))
    assert [(answer.client, answer.round, answer.number) for answer in answers] == [
        ("c", 3, 8),
        ("a", 3, 8),
        ("b", 3, 8),
    ]
    assert all(answer.gradient.tobytes() == (2 * (AWKWARD / 2)).tobytes() for answer in answers)


def test_a_client_that_is_not_connected_does_not_stop_the_round():
    clients = {name: StubClient(name) for name in "ab"}
    answers = ask(InProcessGrid(app_of(clients), list("ab")), list("abz"), timeout=0.3)
    assert [answer.client for answer in answers] == ["a", "b"]


def test_a_late_answer_ends_no_round_and_is_not_taken_for_one_of_the_next():
    class Slow(InProcessGrid):
        late = True

        def pull_messages(self, message_ids):
            if self.late:
                message_ids = message_ids[1:]  # the reply to the first is still on its way
            return super().pull_messages(message_ids)

    grid = Slow(app_of({name: StubClient(name) for name in "ab"}), list("ab"))
    begin = time.monotonic()
    assert [answer.client for answer in ask(grid, list("ab"), timeout=0.4)] == ["b"]
    assert 0.4 <= time.monotonic() - begin < 2.0
    grid.late = False
    assert [answer.client for answer in ask(grid, ["b"])] == ["b"]


def test_a_client_that_comes_back_is_asked_in_the_same_round():
    class Returning(InProcessGrid):
        looks = 0

        def get_nodes(self):
            self.looks += 1
            return super().get_nodes() if self.looks > 1 else []

    answers = ask(Returning(app_of({"a": StubClient("a")}), ["a"]), ["a"])
    assert [answer.client for answer in answers] == ["a"]


class Named(InProcessGrid):
    """Nodes that are connected, by number; several may bear one name."""

    def __init__(self, names):
        super().__init__(app_of({name: StubClient(name) for name in names.values()}), [])
        self._names = names


def test_nobody_takes_the_place_of_a_client_with_a_second_key_under_its_name():
    grid = Named({1: "a", 2: "b"})
    sender = GridSender(grid, PLAN, timeout=0.2, poll=0.01)
    asked = []
    grid.push_messages = lambda messages: [asked.append(m.metadata.dst_node_id) or "no answer" for m in messages]
    with task_identity():
        for connected in ({1: "a", 2: "b"}, {3: "a", 1: "a", 2: "b"}, {3: "a", 2: "b"}):
            grid._names = connected
            sender({name: Request(3, AWKWARD / 2, 7) for name in "ab"})
    assert asked == [1, 2, 1, 2, 2]


def test_a_name_with_two_keys_from_the_start_is_asked_by_neither():
    sender = GridSender(Named({1: "a", 3: "a", 2: "b"}), PLAN, timeout=0.2, poll=0.01)
    assert sender.wait_for(("a", "b"), 0.0) == ["a"]
    with task_identity():
        answers = sender({name: Request(3, AWKWARD / 2, 7) for name in "ab"})
    assert [answer.client for answer in answers] == ["b"]


def test_a_message_that_was_lost_on_the_way_is_sent_again():
    class Losing(InProcessGrid):
        lost = 0

        def pull_messages(self, message_ids):
            replies = super().pull_messages(message_ids)
            if not self.lost:
                self.lost = len(replies)
                return [Message(Error(ErrorCode.NODE_UNAVAILABLE), reply_to=self.sent[i]) for i in message_ids]
            return replies

        def push_messages(self, messages):
            identifiers = super().push_messages(messages)
            self.sent = dict(zip(identifiers, messages, strict=True))
            return identifiers

    grid = Losing(app_of({"a": StubClient("a")}), ["a"])
    assert [(answer.client, answer.number) for answer in ask(grid, ["a"])] == [("a", 8)]
    assert grid.lost == 1


def test_the_text_of_an_exception_does_not_leave_the_client(caplog):
    secret = "income 51234 of row 17"
    (answer,) = ask(InProcessGrid(app_of({"a": StubClient("a", ValueError(secret))}), ["a"]), ["a"])
    assert answer == Refusal("a", 3, FAILED)
    assert secret in caplog.text  # the owner of the data can still find out


def test_a_client_that_cannot_be_found_refuses_without_a_word_of_why():
    (answer,) = ask(InProcessGrid(app_of({}), ["a"]), ["a"])
    assert isinstance(answer, Refusal)
    assert "KeyError" not in answer.reason


def test_a_client_refuses_a_server_with_another_plan():
    clients = {"a": StubClient("a")}
    (answer,) = ask(InProcessGrid(app_of(clients), ["a"]), ["a"], plan=b"another plan")
    assert answer == Refusal("a", 3, OTHER_PLAN)


REPLY = {"client": "a", "round": 3, "number": 1, "gradient": AWKWARD.tobytes()}
HOSTILE = {
    "nothing": {},
    "no gradient": {"reply": ConfigRecord({name: REPLY[name] for name in ("client", "round", "number")})},
    "text for a number": {"reply": ConfigRecord(REPLY | {"round": "3"})},
    "true for a number": {"reply": ConfigRecord(REPLY | {"number": True})},
    "a list for numbers": {"reply": ConfigRecord(REPLY | {"gradient": [1.0, 2.0]})},
    "half a number": {"reply": ConfigRecord(REPLY | {"gradient": AWKWARD.tobytes()[:-3]})},
    "an array for a record": {"reply": ArrayRecord([AWKWARD])},
    "the record of a request": dict(request_to_record(Request(3, AWKWARD, 0), PLAN)),
}


@pytest.mark.parametrize("record", HOSTILE.values(), ids=HOSTILE)
def test_what_cannot_be_read_is_a_refusal(record):
    (answer,) = ask(InProcessGrid(sent_by(RecordDict(record)), ["a"]), ["a"])
    assert answer == Refusal("a", 3, UNREADABLE)
    (answer,) = ask(InProcessGrid(sent_by(RecordDict({"reply": ConfigRecord(REPLY)})), ["a"]), ["a"])
    assert isinstance(answer, Reply)  # so that it is the change above that made it unreadable


def test_nobody_answers_in_the_name_of_another():
    forged = answer_to_record(Reply("b", 3, 8, AWKWARD))
    (answer,) = ask(InProcessGrid(sent_by(forged), ["a"]), ["a"])
    assert isinstance(answer, Refusal)
    assert answer.client == "a"


def test_a_request_cannot_make_a_client_fill_its_memory():
    """A number in the place of the digest must not become as many bytes."""
    record = request_to_record(Request(1, np.zeros(2), 0), PLAN)
    record["request"]["plan"] = 50_000_000
    tracemalloc.start()
    with pytest.raises(ValueError, match="digest"):
        request_from_record(record)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 1_000_000


def test_the_reason_of_a_refusal_is_one_short_line():
    record = answer_to_record(Refusal("a", 1, "\x1b[2Jround 1: all is well\n" + "x" * 100_000))
    reason = answer_from_record(record).reason
    assert len(reason) <= 500
    assert reason.isprintable()
