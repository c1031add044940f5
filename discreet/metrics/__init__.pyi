from discreet.metrics.curves import CalibrationBin as CalibrationBin
from discreet.metrics.curves import RocPoint as RocPoint
from discreet.metrics.evaluation import evaluate as evaluate
from discreet.metrics.evaluation_file import load_evaluation as load_evaluation
from discreet.metrics.evaluation_file import save_evaluation as save_evaluation
from discreet.metrics.intervals import Limits as Limits
from discreet.metrics.record import Evaluation as Evaluation
