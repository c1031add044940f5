"""What the noise of a release is measured in, in the words of a plan."""

OF_THE_THRESHOLD = "of the clipping threshold"
SQUARED_LENGTH = "of the squared length limit"
COEFFICIENT = "per scaled coefficient"
SQUARED_RANGE = "of a column's squared half-width"
