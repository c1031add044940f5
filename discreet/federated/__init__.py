"""Models trained over many data holders: with a server, on a graph without one, or with the columns split."""

from discreet.federated.client import Client
from discreet.federated.client_state import ClientState, StateFile, StateInMemory
from discreet.federated.plan import FederatedPlan
from discreet.federated.planning import plan_federated
from discreet.federated.rounds import Refusal, Reply, Request, in_process, run_rounds
from discreet.federated.server import RoundReport, Server
from discreet.federated.simulate import SimulatedRun, losing, simulate, split_by, split_evenly

__all__ = [
    "Client",
    "ClientState",
    "FederatedPlan",
    "Refusal",
    "Reply",
    "Request",
    "RoundReport",
    "Server",
    "SimulatedRun",
    "StateFile",
    "StateInMemory",
    "in_process",
    "losing",
    "plan_federated",
    "run_rounds",
    "simulate",
    "split_by",
    "split_evenly",
]
