from discreet.inference.results import Inference as Inference
from discreet.inference.results import Predictions as Predictions
from discreet.inference.results import WaldTest as WaldTest
