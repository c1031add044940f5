from discreet.metrics.classification import CalibrationBin as CalibrationBin
from discreet.metrics.classification import RocPoint as RocPoint
from discreet.metrics.evaluation import evaluate as evaluate
from discreet.metrics.record import Evaluation as Evaluation
from discreet.metrics.record import load_evaluation as load_evaluation
from discreet.metrics.record import save_evaluation as save_evaluation
from discreet.metrics.released_sums import Limits as Limits
