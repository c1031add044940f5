"""What the noise of a release is measured in, in the words of a plan."""

OF_THE_THRESHOLD = "of the clipping threshold, per entry of the mean"
SQUARED_LENGTH = "of the squared length limit of rows, per entry"
COEFFICIENT = "per coefficient of a scaled column"
