"""The ClientApp: one request in, one noisy answer or refusal out."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from discreet._common.text import LONGEST, one_line
from discreet.federated.client import Client
from discreet.federated.flower.records import answer_to_record, request_from_record
from discreet.federated.rounds import Refusal, Reply

FAILED = "the client could not answer; its own log says why"
OTHER_PLAN = "the server follows another plan than the one this client has agreed to"

_log = logging.getLogger(__name__)


def make_client_app(find_client: Callable[[Context], Client]) -> ClientApp:
    """Make a ClientApp that answers with a client of this library.

    Parameters
    ----------
    find_client : callable
        Returns the client for a Flower context. The client keeps its dual variable and its count of answers in a
        file of its own: `Context.state` is not used, as it does not outlive the SuperNode.

    Returns
    -------
    flwr.clientapp.ClientApp

    Notes
    -----
    Guarantee: what leaves is a reply or a refusal of the client, and nothing else. Flower sends the text of an
    exception to the server, and such a text may hold values of a row; here an exception becomes a fixed sentence.
    """
    app = ClientApp()

    @app.train()
    def answer(message: Message, context: Context) -> Message:
        return Message(answer_to_record(_answer(find_client, message, context)), reply_to=message)

    return app


def _answer(find_client: Callable[[Context], Client], message: Message, context: Context) -> Reply | Refusal:
    name, round_number = "", 0
    try:
        client = find_client(context)
        name = client.name
        request, plan = request_from_record(message.content)
        round_number = request.round
        if plan != client.plan.digest:
            return Refusal(name, round_number, OTHER_PLAN)
        return client.answer(request)
    except Exception as error:
        reason, traced = one_line(str(error), LONGEST), "DISCREET_TRACEBACK" in os.environ
        _log.error("no answer to round %s: %s: %s", round_number, type(error).__name__, reason, exc_info=traced)
        return Refusal(name, round_number, FAILED)


def _nobody(context: Context) -> Client:
    raise RuntimeError("this SuperNode has no data: start it with `discreet federated client`.")


# What `flwr run` names as the app of the clients. A SuperNode that was started without the library's own process
# beside it runs this one, and refuses.
app = make_client_app(_nobody)
