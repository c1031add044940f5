from discreet.federated.vertical.board import Board as Board
from discreet.federated.vertical.board import Message as Message
from discreet.federated.vertical.holder import Holder as Holder
from discreet.federated.vertical.holder import VerticalModel as VerticalModel
from discreet.federated.vertical.holder import run_vertical as run_vertical
from discreet.federated.vertical.plan import HolderFacts as HolderFacts
from discreet.federated.vertical.plan import VerticalSchedule as VerticalSchedule
from discreet.federated.vertical.plan import plan_vertical as plan_vertical
