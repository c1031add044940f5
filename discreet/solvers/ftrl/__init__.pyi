from discreet.solvers.ftrl.solver import FTRL as FTRL
from discreet.solvers.ftrl.stream import FIRST_ROWS as FIRST_ROWS
from discreet.solvers.ftrl.stream import Stream as Stream
from discreet.solvers.ftrl.stream import begin_stream as begin_stream
from discreet.solvers.ftrl.stream import plan_stream as plan_stream
from discreet.solvers.ftrl.stream import refuse_shifting as refuse_shifting
